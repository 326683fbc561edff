"""What is configured: nodes, queues, cohorts, local queues, the policy, and what others refer to.

Objects are taken in one by one; their consequences are drawn when they are asked for
(`reconfigure`), so that many edits cost what one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from unisono.engine.model.names import QueueName, WorkloadKey
from unisono.engine.model.provisioning import Market
from unisono.engine.model.queue import LocalQueue
from unisono.engine.state import changes
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.local_queue import LocalQueueState
from unisono.engine.state.pending_queue import HeapQueue
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
            state.stale_local_queues[key] = None
        case _:
            _configure(state, change)


def _change_nodes(state: ClusterState, change: changes.NodeChange) -> None:
    state.nodes.apply(change)
    state.priority_order.node_changed(change)
    if isinstance(change, changes.PodOnNode) and state.shapes.hear(change.pod.anti_affinity):
        state.requeue_all()
    state.timeline.invalidate()
    state.active_queues.nodes_changed()
    if isinstance(change, changes.NodeSet) and change.node.held_for:
        state.isolate(WorkloadKey(change.node.held_for))


def _configure(state: ClusterState, change: changes.Configured) -> None:
    """Take in what is configured."""
    config = state.config
    match change:
        case changes.QueueSet(queue):
            if config.queues.get(queue.name) != queue:
                config.queues[queue.name] = queue
                state.cohort_trees.set_queue(queue)
                state.stale_local_queues.update(state.local_queues_of.get(queue.name, {}))
        case changes.QueueGone(name):
            if name in config.queues:
                _close_queue(state, name)
        case changes.CohortSet(cohort):
            if config.cohorts.get(cohort.name) != cohort:
                config.cohorts[cohort.name] = cohort
                state.cohort_trees.set_cohort(cohort)
        case changes.CohortGone(name):
            if config.cohorts.pop(name, None) is not None:
                state.cohort_trees.clear_cohort(name)
        case changes.PolicySet(policy):
            reserved, config.policy = config.policy.reservations, policy
            state.local_queue_usage.use_policy()
            state.priority_order.policy_changed()
            if reserved != policy.reservations:
                state.reservations_changed()
            state.everything_stale = True
        case _:
            config.set_shared(change)
            state.everything_stale = True


def _open_market(state: ClusterState, market: Market | None) -> None:
    """Take in what can be bought: now, or when stock is back, it may help what lacks nodes."""
    if market == state.config.market:
        return
    state.config.market = market
    for outage in market.outages if market is not None else ():
        for due in (outage.fewer_from, outage.until):
            if due > state.now:
                state.timers.remind(due, NODES)
    state.timeline.invalidate()
    state.active_queues.nodes_changed()


def _close_queue(state: ClusterState, name: QueueName) -> None:
    """Delete a queue: no workload may enter, and it is gone with its last admitted workload."""
    closed = msgspec.structs.replace(state.config.queues[name], terminating=True)
    state.config.queues[name] = closed
    state.cohort_trees.set_queue(closed)
    state.stale_local_queues.update(state.local_queues_of.get(name, {}))
    reconfigure(state)
    state.drop_if_unused(state.queues[name])


def _set_local_queue(state: ClusterState, local_queue: LocalQueue) -> None:
    """Take in where a local queue leads."""
    old = state.config.local_queues.get(local_queue.key)
    if old == local_queue:
        return
    if old is not None:
        state.local_queues_of[old.queue].pop(old.key, None)
    state.local_queues_of.setdefault(local_queue.queue, {})[local_queue.key] = None
    state.config.local_queues[local_queue.key] = local_queue
    state.local_queue_usage.note(local_queue)
    state.stale_local_queues[local_queue.key] = None


def reconfigure(state: ClusterState) -> None:
    """Draw the consequences of what was configured; free when nothing was."""
    if state.lenders.is_new:
        state.lenders.is_new = False
        state.requeue_all()
    if not (state.everything_stale or state.cohort_trees.stale or state.stale_local_queues):
        return
    if state.everything_stale:
        state.everything_stale = False
        state.timeline = Timeline(state.policy.backfill)
        state.timeline.rebuild(state.running.values(), state.local_queues.values())
        state.cohort_trees.mark_everything()
        state.stale_local_queues.update(dict.fromkeys(state.local_queues))
    if state.cohort_trees.stale:
        for cq in state.cohort_trees.relink():
            _reopen(state, cq)
    if state.stale_local_queues:
        stale, state.stale_local_queues = state.stale_local_queues, {}
        for key in stale:
            if key in state.local_queues:
                open_or_shut(state, state.local_queues[key])


def open_or_shut(state: ClusterState, lq: LocalQueueState) -> None:
    """Find out where a local queue leads now, and move its workloads accordingly."""
    lq.blocker = state.config.local_blocker(lq.key)
    local_queue = state.config.local_queues.get(lq.key)
    is_open = local_queue is not None and lq.blocker is None
    cq = state.queues[local_queue.queue] if local_queue and is_open else None
    if cq is not lq.cq:
        for waiting in lq.waiting.values():
            if waiting.slot is not None and lq.cq is not None:
                state.dequeue(waiting, lq.cq)
        lq.cq = cq
        for key, waiting in lq.waiting.items():
            if cq is not None and key not in state.held:
                state.enqueue(waiting, cq)
    elif cq is not None and cq.pending.usage_of is not None:
        state.active_queues.wake_queue(cq)  # its weight may put another workload first
    state.stopped.pop(lq, None)
    if lq.blocker is not None and lq.running:
        state.stopped[lq] = None


def _reopen(state: ClusterState, cq: ClusterQueueState) -> None:
    """Look at a queue again as if for the first time."""
    state.timeline.invalidate()
    state.timeline.forget_counts(cq)
    cq.derived.clear()
    cq.stalled = False
    cq.head_wait = None
    renew_pending_queue(state, cq)
    for kind in [*cq.pending.inadmissible]:
        state.active_queues.rouse(cq, kind)
    for running in cq.running.values():
        state.note_triggers(running)
    state.active_queues.reopen(cq)
    state.stopped.pop(cq, None)
    if cq.blocker is not None and cq.running:
        state.stopped[cq] = None


def renew_pending_queue(state: ClusterState, cq: ClusterQueueState) -> None:
    """Give a ClusterQueue the sort of pending queue that the policy and its own spec ask for."""
    known, ranking = cq.pending, None
    if state.priority_order.is_on:
        cq.pending = state.priority_order.pending_queue(known)
    else:
        ranking = state.local_queue_usage.ranking(cq.spec)
        is_right = isinstance(known, HeapQueue) and (known.usage_of is None) == (ranking is None)
        if not is_right:
            cq.pending = HeapQueue(usage_of=ranking, preemptor=known.preemptor)
    if cq.pending is not known:
        for waiting in known.in_order():
            cq.pending.push(waiting)
    cq.pending.usage_of = ranking
    state.priority_order.queue_changed(cq)
