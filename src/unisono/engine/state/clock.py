"""Time passes: workloads that waited for an instant are evaluated again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unisono.engine.model.names import Instant
from unisono.engine.state.pending_queue import Waiting, kind_of
from unisono.engine.state.timers import NODES

if TYPE_CHECKING:
    from unisono.engine.state.cluster import ClusterState


def look_again(state: ClusterState, waiting: Waiting) -> None:
    """Look at one workload again: an instant or an end that it waited for has come."""
    key = waiting.workload.key
    cq = state.local_queues[waiting.workload.queue].cq
    blocker = state.blocker_of(waiting.workload)
    for instant in state.dependencies.reminders(waiting.workload, state.now):
        state.timers.remind(instant, key)
    if blocker is not None:
        if waiting.slot is not None and cq is not None:
            state.dequeue(waiting, cq)
        if state.held.get(key) != blocker:
            state.moved[key] = None
        state.held[key] = blocker
    elif key in state.held:
        del state.held[key]
        state.moved.pop(key, None)
        if cq is not None:
            state.enqueue(waiting, cq)
    elif cq is not None:
        state.active_queues.rouse(cq, kind_of(waiting))
        state.active_queues.unstall(cq)
        state.active_queues.wake_queue(cq)


def pass_time(state: ClusterState, now: Instant) -> None:
    """Move the clock; holds, back-offs and reservations that ended are looked at again."""
    state.now = max(state.now, now)
    if state.local_queue_usage.decayed is not None:
        for key in state.local_queue_usage.sample(state.now, state.local_queues):
            cq = state.local_queues[key].cq
            if cq is not None:
                state.active_queues.wake_queue(cq)
    state.priority_order.time_passed()
    if not state.timers.is_due(state.now):
        return
    for due in state.timers.due(state.now):
        waiting, running = state.waiting.get(due), state.running.get(due)
        if due == NODES:
            state.timeline.invalidate()
            state.active_queues.nodes_changed()
            state.reserved.remind(state.now)
        elif waiting is not None:
            look_again(state, waiting)
        elif running is not None:
            state.eviction_triggers.look(running, state.now)
            state.active_queues.holdings_changed(running.cq.tree)
