"""Waiting for terminating pods instead of preempting (spec placement §14, scenario 15).

A pod that no workload of ours owns, and that was told to end, still holds its node. If the policy
allows waiting, a gang that finds no place now, and would find one without such pods, waits for
them. Its place is kept as that of a preemptor is; nothing starts before they are gone, and an
overdue pod is not counted on any longer.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.engine.model.explanation import WaitingForPods
from unisono.engine.model.names import Instant
from unisono.engine.model.node import NodePod
from unisono.engine.placement.gang import PodSetPlacement
from unisono.engine.placement.node_search import NodeSearch, placed_without
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.nodes import OVERDUE_MS, NodeState, TerminatingPod
from unisono.engine.state.transaction import Transaction


@dataclass(slots=True)
class TerminatingPods:
    """Pods of others that will be gone soon enough, and the transaction to try placements on."""

    transaction: Transaction
    pods: list[TerminatingPod]

    def place(
        self, node_search: NodeSearch, assignment: Assignment
    ) -> tuple[PodSetPlacement, ...] | None:
        """Find nodes as if the pods were gone; None if that does not help."""
        placed_pods = [placed for _, placed in self.pods]
        return placed_without(placed_pods, self.transaction, node_search, assignment)


def terminating_pods(nodes: NodeState, transaction: Transaction, now: Instant) -> TerminatingPods:
    """Return the pods that a gang may wait for now."""
    return TerminatingPods(transaction, nodes.terminating(now))


def waiting_for(pods: list[NodePod]) -> WaitingForPods:
    """Name the pods that a gang waits for, and the instant until which it does."""
    latest = max(pod.leaves_at or 0 for pod in pods) + OVERDUE_MS
    return WaitingForPods(pods=tuple(pod.key for pod in pods), until=Instant(latest))
