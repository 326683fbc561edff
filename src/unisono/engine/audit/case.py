"""One preemption with everything that its rules look at, and how sure they can be.

A plan tells what was decided, not at which moment of the cycle. By spec quota §6 a preemptor is
judged against the snapshot, or, if somebody before it took the same victims, against what the
cycle had made of it by then. So there is not one set of books but several, and a rule may only
complain about what is wrong with all of them:

    moments   the most that can have been in use when the preemptor was judged:
              in the snapshot, and after the earlier preemptions; with all admissions in both
    earlier   the least: the victims of earlier preemptions are gone, nobody has come
    vacated   the least at the end: all victims of the plan are gone, nobody has come

Use only ever lowers what is available, so what fits with the most in use fits with less.

What the plan does not show at all is quota held back for somebody: for a workload that found no
victims (§6), or for an earlier preemptor that still waits (§18.2a). With backfill everybody is
judged on nodes as those left them who were decided before (spec time §3). `is_hidden` says that
this cannot be ruled out; rules that depend on it then keep silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from unisono.engine.audit.snapshot_index import SnapshotIndex
from unisono.engine.audit.tree import Books, Charge, Node, queue_node
from unisono.engine.model.explanation import QuotaExhausted
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan, Preempt
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.model.resources import Account
from unisono.engine.model.workload import Holding, Workload


@dataclass(frozen=True, slots=True)
class Case:
    """A preemptor, its victims, and the books that it may have been judged with."""

    index: SnapshotIndex
    preemption: Preempt
    workload: Workload
    queue: ClusterQueue
    charge: Charge
    victims: dict[WorkloadKey, Holding]
    now: Instant
    moments: tuple[Books, Books]
    earlier: Books
    vacated: Books
    is_first: bool  # nobody of its cohort tree made others leave before it in this plan
    is_hidden: bool

    @property
    def node(self) -> Node:
        """The preemptor's queue in the tree."""
        return queue_node(self.queue.name)

    def without(self, books: Books, *, leaving: Iterable[Holding] | None = None) -> Books:
        """Return books that these have left; all of the case's victims, if nobody is named."""
        gone = self.victims.values() if leaving is None else leaving
        return books.moved(released=[self.index.held(each) for each in gone])

    def needed(self) -> set[Account]:
        """Collect the accounts that the preemptor may have lacked: at least those it did lack.

        Where there are nodes it may have lacked only those; then all of its accounts count.
        """
        return {
            account
            for account, amount in self.charge.amounts.items()
            if self.is_hidden
            or self.index.has_nodes
            or any(amount > books.available(self.node, account) for books in self.moments)
        }

    def lacked(self) -> set[Account]:
        """Collect the accounts that the preemptor surely lacked: at most those it did lack."""
        return {
            account
            for account, amount in self.charge.amounts.items()
            if amount > self.earlier.available(self.node, account)
        }

    def borrows(self, books: Books) -> bool:
        """Say whether the preemptor would make its queue borrow."""
        return any(
            books.is_borrowing_with(self.node, account, amount)
            for account, amount in self.charge.amounts.items()
        )


def cases_of(index: SnapshotIndex, plan: Plan) -> Iterator[Case]:
    """Put together what the rules need, for every preemption whose workload and queue are known."""
    tree = index.tree
    victims = index.victims(plan.preemptions)
    vacated = _without(index, index.books, victims)
    holding_back = _roots_of_unclaimed(index, victims)
    in_time = index.policy.backfill is not None and index.has_nodes
    is_crowded = in_time and bool(plan.admissions or len(plan.preemptions) > 1)
    earlier = index.books
    alone = in_turn = index.books.moved(charged=index.charges(plan.admissions))
    seen: set[Node] = set()
    for preemption in plan.preemptions:
        workload = index.waiting.get(preemption.workload)
        queue = index.queues.get(preemption.admission.queue)
        if workload is None or queue is None:
            continue
        root = tree.root(queue_node(queue.name))
        charge = index.charge(workload, preemption.admission)
        # A slice that grows counts on what it replaces, in all of the books.
        old = [] if workload.replaces in victims else index.replaced(workload)
        own = index.victims((preemption,))
        yield Case(
            index=index,
            preemption=preemption,
            workload=workload,
            queue=queue,
            charge=charge,
            victims=own,
            now=plan.now,
            moments=(alone.moved(released=old), in_turn.moved(released=old)),
            earlier=earlier.moved(released=old),
            vacated=vacated.moved(released=old),
            is_first=root not in seen,
            is_hidden=is_crowded
            or root in holding_back
            or (root in seen and _may_book(index, plan, root)),
        )
        earlier = _without(index, earlier, own)
        in_turn = _without(index, in_turn, own).moved(charged=[charge], released=old)
        seen.add(root)


def _without(index: SnapshotIndex, books: Books, leaving: Mapping[WorkloadKey, Holding]) -> Books:
    return books.moved(released=[index.held(holding) for holding in leaving.values()])


def _roots_of_unclaimed(index: SnapshotIndex, victims: Mapping[WorkloadKey, Holding]) -> set[Node]:
    """Return the trees in which somebody leaves whom no preemption of this plan counts on.

    It may leave for a preemptor that the plan does not mention.
    """
    return {
        index.tree.root(queue_node(holding.admission.queue))
        for key, holding in index.holdings.items()
        if (holding.evicting or holding.keeps is not None) and key not in victims
    }


def _may_book(index: SnapshotIndex, plan: Plan, root: Node) -> bool:
    """Say whether somebody who waits in the tree had quota held back for it.

    Whoever found no victims, or counts on another's, books what it waits for. That concerns only
    those who were judged afresh because an earlier preemption took the same victims.
    """
    preemptors = {preemption.workload for preemption in plan.preemptions}
    for wait in plan.waits:
        queue = wait.explanation.queue
        if wait.explanation.workload in preemptors or queue is None:
            continue
        tried = any(
            isinstance(blocker, QuotaExhausted) and blocker.tried_preemption
            for blocker in wait.explanation.blockers
        )
        if (tried or wait.outcome == "sticky") and index.tree.root(queue_node(queue)) == root:
            return True
    return False
