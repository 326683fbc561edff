"""What a job, or a group of pods, asks for: the part of a workload that its kind has to say."""

from __future__ import annotations

import msgspec

from unisono.engine.model.workload import PodSet


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A gang, and how important it is; no pod sets means that there is nothing to run."""

    pod_sets: tuple[PodSet, ...] = ()
    min_total: int | None = None  # None: every pod set needs its minimum, and that is all
    reclaimable: tuple[tuple[str, int], ...] = ()  # pods of each set that are done for good
    priority_class: str = ""  # the PriorityClass that it names itself
    priority: int | None = None  # worked out already
