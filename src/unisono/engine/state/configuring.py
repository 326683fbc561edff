"""What is configured: nodes, queues, cohorts, local queues, the policy, and what others refer to.

Objects are taken in one by one; their consequences are drawn when somebody asks (`reconfigure`), so
that many edits cost what one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from unisono.engine.model.market import Market
from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.queue import LocalQueue
from unisono.engine.state import changes
from unisono.engine.state.doors import Door
from unisono.engine.state.pending_queue import HeapQueue
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.timeline import Timeline
from unisono.engine.state.timers import NODES

if TYPE_CHECKING:
    from unisono.engine.state.cluster import ClusterState


def take_in(state: ClusterState, change: changes.Rarer) -> None:
    """Take in anything but time and what happens to workloads."""
    match change:
        case changes.NodeSet() | changes.NodeGone() | changes.PodOnNode() | changes.PodGone():
            _change_nodes(state, change)
        case changes.MarketSet(market):
            _open_market(state, market)
        case changes.ResultSet(result):
            state.dependencies.finish(result)
        case changes.UsageSet(record):
            # Recorded before the clock was set back: it decays from now on.
            at = min(record.at, state.now)
            state.priority_order.load_usage(msgspec.structs.replace(record, at=at))
        case changes.LocalQueueSet(local_queue):
            _set_local_queue(state, local_queue)
        case changes.LocalQueueGone(key):
            state.config.local_queues.pop(key, None)
            state.stale_doors[key] = None
        case _:
            _configure(state, change)


def _change_nodes(state: ClusterState, change: changes.NodeChange) -> None:
    state.nodes.apply(change)
    state.priority_order.node_changed(change)
    if isinstance(change, changes.PodOnNode) and state.shapes.hear(change.pod.anti_affinity):
        state.queue_anew()
    state.timeline.invalidate()
    state.rota.nodes_changed()
    if isinstance(change, changes.NodeSet) and change.node.held_for:
        state.stand_alone(WorkloadKey(change.node.held_for))


def _configure(state: ClusterState, change: changes.Configured) -> None:
    """Take in what is configured."""
    config = state.config
    match change:
        case changes.QueueSet(queue):
            if config.queues.get(queue.name) != queue:
                config.queues[queue.name] = queue
                state.forest.set_queue(queue)
                state.stale_doors.update(state.doors_to.get(queue.name, {}))
        case changes.QueueGone(name):
            if name in config.queues:
                _close_queue(state, name)
        case changes.CohortSet(cohort):
            if config.cohorts.get(cohort.name) != cohort:
                config.cohorts[cohort.name] = cohort
                state.forest.set_cohort(cohort)
        case changes.CohortGone(name):
            if config.cohorts.pop(name, None) is not None:
                state.forest.clear_cohort(name)
        case changes.PolicySet(policy):
            reserved, config.policy = config.policy.reservations, policy
            state.local_queue_usage.use_policy()
            state.priority_order.policy_changed()
            if reserved != policy.reservations:
                state.reserve_anew()
            state.everything_stale = True
        case _:
            config.set_shared(change)
            state.everything_stale = True


def _open_market(state: ClusterState, market: Market | None) -> None:
    """Take in what can be bought; who lacks nodes may find some now, or when stock is back."""
    if market == state.config.market:
        return
    state.config.market = market
    for outage in market.outages if market is not None else ():
        for due in (outage.fewer_from, outage.until):
            if due > state.now:
                state.timers.remind(due, NODES)
    state.timeline.invalidate()
    state.rota.nodes_changed()


def _close_queue(state: ClusterState, name: QueueName) -> None:
    """Delete a queue: nobody may enter, and it is gone once its last holding is."""
    closed = msgspec.structs.replace(state.config.queues[name], terminating=True)
    state.config.queues[name] = closed
    state.forest.set_queue(closed)
    state.stale_doors.update(state.doors_to.get(name, {}))
    reconfigure(state)
    state.drop_if_unused(state.books[name])


def _set_local_queue(state: ClusterState, local_queue: LocalQueue) -> None:
    """Take in where a local queue leads."""
    old = state.config.local_queues.get(local_queue.key)
    if old == local_queue:
        return
    if old is not None:
        state.doors_to[old.queue].pop(old.key, None)
    state.doors_to.setdefault(local_queue.queue, {})[local_queue.key] = None
    state.config.local_queues[local_queue.key] = local_queue
    state.local_queue_usage.note(local_queue)
    state.stale_doors[local_queue.key] = None


def reconfigure(state: ClusterState) -> None:
    """Draw the consequences of what was configured; free when nothing was."""
    if state.lenders.is_new:
        state.lenders.is_new = False
        state.queue_anew()
    if not (state.everything_stale or state.forest.stale or state.stale_doors):
        return
    if state.everything_stale:
        state.everything_stale = False
        state.timeline = Timeline(state.policy.backfill)
        state.timeline.rebuild(state.running.values(), state.doors.values())
        state.forest.mark_everything()
        state.stale_doors.update(dict.fromkeys(state.doors))
    if state.forest.stale:
        for book in state.forest.relink():
            _reopen(state, book)
    if state.stale_doors:
        stale, state.stale_doors = state.stale_doors, {}
        for key in stale:
            if key in state.doors:
                open_or_shut(state, state.doors[key])


def open_or_shut(state: ClusterState, door: Door) -> None:
    """Find out where a local queue leads now, and move its workloads accordingly."""
    door.blocker = state.config.local_blocker(door.key)
    local_queue = state.config.local_queues.get(door.key)
    is_open = local_queue is not None and door.blocker is None
    book = state.books[local_queue.queue] if local_queue and is_open else None
    if book is not door.book:
        for waiting in door.waiting.values():
            if waiting.slot is not None and door.book is not None:
                state.dequeue(waiting, door.book)
        door.book = book
        for key, waiting in door.waiting.items():
            if book is not None and key not in state.held:
                state.enqueue(waiting, book)
    elif book is not None and book.pending.usage_of is not None:
        state.rota.wake_queue(book)  # its weight may put another workload first
    state.stopped.pop(door, None)
    if door.blocker is not None and door.running:
        state.stopped[door] = None


def _reopen(state: ClusterState, book: QueueBook) -> None:
    """Look at a queue again as if for the first time."""
    state.timeline.invalidate()
    state.timeline.forget_counts(book)
    book.derived.clear()
    book.stalled = False
    book.head_wait = None
    renew_pending_queue(state, book)
    for kind in [*book.pending.inadmissible]:
        state.rota.rouse(book, kind)
    for running in book.running.values():
        state.note_terms(running)
    state.rota.reopen(book)
    state.stopped.pop(book, None)
    if book.blocker is not None and book.running:
        state.stopped[book] = None


def renew_pending_queue(state: ClusterState, book: QueueBook) -> None:
    """Give a ClusterQueue the sort of pending queue that the policy and its own spec ask for."""
    known, ranking = book.pending, None
    if state.priority_order.is_on:
        book.pending = state.priority_order.pending_queue(known)
    else:
        ranking = state.local_queue_usage.ranking(book.spec)
        is_right = isinstance(known, HeapQueue) and (known.usage_of is None) == (ranking is None)
        if not is_right:
            book.pending = HeapQueue(usage_of=ranking, preemptor=known.preemptor)
    if book.pending is not known:
        for waiting in known.in_order():
            book.pending.push(waiting)
    book.pending.usage_of = ranking
    state.priority_order.queue_changed(book)
