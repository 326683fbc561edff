"""What a job asks for, and whether it could ever start, at the moment it is submitted.

Nothing is decided here: the engine is asked what it would say of this one job in a cluster where
nothing else runs and nodes do not matter. What it refuses even then will never start, as things
are now. The API turns that into a warning, so that no workload waits unexplained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unisono.engine.model.names import Instant
from unisono.engine.model.workload import PodSet
from unisono.kinds.registry import Context, Kind
from unisono.kinds.snapshot.build import read_world

# What time alone does not change.
_LASTING = ("ExceedsMaxQuota", "NoMatchingFlavor", "Misconfigured")


def pod_sets_of(kind: Kind, manifests: Sequence[Any], context: Context) -> tuple[PodSet, ...]:
    """Return the pod sets of a job, of one pod or of a group of pods; none of any other kind."""
    if kind.job is not None:
        return kind.job.pod_sets(manifests[0], context)
    return kind.members.pod_sets(tuple(manifests), context) if kind.members is not None else ()


def total_requests(pod_sets: Sequence[PodSet]) -> dict[str, int]:
    """Return what all pods of a job ask for together, as quota is charged."""
    totals: dict[str, int] = {}
    for one in pod_sets:
        for resource, amount in one.requests:
            totals[resource] = totals.get(resource, 0) + amount * one.count
    return totals


def why_never(documents: Sequence[Mapping[str, object]], *, now: Instant) -> str:
    """Return why the only job among the documents could not start in an empty cluster.

    Empty if it could, or if the documents do not say enough.
    """
    # Only here: an API that has just started answers before the engine is loaded.
    from unisono.engine.cluster import restore
    from unisono.engine.dry_run import one_cycle
    from unisono.engine.explain.messages import message_of, reason_of
    from unisono.engine.explain.waiting import explanations

    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    world = read_world([("cluster", json.dumps(listed).encode())], now=now)
    if world.problems:
        return ""
    state = restore(world.snapshot)
    one_cycle(state, now, checked=False)
    for why in explanations(state):
        if reason_of(why) in _LASTING:
            return message_of(why)
    return ""
