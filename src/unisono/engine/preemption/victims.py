"""The search for victims on behalf of one workload: rules, back-off, and which algorithm to use.

Flavor assignment asks it whether others could leave (`simulate`); the cycle asks it who exactly
has to (`victims_for`). Nothing it tries stays on the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import Workload
from unisono.engine.preemption.candidates import BookOf, Target, UsageOf, Wish
from unisono.engine.preemption.classical import classical_victims, victims_gap
from unisono.engine.preemption.fair import fair_victims
from unisono.engine.quota.assign import Assignment, Simulated, Verdict
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.quota_tree import Cell, available, borrow_level
from unisono.engine.state.transaction import Ledger


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
    displaces: bool = True  # False: it looks at another time, when nobody has to leave
    # Says whether an assignment finds nodes as things are on the ledger; None without nodes.
    find_place: Callable[[Assignment], bool] | None = None
    # Says whether only room counts for that; None: perhaps something else does.
    only_room_counts: Callable[[Assignment], bool] | None = None

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
        return self.displaces and (rules.within_queue != "Never" or rules.reclaim != "Never")

    def may_try(self, cell: Cell, wanted: int, *, may_reclaim: bool) -> bool:
        """Say whether the rules allow looking for victims for this much of an account."""
        rules = self.book.spec.preemption
        return self.displaces and (
            cell.nominal >= wanted
            or may_reclaim
            or rules.borrow.policy != "Never"
            or (self.policy.fair_sharing is not None and rules.reclaim != "Never")
        )

    def simulate(self, cell: Cell, wanted: int) -> Simulated:
        """Say how one account could be had, and from how far it would then be borrowed."""
        if not self.has_rules:
            short = wanted - max(0, available(cell))
            return Simulated(Verdict.NO_VICTIMS, borrow_level(cell, wanted)[0], short)
        wish = self._wish({cell: wanted}, {cell: None}, None, only_room_counts=False)
        quota = Ledger()  # nobody asks about nodes yet
        targets = self._search(wish, quota)
        if not targets:
            # Shares depend on every account, so with fair sharing anything freed may matter.
            fair = self.policy.fair_sharing is not None
            gap = None if fair else victims_gap(wish, cell, self.book_of)
            return Simulated(Verdict.NO_VICTIMS, borrow_level(cell, wanted)[0], gap)
        own = any(target.running.book is self.book for target in targets)
        for target in targets:
            target.take(quota)
        level, _ = borrow_level(cell, wanted)
        quota.rollback()
        return Simulated(Verdict.PREEMPT if own else Verdict.RECLAIM, level)

    def victims_for(self, assignment: Assignment, *, anywhere: bool = False) -> list[Target]:
        """Return who has to leave so that the assignment fits; `anywhere`: by quota alone."""
        if not self.has_rules:
            return []
        find_place = None if anywhere else self.find_place
        has_place = None if find_place is None else (lambda: find_place(assignment))
        only_room = self.only_room_counts is not None and self.only_room_counts(assignment)
        wish = self._wish(
            assignment.charges, assignment.needs_victims, has_place, only_room_counts=only_room
        )
        return self._search(wish, self.ledger)

    def _wish(
        self,
        charges: dict[Cell, int],
        short: Mapping[Cell, None],
        has_place: Callable[[], bool] | None,
        *,
        only_room_counts: bool,
    ) -> Wish:
        return Wish(
            workload=self.workload,
            book=self.book,
            charges=charges,
            short=tuple(cell.account for cell in short),
            now=self.now,
            gone=self.gone,
            only_evicting=self.backs_off,
            has_place=has_place,
            only_room_counts=only_room_counts,
            spares_fresh=not self.policy.strict,
            may_shrink=not self.policy.strict,
        )

    def _search(self, wish: Wish, ledger: Ledger) -> list[Target]:
        fair = self.policy.fair_sharing
        if fair is None:
            return classical_victims(wish, ledger, self.book_of, self.usage_of)
        return fair_victims(
            wish,
            ledger,
            self.book_of,
            self.usage_of,
            fair.strategies,
            verify=not self.policy.strict,
        )
