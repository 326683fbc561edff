"""Shopping within a cycle: who has quota and no place may have machines bought.

Asked at the moment of decision, not at nomination: then what others of the same cycle have bought,
or have taken of the free nodes, counts already. Spec provisioning §5.2 and §5.16.
"""

from __future__ import annotations

from unisono.engine.model.explanation import Blocker, CannotBuy
from unisono.engine.model.names import Instant
from unisono.engine.nominate import Nominee
from unisono.engine.placement.admission import placed_counts
from unisono.engine.provisioning.growing import buy_more
from unisono.engine.provisioning.purchase import Bought, Shop
from unisono.engine.provisioning.shelf import Shelf
from unisono.engine.quota.assign import Assignment, Verdict, resized
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.tenant import Tenant
from unisono.engine.state.transaction import Ledger


class Shopping:
    """What one cycle can buy."""

    def __init__(self, state: ClusterState, ledger: Ledger, now: Instant) -> None:
        """Look at the market as it is before this cycle bought anything."""
        market = state.config.market
        assert market is not None, "without a market nobody buys"
        self._ledger = ledger
        self._preference = state.policy.provisioning.preference
        self.shop = Shop(state, Shelf(market), now)

    def serve(self, nominee: Nominee, leaving: list[Tenant]) -> None:
        """Make a nominee fit by machines that are bought for it, or note why not.

        Nodes that are counted as free because somebody is leaving them are not free yet.
        """
        if nominee.targets and self._preference == "reclaim-then-provision":
            return
        if nominee.is_patient or nominee.seeker is None or nominee.purchase is not None:
            return
        mark = self._ledger.mark()
        for tenant in leaving:
            self._ledger.seat(tenant)
        refusals: list[Blocker] = []
        for assignment in nominee.affordable:
            answer = self._buy(nominee, assignment)
            if isinstance(answer, CannotBuy):
                refusals.append(answer)
            elif answer[1].purchase.lots:
                _take(nominee, *answer)
                break
        self._ledger.rollback(mark)
        if nominee.purchase is None:
            _refuse(nominee, refusals, may_preempt=self._preference != "provision-only")

    def _buy(
        self, nominee: Nominee, assignment: Assignment
    ) -> tuple[Assignment, Bought] | CannotBuy:
        assert nominee.seeker is not None, "the caller asked"
        if nominee.replaced is not None:
            return buy_more(self.shop, nominee, assignment)
        answer = self.shop.buy(nominee.waiting.workload, nominee.seeker.gang(assignment))
        return answer if isinstance(answer, CannotBuy) else (assignment, answer)


def _take(nominee: Nominee, assignment: Assignment, bought: Bought) -> None:
    counts = placed_counts(bought.spots, nominee.waiting.shape)
    if counts != assignment.counts:  # an elastic set begins with what it needs
        assignment = resized(assignment, nominee.menu, counts)
    nominee.assignment = assignment
    nominee.spots = bought.spots
    nominee.targets = []
    nominee.purchase = bought.purchase


def _refuse(nominee: Nominee, refusals: list[Blocker], *, may_preempt: bool) -> None:
    if nominee.targets and may_preempt:
        return
    nominee.targets = []
    nominee.assignment.verdict = Verdict.NO_FIT
    blockers = nominee.assignment.blockers
    others = [one for one in blockers if not isinstance(one, CannotBuy)]
    nominee.assignment.blockers = [*refusals, *others]
