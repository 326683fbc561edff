"""The search for victims on behalf of one workload: rules, back-off, and which algorithm to use.

Flavor assignment asks it whether others could leave (`simulate`); the cycle asks it who exactly
has to (`victims_for`). Nothing it tries stays on the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from unisono.engine.ledger import Ledger
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import Workload
from unisono.engine.preempt.candidates import BookOf, Target, UsageOf, Wish
from unisono.engine.preempt.classical import classical_victims
from unisono.engine.preempt.fair import fair_victims
from unisono.engine.quota.assign import Assignment, Verdict
from unisono.engine.quota.tree import Cell, borrow_level
from unisono.engine.state.queue_book import QueueBook


@dataclass(slots=True)
class VictimSearch:
    """Everything a search needs; satisfies `quota.assign.Preemption`."""

    workload: Workload
    book: QueueBook
    policy: Policy
    now: Instant
    ledger: Ledger
    book_of: BookOf
    usage_of: UsageOf | None
    gone: frozenset[WorkloadKey] = frozenset()

    @property
    def backs_off(self) -> bool:
        """Say whether it was preempted lately and must not make others leave yet (§18.2b)."""
        until = self.workload.may_preempt_at
        loops_allowed = self.policy.strict or not self.policy.anti_thrash
        return until is not None and until > self.now and not loops_allowed

    @property
    def has_rules(self) -> bool:
        """Say whether the queue has any rule by which others may be displaced."""
        rules = self.book.spec.preemption
        return rules.within_queue != "Never" or rules.reclaim != "Never"

    def may_try(self, cell: Cell, wanted: int, *, may_reclaim: bool) -> bool:
        """Say whether the rules allow looking for victims for this much of an account."""
        rules = self.book.spec.preemption
        return (
            cell.nominal >= wanted
            or may_reclaim
            or rules.borrow.policy != "Never"
            or (self.policy.fair_sharing is not None and rules.reclaim != "Never")
        )

    def simulate(self, cell: Cell, wanted: int) -> tuple[Verdict, int]:
        """Say how one account could be had, and from how far it would then be borrowed."""
        targets = self._search({cell: wanted}, {cell: None})
        if not targets:
            return Verdict.NO_VICTIMS, borrow_level(cell, wanted)[0]
        own = any(target.running.book is self.book for target in targets)
        mark = self.ledger.mark()
        for target in targets:
            self.ledger.remove(target.running.charges)
        level, _ = borrow_level(cell, wanted)
        self.ledger.rollback(mark)
        return (Verdict.PREEMPT if own else Verdict.RECLAIM), level

    def victims_for(self, assignment: Assignment) -> list[Target]:
        """Return who has to leave so that the assignment fits."""
        return self._search(assignment.charges, assignment.needs_victims)

    def _search(self, charges: dict[Cell, int], short: Mapping[Cell, None]) -> list[Target]:
        wish = Wish(
            workload=self.workload,
            book=self.book,
            charges=charges,
            short=tuple(cell.account for cell in short),
            now=self.now,
            gone=self.gone,
            only_evicting=self.backs_off,
            spares_fresh=not self.policy.strict,
        )
        fair = self.policy.fair_sharing
        if fair is None:
            return classical_victims(wish, self.ledger, self.book_of, self.usage_of)
        return fair_victims(
            wish,
            self.ledger,
            self.book_of,
            self.usage_of,
            fair.strategies,
            verify=not self.policy.strict,
        )
