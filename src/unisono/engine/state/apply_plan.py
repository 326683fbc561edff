"""Applying a plan: the engine's own state, as if the cluster had obeyed.

Admissions hold quota, victims are being evicted (and keep their quota until their pods are gone),
pending workloads are filed under what would unblock them. Queues of a cohort tree in which the plan
changed nothing fall asleep: the same state would give the same plan.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.explanation import WaitingForPods
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import (
    Admit,
    Eviction,
    Plan,
    Shrink,
    Wait,
    evictions,
    shrinks,
)
from unisono.engine.model.workload import AdmittedWorkload
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, CohortTree
from unisono.engine.state.pending_queue import equivalence_class_of
from unisono.engine.state.purchases import with_purchase
from unisono.engine.state.wake_index import BlockedClass


def apply_plan(state: ClusterState, plan: Plan) -> bool:
    """Apply a plan made from this very state; say whether it changed anything."""
    based_on = plan.based_on
    assert based_on == state.version, (
        f"the plan was made from version {based_on}, the state is at {state.version}"
    )
    state.timeline.settle(based_on)
    state.version += 1
    waits, admissions = plan.waits, plan.admissions
    leave = bool(plan.preemptions or plan.evictions_due)
    if not (waits or admissions or leave):
        _put_to_sleep(state, {}, plan)
        return False
    changed: dict[CohortTree, None] = {}
    retried: list[Wait] = []
    for wait in waits:
        if wait.outcome == "line":  # with backfill; it does not wait for victims any more
            explanation = wait.explanation
            key = explanation.workload
            _queue_of_wait(state, wait).pending.drop_preemptor(key)
            state.timeline.record_wait(state.waiting[key], explanation.blockers)
        elif file_verdict(state, wait):
            changed[_queue_of_wait(state, wait).tree] = None
        elif wait.outcome == "retry":
            retried.append(wait)
    starting = [(admit, state.queues[admit.admission.queue]) for admit in admissions]
    for _, cq in starting:
        changed[cq.tree] = None
    evicted: tuple[Eviction, ...] = ()
    smaller: tuple[Shrink, ...] = ()
    if leave:
        evicted, smaller = evictions(plan), shrinks(plan)
        for key in (*(one.workload for one in evicted), *(one.workload for one in smaller)):
            changed[state.running[key].cq.tree] = None
    if changed and retried and state.nodes.has_nodes:
        # Nodes are shared by all trees: what lost its nodes this time may still find others.
        changed.update((_queue_of_wait(state, wait).tree, None) for wait in retried)
    # Before anything starts or leaves: that may wake queues of any tree.
    _put_to_sleep(state, changed, plan)
    for admit, cq in starting:
        _start(state, admit, cq, plan.now)
    for eviction in evicted:
        _evict(state, eviction.workload)
    for shrink in smaller:
        running = state.running[shrink.workload]
        running.admitted = msgspec.structs.replace(running.admitted, keeps=shrink.keeps)
    for tree in changed:
        state.active_queues.wake_tree(tree)  # what slept here saw another picture
    return bool(changed)


def _put_to_sleep(state: ClusterState, changed: dict[CohortTree, None], plan: Plan) -> None:
    """Let queues sleep in which nothing can change; with backfill none of them is evaluated."""
    state.active_queues.drop_claims()
    if not state.timeline.is_on:
        state.active_queues.put_to_sleep(changed, examined=frozenset(plan.examined))


def _start(state: ClusterState, admit: Admit, cq: ClusterQueueState, now: Instant) -> None:
    waiting = state.waiting[admit.workload]
    admission, purchase = admit.admission, admit.purchase
    replaces = admit.replaces
    if replaces is not None:
        state.finish(replaces)
    workload = waiting.workload
    if admit.limit_ms is not None:
        workload = workload.granted(admit.limit_ms)
    admitted = AdmittedWorkload(
        workload=workload,
        admission=admission,
        reserved_at=now,
        may_start=admit.checks_pass and purchase is None,
        ready=state.policy.pods_ready is None,
    )
    node = cq.node
    charges = tuple(
        [(node.cell(flavor_resource), amount) for flavor_resource, amount in admit.charges]
    )
    state.start(waiting, admitted, cq, charges, fits=not admit.opportunistic_on)
    if state.gang_requests.sociable:  # pod affinity or topology spread may be satisfied now
        state.active_queues.nodes_changed()
    if purchase is not None and state.config.offerings is not None:
        state.config.offerings = with_purchase(state.config.offerings, purchase)
        state.timeline.invalidate()  # others may have counted on the same machines
    state.nodes.note_admission(workload)
    if state.local_queue_usage.decayed is not None:
        key = waiting.queue
        state.local_queue_usage.penalise(cq.spec, key, state.local_queues[key], now)


def _evict(state: ClusterState, key: WorkloadKey) -> None:
    running = state.running[key]
    running.admitted = msgspec.structs.replace(running.admitted, evicting=True, keeps=None)
    state.note_readiness(running)


def _queue_of_wait(state: ClusterState, wait: Wait) -> ClusterQueueState:
    queue = wait.explanation.queue
    assert queue is not None, "an examined workload has a queue"
    return state.queues[queue]


def file_verdict(state: ClusterState, wait: Wait) -> bool:
    """File one verdict; say whether the next cycle may differ because of it."""
    explanation = wait.explanation
    cq, name = _queue_of_wait(state, wait), explanation.queue
    waiting = state.waiting[explanation.workload]
    assert name is not None, "an examined workload has a queue"
    match wait.outcome:
        case "park":
            equivalence_class = equivalence_class_of(waiting)
            cq.pending.drop_preemptor(explanation.workload)
            cq.pending.set_aside(equivalence_class, explanation.blockers)
            _file_under(state, cq, (name, equivalence_class), wait)
            return True
        case "stall":
            cq.blocked_by_head = True
            cq.pending.drop_preemptor(explanation.workload)
            cq.head_wait = (explanation.workload, explanation.blockers)
            _file_under(state, cq, (name, None), wait)
            return True
        case "bar":
            state.priority_order.block_by_limit(cq, waiting, explanation.blockers)
            return True
        case "sticky":
            newly = cq.pending.preemptor != explanation.workload
            cq.pending.preemptor = explanation.workload
            state.active_queues.with_preemptor[cq] = None
            state.active_queues.needs_no_nodes((name, None))
            if wait.lacks_nodes:  # it waits for pods of others: they leave nodes, not quota
                state.active_queues.wait_for_nodes((name, None))
                for fact in explanation.blockers:
                    if isinstance(fact, WaitingForPods):
                        state.timers.remind(fact.until, explanation.workload)
            cq.head_wait = (explanation.workload, explanation.blockers)
            return newly
        case "line":
            state.timeline.record_wait(waiting, explanation.blockers)
            return False
        case "retry":
            cq.head_wait = (explanation.workload, explanation.blockers)
            if state.nodes.has_nodes:
                # What came first may be of another tree: only nodes show when it is gone.
                state.active_queues.lost_nodes[cq] = None
            return False


def _file_under(
    state: ClusterState, cq: ClusterQueueState, blocked_class: BlockedClass, wait: Wait
) -> None:
    """File a blocked class under everything that may bring it back."""
    only_quota = not wait.watches_admitted and not wait.lacks_nodes
    cq.tree.wakes.file(
        blocked_class,
        wait.unblocked_by,
        admitted_workloads=wait.watches_admitted,
        available_to=state.active_queues.available_to if only_quota else None,
    )
    if wait.lacks_nodes:
        state.active_queues.wait_for_nodes(blocked_class)
    else:
        state.active_queues.needs_no_nodes(blocked_class)
