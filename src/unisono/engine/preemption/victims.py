"""The search for victims on behalf of one workload: rules, back-off, and which algorithm to use.

Flavor assignment asks whether preemption could help (`simulate`); nomination asks for the victims
(`victims_for`). Nothing that is tried stays on the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from unisono.engine.model.explanation import (
    Blocker,
    ExceedsMaximum,
    FlavorMismatch,
    QuotaExhausted,
    ResourceNotCovered,
    WaitingForVictims,
)
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Victim
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.preemption.candidates import PreemptionRequest, QueueAt, Target, UsageOf
from unisono.engine.preemption.classical import classical_victims, victims_gap
from unisono.engine.preemption.fair import fair_victims
from unisono.engine.quota.assign import Assignment, Simulated, Verdict
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.quota_tree import Cell, available, borrow_level
from unisono.engine.state.transaction import Transaction


@dataclass(slots=True)
class VictimSearch:
    """Everything a search needs; satisfies `quota.assign.Preemption`."""

    workload: Workload
    cq: ClusterQueueState
    policy: Policy
    now: Instant
    transaction: Transaction
    queue_at: QueueAt
    usage_of: UsageOf | None
    evicted: frozenset[WorkloadKey] = frozenset()
    may_preempt: bool = True  # False: it asks about another time, for which nothing is preempted
    # Says whether an assignment finds nodes as things are on the transaction; None without nodes.
    find_place: Callable[[Assignment], bool] | None = None
    # Says whether only capacity counts for that; None: perhaps something else does.
    only_capacity_counts: Callable[[Assignment], bool] | None = None

    @property
    def backs_off(self) -> bool:
        """Say whether it was preempted lately and must not preempt yet (§18.2b)."""
        until = self.workload.may_preempt_at
        loops_allowed = self.policy.strict or not self.policy.anti_thrash
        return until is not None and until > self.now and not loops_allowed

    @property
    def has_rules(self) -> bool:
        """Say whether the queue has any rule that lets it preempt."""
        rules = self.cq.spec.preemption
        return self.may_preempt and (rules.within_queue != "Never" or rules.reclaim != "Never")

    def may_try(self, cell: Cell, wanted: int, *, may_reclaim: bool) -> bool:
        """Say whether the rules allow looking for victims for this much of a flavor-resource."""
        rules = self.cq.spec.preemption
        return self.may_preempt and (
            cell.nominal >= wanted
            or may_reclaim
            or rules.borrow.policy != "Never"
            or (self.policy.fair_sharing is not None and rules.reclaim != "Never")
        )

    def simulate(self, cell: Cell, wanted: int) -> Simulated:
        """Say how one flavor-resource could be had, and from how far it would then be borrowed."""
        if not self.has_rules:
            short = wanted - max(0, available(cell))
            return Simulated(Verdict.NO_VICTIMS, borrow_level(cell, wanted)[0], short)
        request = self._request({cell: wanted}, {cell: None}, None, only_capacity_counts=False)
        quota = Transaction()  # nodes are not asked about yet
        targets = self._search(request, quota)
        if not targets:
            # Shares depend on all flavor-resources: with fair sharing any release may matter.
            fair = self.policy.fair_sharing is not None
            gap = None if fair else victims_gap(request, cell, self.queue_at)
            return Simulated(Verdict.NO_VICTIMS, borrow_level(cell, wanted)[0], gap)
        own = any(target.running.cq is self.cq for target in targets)
        for target in targets:
            target.take(quota)
        level, _ = borrow_level(cell, wanted)
        quota.rollback()
        return Simulated(Verdict.PREEMPT if own else Verdict.RECLAIM, level)

    def victims_for(self, assignment: Assignment, *, anywhere: bool = False) -> list[Target]:
        """Return the victims whose eviction lets an assignment fit; `anywhere`: by quota alone."""
        if not self.has_rules:
            return []
        find_place = None if anywhere else self.find_place
        has_place = None if find_place is None else (lambda: find_place(assignment))
        only_capacity = self.only_capacity_counts is not None and self.only_capacity_counts(
            assignment
        )
        request = self._request(
            assignment.charges,
            assignment.needs_victims,
            has_place,
            only_capacity_counts=only_capacity,
        )
        return self._search(request, self.transaction)

    def _request(
        self,
        charges: dict[Cell, int],
        short: Mapping[Cell, None],
        has_place: Callable[[], bool] | None,
        *,
        only_capacity_counts: bool,
    ) -> PreemptionRequest:
        return PreemptionRequest(
            workload=self.workload,
            cq=self.cq,
            charges=charges,
            short=tuple(cell.flavor_resource for cell in short),
            now=self.now,
            evicted=self.evicted,
            only_evicting=self.backs_off,
            has_place=has_place,
            only_capacity_counts=only_capacity_counts,
            spares_fresh=not self.policy.strict,
            may_shrink=not self.policy.strict,
        )

    def _search(self, request: PreemptionRequest, transaction: Transaction) -> list[Target]:
        fair = self.policy.fair_sharing
        if fair is None:
            return classical_victims(request, transaction, self.queue_at, self.usage_of)
        return fair_victims(
            request,
            transaction,
            self.queue_at,
            self.usage_of,
            fair.strategies,
            verify=not self.policy.strict,
        )


def named(target: Target) -> Victim:
    """Return a victim as a plan names it: evicted or shrunk, and if an earlier plan did it."""
    admitted = target.running.admitted
    keeps = target.stays.admission if target.stays is not None else None
    return Victim(
        workload=admitted.workload.key,
        reason=target.reason,
        already_evicting=admitted.evicting or (keeps is not None and _same(keeps, admitted.keeps)),
        keeps=keeps,
    )


def _same(one: Admission, other: Admission | None) -> bool:
    """Say whether two parts of one admission have as many pods of each set."""
    return other is not None and all(
        mine.count == theirs.count
        for mine, theirs in zip(one.pod_sets, other.pod_sets, strict=True)
    )


def waiting_for_victims(
    victims: tuple[Victim, ...], lacks: Iterable[Blocker] = (), *, of_another: bool = False
) -> WaitingForVictims:
    """Name the victims that a preemptor waits for: some leave, others give up pods.

    `lacks` are the facts of its nomination, of which those about quota and flavors are kept.
    """
    return WaitingForVictims(
        victims=tuple(victim.workload for victim in victims if victim.keeps is None),
        shrinking=tuple(victim.workload for victim in victims if victim.keeps is not None),
        lacks=tuple(one for one in lacks if isinstance(one, _OF_FLAVORS)),
        of_another=of_another,
    )


_OF_FLAVORS = (QuotaExhausted, ExceedsMaximum, ResourceNotCovered, FlavorMismatch)
