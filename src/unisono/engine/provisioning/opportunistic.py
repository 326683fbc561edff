"""Opportunistic use of held nodes: a short job runs where a gang waits for its last machines.

Only a job that says how long it runs may, and only if it is over before the last machine is
expected: then the gang starts as if the nodes had been idle. Spec provisioning §5.16. Plans
record the gang as `lent_by`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unisono.engine.model.explanation import WouldDelay
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Admission, Workload
from unisono.engine.placement.gang import PodSetPlacement
from unisono.engine.placement.node_search import NodeSearch, placed_without
from unisono.engine.quota.assign import Assignment
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import Running
from unisono.engine.state.transaction import Transaction

# Sources of a time limit that was declared. One learned from earlier runs, or assumed for all, is a
# guess: the job could still run when the gang has to start.
DECLARED = ("request", "job", "queue", "execution")


@dataclass(slots=True)
class OpportunisticUse:
    """Gangs that hold nodes for long enough, those that do not, and a transaction to try it on."""

    transaction: Transaction
    holders: list[Running]
    others: list[Running]
    limit_ms: int

    def place(
        self, node_search: NodeSearch, assignment: Assignment
    ) -> tuple[PodSetPlacement, ...] | None:
        """Find nodes as if the holders held none; None if that does not help."""
        return self._without(self.holders, node_search, assignment)

    def too_long(self, node_search: NodeSearch, assignment: Assignment) -> WouldDelay | None:
        """Name a gang that holds nodes which the job could use, if it were over in time."""
        placements = self._without([*self.holders, *self.others], node_search, assignment)
        if placements is None:
            return None
        nodes = {name for placed in placements for name, _ in placed.nodes}
        affected = [one for one in self.others if nodes & _nodes_of(one)]
        if not affected:
            return None
        first = min(affected, key=lambda one: (_ready_by(one), one.admitted.workload.key))
        return WouldDelay(
            reserved_for=first.admitted.workload.key, start=_ready_by(first), limit_ms=self.limit_ms
        )

    def _without(
        self, holders: list[Running], node_search: NodeSearch, assignment: Assignment
    ) -> tuple[PodSetPlacement, ...] | None:
        placed_pods = [placed for holder in holders for placed in holder.placed_pods]
        return placed_without(placed_pods, self.transaction, node_search, assignment)


def opportunistic_use(
    state: ClusterState, workload: Workload, transaction: Transaction, now: Instant
) -> OpportunisticUse | None:
    """Return which held nodes a workload could use now; None if no gang waits for machines."""
    if not state.node_holders.all:
        return None
    there = [one for one in state.node_holders.all.values() if not one.admitted.evicting]
    limit = workload.longest_ms if workload.longest_from in DECLARED else None
    long = [one for one in there if limit is not None and now + limit <= _ready_by(one)]
    others = [one for one in there if one not in long]
    assumed = (state.policy.backfill or Backfill()).default_limit_ms
    return OpportunisticUse(transaction, long, others, assumed if limit is None else limit)


def set_aside(transaction: Transaction, holders: Iterable[Running]) -> None:
    """Take holders off their nodes on the transaction: their pods do not run yet."""
    for holder in holders:
        for placed in holder.placed_pods:
            transaction.vacate(placed)


def holders_used(holders: Sequence[Running], admission: Admission) -> tuple[WorkloadKey, ...]:
    """Return those of the holders whose nodes an admission uses."""
    if not holders:  # as for nearly all admissions
        return ()
    nodes = {name for one in admission.pod_sets for name, _ in one.nodes}
    return tuple(sorted(one.admitted.workload.key for one in holders if nodes & _nodes_of(one)))


def _nodes_of(running: Running) -> set[str]:
    return {name for placed in running.placed_pods for name, _ in placed.nodes}


def _ready_by(running: Running) -> Instant:
    found = running.admitted.ready_by
    assert found is not None, "only a gang that waits for machines holds nodes"
    return found
