"""Waiting for pods that are about to leave their nodes (spec placement §14, scenario 15).

A pod of somebody else that was told to end still holds its node. If the operator allows waiting,
a gang that finds no place now, and would find one without such pods, waits for them instead of
making others leave. Its place is kept as that of a preemptor is; nothing starts before they are
gone, and whoever is overdue is not counted on any longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unisono.engine.model.explanation import GangDoesNotFit, WaitingForPods
from unisono.engine.model.names import Instant
from unisono.engine.model.node import NodePod
from unisono.engine.placement.gang import Spot
from unisono.engine.placement.seek import Seeker
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.nodes import OVERDUE_MS, Leaving, NodeState
from unisono.engine.state.tenant import Tenant
from unisono.engine.state.transaction import Ledger


@dataclass(slots=True)
class Patience:
    """Pods of others that will be gone soon enough, and the ledger to try things on."""

    ledger: Ledger
    going: list[Leaving]

    def place(self, seeker: Seeker, assignment: Assignment) -> tuple[Spot, ...] | None:
        """Find nodes as if they were gone; None if that does not help."""
        tenants = [tenant for _, tenant in self.going]
        return placed_without(tenants, self.ledger, seeker, assignment)


def placed_without(
    tenants: Sequence[Tenant], ledger: Ledger, seeker: Seeker, assignment: Assignment
) -> tuple[Spot, ...] | None:
    """Find nodes as if these were not there; None if there are none of them, or still no place."""
    if not tenants:
        return None
    mark = ledger.mark()
    for tenant in tenants:
        ledger.unseat(tenant)
    before = seeker.last_no
    answer = seeker.place(assignment)
    ledger.rollback(mark)
    if isinstance(answer, GangDoesNotFit):
        seeker.last_no = before  # why there is no place is told as things are
        return None
    return answer


def patience(nodes: NodeState, ledger: Ledger, now: Instant) -> Patience:
    """Return whom one may wait for now."""
    return Patience(ledger, nodes.leaving(now))


def waiting_for(pods: list[NodePod]) -> WaitingForPods:
    """Say for whom a gang waits, and until when at the latest."""
    late = max(pod.leaves_at or 0 for pod in pods) + OVERDUE_MS
    return WaitingForPods(pods=tuple(pod.key for pod in pods), until=Instant(late))
