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
from unisono.engine.model.workload import Holding
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.pending_queue import kind_of
from unisono.engine.state.purchases import with_purchase
from unisono.engine.state.queue_book import QueueBook, TreeBook
from unisono.engine.state.wake_index import Sleeper


def apply_plan(state: ClusterState, plan: Plan) -> bool:
    """Apply a plan made from this very state; say whether it changed anything."""
    based_on = plan.based_on
    assert based_on == state.version, (
        f"the plan was made from version {based_on}, the state is at {state.version}"
    )
    state.timeline.settle(based_on)
    state.version += 1
    waits, admissions = plan.waits, plan.admissions
    leave = bool(plan.preemptions or plan.stops)
    if not (waits or admissions or leave):
        _put_to_sleep(state, {}, plan)
        return False
    changed: dict[TreeBook, None] = {}
    late: list[Wait] = []
    for wait in waits:
        if wait.outcome == "line":  # with backfill; it does not wait for victims any more
            explanation = wait.explanation
            key = explanation.workload
            _book_of_wait(state, wait).pending.drop_preemptor(key)
            state.timeline.record_wait(state.waiting[key], explanation.blockers)
        elif file_verdict(state, wait):
            changed[_book_of_wait(state, wait).tree] = None
        elif wait.outcome == "retry":
            late.append(wait)
    starting = [(admit, state.books[admit.admission.queue]) for admit in admissions]
    for _, book in starting:
        changed[book.tree] = None
    told: tuple[Eviction, ...] = ()
    smaller: tuple[Shrink, ...] = ()
    if leave:
        told, smaller = evictions(plan), shrinks(plan)
        for key in (*(one.workload for one in told), *(one.workload for one in smaller)):
            changed[state.running[key].book.tree] = None
    if changed and late and state.nodes.has_nodes:
        # Nodes are shared by all trees: whoever came too late this time may still find others.
        changed.update((_book_of_wait(state, wait).tree, None) for wait in late)
    # Before anything starts or leaves: that may wake queues of any tree.
    _put_to_sleep(state, changed, plan)
    for admit, book in starting:
        _start(state, admit, book, plan.now)
    for eviction in told:
        _evict(state, eviction.workload)
    for shrink in smaller:
        running = state.running[shrink.workload]
        running.holding = msgspec.structs.replace(running.holding, keeps=shrink.keeps)
    for tree in changed:
        state.rota.wake_tree(tree)  # what slept here saw another picture
    return bool(changed)


def _put_to_sleep(state: ClusterState, changed: dict[TreeBook, None], plan: Plan) -> None:
    """Let queues sleep in which nothing can change; a pass with backfill looks at none of them."""
    state.rota.drop_claims()
    if not state.timeline.is_on:
        state.rota.put_to_sleep(changed, examined=frozenset(plan.examined))


def _start(state: ClusterState, admit: Admit, book: QueueBook, now: Instant) -> None:
    waiting = state.waiting[admit.workload]
    admission, purchase = admit.admission, admit.purchase
    replaces = admit.replaces
    if replaces is not None:
        state.finish(replaces)
    workload = waiting.workload
    if admit.limit_ms is not None:
        workload = workload.granted(admit.limit_ms)
    holding = Holding(
        workload=workload,
        admission=admission,
        reserved_at=now,
        admitted=admit.checks_pass and purchase is None,
        ready=state.policy.pods_ready is None,
    )
    node = book.node
    charges = tuple([(node.cell(account), amount) for account, amount in admit.charges])
    state.start_holding(waiting, holding, book, charges, fits=not admit.lent_by)
    if state.shapes.sociable:  # somebody waits for company on a node, or for evenness
        state.rota.nodes_changed()
    if purchase is not None and state.config.market is not None:
        state.config.market = with_purchase(state.config.market, purchase)
        state.timeline.invalidate()  # others may have counted on the same machines
    state.nodes.note_admission(workload)
    if state.local_queue_usage.decayed is not None:
        key = waiting.queue
        state.local_queue_usage.penalise(book.spec, key, state.doors[key], now)


def _evict(state: ClusterState, key: WorkloadKey) -> None:
    running = state.running[key]
    running.holding = msgspec.structs.replace(running.holding, evicting=True, keeps=None)
    state.note_readiness(running)


def _book_of_wait(state: ClusterState, wait: Wait) -> QueueBook:
    queue = wait.explanation.queue
    assert queue is not None, "an examined workload has a queue"
    return state.books[queue]


def file_verdict(state: ClusterState, wait: Wait) -> bool:
    """File one verdict; say whether the next cycle may differ because of it."""
    explanation = wait.explanation
    book, name = _book_of_wait(state, wait), explanation.queue
    waiting = state.waiting[explanation.workload]
    assert name is not None, "an examined workload has a queue"
    match wait.outcome:
        case "park":
            kind = kind_of(waiting)
            book.pending.drop_preemptor(explanation.workload)
            book.pending.set_aside(kind, explanation.blockers)
            _file_under(state, book, (name, kind), wait)
            return True
        case "stall":
            book.stalled = True
            book.pending.drop_preemptor(explanation.workload)
            book.head_wait = (explanation.workload, explanation.blockers)
            _file_under(state, book, (name, None), wait)
            return True
        case "bar":
            state.priority_order.block_by_limit(book, waiting, explanation.blockers)
            return True
        case "sticky":
            newly = book.pending.preemptor != explanation.workload
            book.pending.preemptor = explanation.workload
            state.rota.claimants[book] = None
            state.rota.minds_no_nodes((name, None))
            if wait.lacks_nodes:  # it waits for pods of others: they leave nodes, not quota
                state.rota.wait_for_nodes((name, None))
                for fact in explanation.blockers:
                    if isinstance(fact, WaitingForPods):
                        state.timers.remind(fact.until, explanation.workload)
            book.head_wait = (explanation.workload, explanation.blockers)
            return newly
        case "line":
            state.timeline.record_wait(waiting, explanation.blockers)
            return False
        case "retry":
            book.head_wait = (explanation.workload, explanation.blockers)
            if state.nodes.has_nodes:
                # Whoever came first may be of another tree, and only nodes tell when it is gone.
                state.rota.came_late[book] = None
            return False


def _file_under(state: ClusterState, book: QueueBook, sleeper: Sleeper, wait: Wait) -> None:
    """File a sleeper under everything that may bring it back."""
    only_room = not wait.watches_holdings and not wait.lacks_nodes
    book.tree.wakes.file(
        sleeper,
        wait.unblocked_by,
        holdings=wait.watches_holdings,
        room=state.rota.room if only_room else None,
    )
    if wait.lacks_nodes:
        state.rota.wait_for_nodes(sleeper)
    else:
        state.rota.minds_no_nodes(sleeper)
