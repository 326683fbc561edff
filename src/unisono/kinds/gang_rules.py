"""What makes a gang of pods, in one form for every API that can say it (spec placement §7).

    coscheduling PodGroup       minMember
    Volcano PodGroup            minMember, minTaskMember, networkTopology, subGroupPolicy
    scheduling.k8s.io           minCount, a topology key; several groups under a composite one

Each kind translates its fields into `GangRules`; `snapshot.pod_gangs` applies them to pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.workload import TopologyRequest


class Slices(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of a gang that come in blocks, each block close together."""

    name: str  # for people
    selector: LabelSelector  # which pods
    size: int = 1  # of one block
    least: int = 0  # blocks that must start
    topology: TopologyRequest | None = None  # with the level that a block has to share


class GangRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which pods of a group must start together, and where."""

    least: int  # over all of the group's pods
    task_least: Mapping[str, int] = {}  # of the pods of one task
    topology: TopologyRequest | None = None
    slices: tuple[Slices, ...] = ()
    priority_class: str = ""
    priority: int | None = None  # worked out from the class already


def least_of_each(least: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Return how many pods of each set there must be for `least` of them all.

    What the other sets cannot make up for even when they are complete.

    >>> least_of_each(4, [3, 3]), least_of_each(4, [6]), least_of_each(2, [3, 3])
    ((1, 1), (4,), (0, 0))
    """
    total = sum(counts)
    return tuple(max(0, least - (total - count)) for count in counts)
