"""Priority order over all ClusterQueues, as far as the state has to know of it.

By default every ClusterQueue has an order of its own. A policy may replace that by one priority
over all queues, with limits on accounts (spec priority §1). Which priority, and which limits, is
`unisono.engine.ordering`'s to say: it subclasses what stands here, and `unisono.engine.cluster`
puts both together, so that the state imports no rule.
"""

from __future__ import annotations

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Policy
from unisono.engine.state.changes import NodeChange
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.features import Feature
from unisono.engine.state.pending_queue import PendingQueue, Waiting

Accruing = tuple[tuple[WorkloadKey, Instant], ...]  # since when workloads gain age


class PriorityOrder(Feature):
    """No priority order: of a state whose policy never asks for one."""

    # `is_on`: the policy asks for a priority order.

    # --- what happens besides workloads ----------------------------------------------------------

    def policy_changed(self, policy: Policy) -> None:
        """Begin, change or end the priority order that the policy asks for."""
        assert policy.turns is None, "this state was made without priority order"

    def time_passed(self) -> None:
        """The state's clock has moved."""

    def node_changed(self, change: NodeChange) -> None:
        """A node came, changed or went."""

    def queue_changed(self, cq: ClusterQueueState) -> None:
        """A ClusterQueue's configuration changed, and with it perhaps quota."""

    # --- what the state asks ---------------------------------------------------------------------

    def pending_queue(self, known: PendingQueue) -> PendingQueue:
        """Return the queue to use in place of a known one, empty unless it is the same."""
        return known

    def blocker(self, key: WorkloadKey) -> Blocker | None:
        """Return what about its account, limits or a hold keeps a workload out of every queue."""
        return None

    def block_by_limit(
        self, cq: ClusterQueueState, waiting: Waiting, blockers: tuple[Blocker, ...]
    ) -> None:
        """Set a workload and all under the same limits aside until those limits allow more."""
        raise AssertionError("only a priority order has limits")

    def reconsidered(self) -> list[WorkloadKey]:
        """Return the pending workloads whose blocker may have changed since the last time."""
        return []

    # --- snapshots -------------------------------------------------------------------------------

    def usage(self) -> tuple[UsageRecord, ...]:
        """Return what accounts, users and QOS have used."""
        return ()

    def load_usage(self, record: UsageRecord) -> None:
        """Go on from recorded usage."""

    def accruing(self) -> Accruing:
        """Return since when workloads gain age, of those that needed a slot for it."""
        return ()

    def load_accruing(self, accruing: Accruing) -> None:
        """Go on from recorded starts of age."""
