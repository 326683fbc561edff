"""The order of pending workloads in their ClusterQueue, worked out from Workloads alone (quota §5).

Every view of a position asks here: the commands, the page, the metrics. No position is stored with
a workload, because one admission moves all that wait behind it. The key is made of the same parts
by which the engine orders its pending queues (`position_key` of the engine's workload), so both
agree by construction:

    a preemptor that waits for its victims      stays the head of its queue
    priority                                    the higher first
    time                                        creation, or the eviction that moved it back
    job number, uid                             for workloads of one instant

A workload that is held, deactivated or has quota is in no pending queue. What cannot be read from
Workloads (recent usage of LocalQueues, multifactor priority) only the scheduler knows; where that
decides, it publishes the order with the ClusterQueue, and that order comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import TypeVar

from unisono.engine.model.names import Instant
from unisono.engine.model.workload import PositionKey, position_key, tie_of
from unisono.kinds import views
from unisono.kinds.json_texts import read_json
from unisono.kinds.kueue.unsupported import priority_boost
from unisono.kinds.policy.multifactor import job_number
from unisono.kinds.scalar import instant_ms

# Whether it comes after a preemptor; the rest is the engine's.
OrderKey = tuple[bool, PositionKey]
W = TypeVar("W", bound=views.Raw)

PENDING_ORDER = "unisono.dev/PendingOrder"  # a condition of a ClusterQueue
_EXPLANATION = "unisono.dev/Explanation"
_PREEMPTING = ("WaitingForVictims", "WaitingForPods")
_HELD = "hold"  # a stage: something other than the queue's order keeps it back


def moves_back(reason: str, *, by_timeout: bool = True) -> bool:
    """Say whether an eviction puts a workload behind those that came before the eviction.

    `by_timeout`: a gang whose pods were not ready in time is one of them, as the policy says.
    """
    return reason == "AdmissionCheck" or (by_timeout and reason == "PodsReadyTimeout")


def order_key(workload: views.Workload) -> OrderKey | None:
    """Return what orders a workload in its ClusterQueue; None if it is in no pending queue."""
    spec, metadata, conditions = workload.spec, workload.metadata, workload.status.conditions
    if workload.status.admission is not None or not spec.active or conditions.is_true("Finished"):
        return None
    explained = conditions.get(_EXPLANATION)
    if explained is not None and explained.reason.lower() == _HELD:
        return None
    at, evicted = metadata.creation_timestamp, conditions.get("Evicted")
    if evicted is not None and evicted.is_true and moves_back(evicted.reason):
        at = evicted.last_transition_time or at
    priority = spec.priority + priority_boost(metadata.annotations)
    tie = tie_of(*job_number(metadata.labels, metadata.annotations), metadata.uid)
    return not _is_preempting(explained), position_key(priority, _instant(at), tie)


def pending_order(workloads: Iterable[W], queue: views.Raw | None = None) -> list[W]:
    """Return the pending workloads of one ClusterQueue in order; `queue` is that, if known."""
    published = published_order(views.ClusterQueue(queue)) if queue is not None else {}
    found: list[tuple[int, OrderKey, W]] = []
    for one in workloads:
        view = views.Workload(one)
        key = order_key(view)
        if key is not None:
            name = f"{view.metadata.namespace}/{view.metadata.name}"
            found.append((published.get(name, len(published)), key, one))
    return [one for _, _, one in sorted(found, key=itemgetter(0, 1))]


def positions(
    workloads: Iterable[W],
    queue_of: Callable[[W], str],
    queues: Mapping[str, views.Raw] | None = None,
) -> dict[str, int]:
    """Return the position of each pending workload in its ClusterQueue, from 1 on, by uid."""
    by_queue: dict[str, list[W]] = {}
    for one in workloads:
        by_queue.setdefault(queue_of(one), []).append(one)
    return {
        views.Workload(one).metadata.uid: place
        for name, of_queue in by_queue.items()
        for place, one in enumerate(pending_order(of_queue, (queues or {}).get(name)), start=1)
    }


def published_order(queue: views.ClusterQueue) -> dict[str, int]:
    """Return the rank of workloads by `namespace/name`, where the scheduler published the order."""
    found = queue.conditions.get(PENDING_ORDER)
    if found is None or not found.is_true:
        return {}
    try:
        return {str(name): at for at, name in enumerate(read_json(found.message))}
    except (ValueError, TypeError):
        return {}  # of another version, or edited by hand


def _is_preempting(explained: views.Condition | None) -> bool:
    if explained is None or not any(word in explained.message for word in _PREEMPTING):
        return False
    try:
        return read_json(explained.message)["facts"][0]["fact"] in _PREEMPTING
    except (ValueError, KeyError, TypeError, IndexError):
        return False


def _instant(written: str) -> Instant:
    try:
        return Instant(instant_ms(written))
    except ValueError:
        return Instant(0)
