"""Events of workloads, as parts of the state subscribe to them.

A feature (priority order, arrays, dependencies, ...) follows workloads through these events instead
of adding a condition to every method of `ClusterState`.

Most clusters use few features, and events are most of the work, so a call that does nothing is not
made: an event reaches the features that override it (`subscribers`), and of plain workloads only
those that are on.
"""

from __future__ import annotations

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Policy
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import NodeChange
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.pending_queue import PendingQueue, PendingWorkload


class Feature:
    """Subscribes to what happens to workloads."""

    # There is something to follow: it gets events of every workload. While this is False, of
    # those only that may turn it on (`is_plain` says which cannot), and of none that ends.
    is_on: bool = False

    def entered(self, workload: Workload, *, was_held: bool) -> None:
        """A workload is pending; `was_held`: until now a user or an operator held it."""

    def left(self, workload: Workload) -> None:
        """A workload is no longer pending: it starts, ends, or is about to be queued anew."""

    def started(self, running: Running) -> None:
        """A workload holds quota and has its nodes."""

    def changed(self, running: Running) -> None:
        """What a workload holds has changed."""

    def ended(self, running: Running) -> None:
        """A workload holds neither quota nor nodes any more."""


def subscribers(event: str, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    """Return the features that override what happens at an event, in their order."""
    ignores = getattr(Feature, event)
    return tuple(each for each in features if getattr(type(each), event) is not ignores)


# --- the priority order over all ClusterQueues ----------------------------------------------------

# By default every ClusterQueue has an order of its own. A policy may replace that by one priority
# over all queues, with limits on accounts (spec priority §1). Which priority, and which limits, is
# `unisono.engine.ordering`'s to say: it subclasses what is here, and `unisono.engine.cluster` puts
# both together, so that the state imports no rule.

Accruing = tuple[tuple[WorkloadKey, Instant], ...]  # since when workloads gain age


class PriorityOrder(Feature):
    """No priority order: of a state whose policy never asks for one."""

    # `is_on`: the policy asks for a priority order.

    # --- what happens besides workloads ----------------------------------------------------------

    def policy_changed(self, policy: Policy) -> None:
        """Begin, change or end the priority order that the policy asks for."""
        assert policy.multifactor is None, "this state was made without priority order"

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
        self, cq: ClusterQueueState, waiting: PendingWorkload, blockers: tuple[Blocker, ...]
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
