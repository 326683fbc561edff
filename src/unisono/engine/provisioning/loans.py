"""Nodes on loan: a short job may use what is kept for a gang whose machines are still coming.

Only a job that says how long it runs, and only if it is over before the last machine is expected:
then the gang starts as if nobody had been there. Spec provisioning §5.16.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unisono.engine.model.explanation import WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.placement.gang import Spot
from unisono.engine.placement.seek import Seeker, placed_without
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.queue_book import Running
from unisono.engine.state.transaction import Ledger

# What is learned from earlier runs, or assumed for all, is nobody's word.
DECLARED = ("request", "job", "queue", "execution")


@dataclass(slots=True)
class Loans:
    """Who lends for long enough, who would to somebody shorter, and the ledger to try it on."""

    ledger: Ledger
    lenders: list[Running]
    others: list[Running]
    limit_ms: int

    def place(self, seeker: Seeker, assignment: Assignment) -> tuple[Spot, ...] | None:
        """Find nodes as if nothing were kept for those who lend; None if that does not help."""
        return self._without(self.lenders, seeker, assignment)

    def too_long(self, seeker: Seeker, assignment: Assignment) -> WouldDelay | None:
        """Say for whom nodes are kept that it could have, if it were over in time."""
        spots = self._without([*self.lenders, *self.others], seeker, assignment)
        if spots is None:
            return None
        nodes = {name for spot in spots for name, _ in spot.nodes}
        whom = [one for one in self.others if nodes & _nodes_of(one)]
        if not whom:
            return None
        first = min(whom, key=lambda one: (_ready_by(one), one.holding.workload.key))
        return WouldDelay(
            whom=first.holding.workload.key, start=_ready_by(first), limit_ms=self.limit_ms
        )

    def _without(
        self, lenders: list[Running], seeker: Seeker, assignment: Assignment
    ) -> tuple[Spot, ...] | None:
        tenants = [tenant for lender in lenders for tenant in lender.tenants]
        return placed_without(tenants, self.ledger, seeker, assignment)


def loans_for(
    state: ClusterState, workload: Workload, ledger: Ledger, now: Instant
) -> Loans | None:
    """Return what a workload could borrow now; None if nobody has anything to lend."""
    if not state.lenders.all:
        return None
    there = [one for one in state.lenders.all.values() if not one.holding.evicting]
    limit = workload.longest_ms if workload.longest_from in DECLARED else None
    long = [one for one in there if limit is not None and now + limit <= _ready_by(one)]
    others = [one for one in there if one not in long]
    assumed = (state.policy.backfill or Backfill()).default_limit_ms
    return Loans(ledger, long, others, assumed if limit is None else limit)


def lift(ledger: Ledger, lenders: Iterable[Running]) -> None:
    """Take those who lend off their nodes; they are not there yet."""
    for lender in lenders:
        for tenant in lender.tenants:
            ledger.unseat(tenant)


def lent_by(lenders: Iterable[Running], admission: Admission) -> tuple[WorkloadKey, ...]:
    """Return those of the lenders whose nodes an admission uses."""
    nodes = {name for one in admission.pod_sets for name, _ in one.nodes}
    return tuple(sorted(one.holding.workload.key for one in lenders if nodes & _nodes_of(one)))


def _nodes_of(running: Running) -> set[str]:
    return {name for tenant in running.tenants for name, _ in tenant.nodes}


def _ready_by(running: Running) -> Instant:
    found = running.holding.ready_by
    assert found is not None, "only who waits for machines lends"
    return found
