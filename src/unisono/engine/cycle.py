"""The cycle: one decision over one picture of the cluster. Start reading the engine here.

`plan(state, now)` looks at the head of every queue that is worth a look and decides, in order:

    1. stops        who must leave because a queue was stopped
    2. nominate     what each head could get on its own          (engine/nominate.py)
    3. order        whose turn it is                             (engine/ordering/heads.py)
                    by accounts, if the policy says so           (engine/in_turn.py)
    4. decide       admit, make others leave, or wait; every decision is booked on a ledger before
                    the next one is taken                        (engine/decisions.py)
    5. explain      everybody who was examined and waits has the facts why

With backfill everybody who waits is looked at in turn       (engine/backfill/backfill.py).

Nothing is changed: the ledger is rolled back, and `state.filing.carry_out` (or the cluster's own
events) makes the plan true. Spec quota §6. The same state gives the same plan, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unisono.engine.backfill.backfill import plan_in_time
from unisono.engine.decisions import Cycle
from unisono.engine.in_turn import decide_in_turn
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.nominate import Nominee, nominate
from unisono.engine.ordering.heads import Tournament, classical_key
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.quota_tree import Node
from unisono.engine.state.transaction import Ledger
from unisono.engine.stops import stops_due

# How a cycle is decided: by `plan`, or by somebody who also records it.
Decides = Callable[[ClusterState, Instant], Plan]


def plan(state: ClusterState, now: Instant) -> Plan:
    """Decide one cycle; time never goes back, whatever the caller's clock says."""
    now = max(now, state.now)
    state.evaluating = None
    state.refresh()
    if state.timeline.is_on:
        return plan_in_time(state, now)
    cycle = Cycle(state, now, Ledger(state.nodes.tenancy))
    stops = stops_due(state, now)
    cycle.victims.update(dict.fromkeys(stop.workload for stop in stops))
    multifactor = multifactor_of(state)
    if multifactor is not None:
        books = decide_in_turn(cycle, multifactor)
    else:
        nominees = _nominees(state, cycle.ledger, now)
        cycle.is_last = len(nominees) == 1
        for nominee in _in_order(state, nominees, cycle.touched):
            cycle.decide(nominee)
        books = [nominee.book for nominee in nominees]
    cycle.ledger.rollback()
    return Plan(
        based_on=state.version,
        now=now,
        admissions=tuple(cycle.admissions),
        preemptions=tuple(cycle.preemptions),
        awaits=tuple(cycle.awaits),
        stops=tuple(stops),
        waits=tuple(cycle.waits),
        examined=tuple(sorted(book.spec.name for book in books)),
    )


def _nominees(state: ClusterState, ledger: Ledger, now: Instant) -> list[Nominee]:
    """Nominate the head of every queue that is ready."""
    heads = {book: state.head_of(book) for book in state.rota.ready if not book.stalled}
    if state.nodes.has_nodes and any(heads.values()):
        for book in state.rota.claimants:
            if book.pending.preemptor is not None and book.blocker is None:
                heads[book] = state.head_of(book)
    return [
        nominate(state, book, head, ledger, now) for book, head in heads.items() if head is not None
    ]


def _in_order(
    state: ClusterState, nominees: list[Nominee], touched: list[Node]
) -> Iterator[Nominee]:
    """Yield nominees in the order of decision; fair sharing looks at shares as they change.

    `touched` names the queues whose usage the decisions in between changed.
    """
    if state.policy.fair_sharing is None:
        yield from sorted(nominees, key=classical_key)
        return
    by_root: dict[str, list[Nominee]] = {}
    for nominee in nominees:
        root = nominee.node.root()
        # A cohort and a queue without a cohort may have the same name.
        by_root.setdefault(f"{root.name}/{root.is_queue}", []).append(nominee)
    for name in sorted(by_root):
        tournament = Tournament(by_root[name])
        while (winner := tournament.pop()) is not None:
            touched.clear()
            yield winner
            for node in touched:
                tournament.touch(node)
