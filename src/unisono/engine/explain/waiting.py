"""Why a workload waits, read off the state: nothing is decided here.

The blockers were found by the cycle that evaluated the workload (or its group) and recorded with
its plan; here they are looked up: the workload's own, its LocalQueue's, its ClusterQueue's, or the
position behind the head of its queue.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.backfill.counted_gang import counted_gang
from unisono.engine.model.explanation import BehindInQueue, Blocker, Explanation, WouldDelay
from unisono.engine.model.names import WorkloadKey
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.pending_queue import PendingWorkload


def explanation(state: ClusterState, key: WorkloadKey) -> Explanation | None:
    """Say why a workload waits; None if it does not."""
    state.refresh()
    waiting = state.waiting.get(key)
    if waiting is None:
        return None
    lq = state.local_queue(waiting.workload.queue)
    order = lq.cq.pending.in_order() if lq.cq is not None else []
    position = next((index for index, other in enumerate(order) if other is waiting), 0)
    head = order[0] if order else waiting
    return _explain(state, waiting, head=head, position=position)


def explanations(state: ClusterState) -> Iterator[Explanation]:
    """Explain all pending workloads: by queue, in queue order, those held out of queues last."""
    state.refresh()
    for name in sorted(state.queues):
        order = state.queues[name].pending.in_order()
        for position, waiting in enumerate(order):
            yield _explain(state, waiting, head=order[0], position=position)
    for key in sorted(state.waiting):
        waiting = state.waiting[key]
        if waiting.slot is None:
            yield _explain(state, waiting, head=waiting, position=0)


def recorded_explanation(state: ClusterState, key: WorkloadKey) -> Explanation | None:
    """Return why a workload waits, if that does not depend on its position; else None."""
    waiting = state.waiting.get(key)
    blockers = _recorded_blockers(state, waiting) if waiting is not None else None
    return _explanation_with(state, waiting, blockers) if waiting is not None and blockers else None


def _explain(
    state: ClusterState, waiting: PendingWorkload, *, head: PendingWorkload, position: int
) -> Explanation:
    """Name the blocker: of the workload, its LocalQueue, its ClusterQueue, or the queue's head."""
    blockers = _recorded_blockers(state, waiting)
    if blockers is None:
        cq = state.local_queue(waiting.workload.queue).cq
        assert cq is not None, "without a ClusterQueue the LocalQueue is the blocker"
        ahead = head.workload.key
        blockers = (BehindInQueue(queue=cq.spec.name, head=ahead, position=position),)
    return _explanation_with(state, waiting, blockers)


def _recorded_blockers(state: ClusterState, waiting: PendingWorkload) -> tuple[Blocker, ...] | None:
    key = waiting.workload.key
    lq = state.local_queue(waiting.workload.queue)
    if (own := state.held.get(key)) is not None:
        return (own,)
    if lq.cq is None:
        assert lq.blocker is not None, f"local queue {lq.key} leads nowhere for no reason"
        return (lq.blocker,)
    if lq.cq.blocker is not None:
        return (lq.cq.blocker,)
    if state.timeline.is_on:
        return _of_timeline(state, waiting) or None
    if (aside := lq.cq.pending.blockers_of(waiting)) is not None:
        return aside
    if lq.cq.head_wait is not None and lq.cq.head_wait[0] == key:
        return lq.cq.head_wait[1]
    return None


def _explanation_with(
    state: ClusterState, waiting: PendingWorkload, blockers: tuple[Blocker, ...]
) -> Explanation:
    local_queue = state.config.local_queues.get(waiting.workload.queue)
    queue = local_queue.queue if local_queue else None
    return Explanation(workload=waiting.workload.key, queue=queue, blockers=blockers)


def _of_timeline(state: ClusterState, waiting: PendingWorkload) -> tuple[Blocker, ...]:
    """Return why a workload waits, as far as a cycle has evaluated it or its group.

    A workload that would delay a reservation is not evaluated again when backfilled workloads have
    taken the quota meanwhile; then the quota is what it waits for.
    """
    blockers, group = state.timeline.why(waiting), state.timeline.group_of(waiting)
    if len(blockers) == 1 and isinstance(blockers[0], WouldDelay) and group is not None:
        counted = counted_gang(state, group, waiting)
        if counted is not None and not counted.has_quota():
            return counted.shortages(group.cq.spec.name)
    return blockers
