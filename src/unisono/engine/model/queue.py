"""Queues, cohorts and their quota, as users configured them."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    QueueName,
    ResourceName,
)
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Labels, LabelSelector, Taint, Toleration

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
MILLI = 1000  # a fair-sharing weight of 1


class Flavor(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of node: its labels and taints."""

    name: FlavorName
    node_labels: Labels = ()
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str = ""


class ResourceQuota(msgspec.Struct, frozen=True, kw_only=True):
    """How much of one resource; None means no limit on borrowing, or everything may be lent."""

    resource: ResourceName
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


class FlavorQuota(msgspec.Struct, frozen=True):
    """The quota of one flavor. A covered resource that it does not list is unmetered."""

    flavor: FlavorName
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that come from one flavor together, and the flavors to try, in order.

    With `pool` set, the quota stands once for all flavors: they share it for each resource.
    """

    covered: tuple[ResourceName, ...]
    flavors: tuple[FlavorQuota, ...]
    pool: tuple[ResourceQuota, ...] | None = None


class BorrowWithinCohort(msgspec.Struct, frozen=True, kw_only=True):
    """May a workload that has to borrow preempt?"""

    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: int | None = None


class PreemptionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which workloads a queue's workloads may preempt."""

    within_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim: Literal["Never", "LowerPriority", "Any"] = "Never"
    borrow: BorrowWithinCohort = BorrowWithinCohort()
    # Ours: a workload admitted less than this ago is not preempted (spec quota §18.5).
    min_runtime_ms: int = 0
    # Volcano's: only workloads whose pods all have this label are preempted, by any queue.
    victims_have: tuple[str, str] | None = None
    # Volcano's: whether other queues may take back what this one borrows.
    may_be_reclaimed: bool = True


class FlavorFungibility(msgspec.Struct, frozen=True, kw_only=True):
    """When to try the next flavor although this one fits."""

    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor"] = "MayStopSearch"
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"
    preference: Literal["", "BorrowingOverPreemption", "PreemptionOverBorrowing"] = ""


class CheckRule(msgspec.Struct, frozen=True):
    """An admission check of a queue; no flavors means all of them."""

    name: str
    on_flavors: tuple[FlavorName, ...] = ()


class ClusterQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue with quota of its own."""

    name: QueueName
    cohort: CohortName | None = None
    groups: tuple[ResourceGroup, ...] = ()
    strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None  # None matches no namespace
    fungibility: FlavorFungibility = FlavorFungibility()
    preemption: PreemptionRules = PreemptionRules()
    checks: tuple[CheckRule, ...] = ()
    stop: StopPolicy = "None"
    weight_milli: int = MILLI
    usage_based_admission: bool = False  # admission fair sharing
    terminating: bool = False
    unlimited: bool = False  # no quota at all: what fits on nodes may start


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """Queues that share, and quota that belongs to all of them."""

    name: CohortName
    parent: CohortName | None = None
    groups: tuple[ResourceGroup, ...] = ()
    weight_milli: int = MILLI


class LocalQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace's entry to a ClusterQueue."""

    key: LocalQueueKey
    queue: QueueName
    stop: StopPolicy = "None"
    weight_milli: int = MILLI
    # What it used lately (admission fair sharing), in millionths of a unit, as last written down.
    consumed_micro: Amounts = ()
    consumed_at: Instant = Instant(0)
    penalty_micro: Amounts = ()  # for reservations since then
