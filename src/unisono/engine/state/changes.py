"""What can happen, as the engine receives it: one event, one change of state.

Three events cover a workload's whole life. It *waits* (submitted, edited, or evicted and now
really gone from its nodes), it *holds* quota (admitted, evicting, ready, shrinking), or it is
*gone* (finished or deleted). Each is an upsert, so receiving it twice changes nothing.
"""

from __future__ import annotations

import msgspec

from unisono.engine.model.multifactor import UsageRecord
from unisono.engine.model.names import (
    CohortName,
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    WorkloadKey,
)
from unisono.engine.model.node import Node, NodePod, Topology
from unisono.engine.model.policy import Policy
from unisono.engine.model.provisioning import Offerings
from unisono.engine.model.queue import ClusterQueue, Cohort, Flavor, LocalQueue
from unisono.engine.model.snapshot import AdmissionCheck, Namespace
from unisono.engine.model.workload import AdmittedWorkload, Result, Workload


class _Change(msgspec.Struct, frozen=True, tag=True):
    """Base of all changes; it only carries the tag."""


class WorkloadWaits(_Change, frozen=True):
    workload: Workload


class WorkloadHolds(_Change, frozen=True):
    admitted: AdmittedWorkload = msgspec.field(name="holding")  # as recordings have it


class WorkloadGone(_Change, frozen=True):
    key: WorkloadKey


class FlavorSet(_Change, frozen=True):
    flavor: Flavor


class FlavorGone(_Change, frozen=True):
    name: FlavorName


class QueueSet(_Change, frozen=True):
    queue: ClusterQueue


class QueueGone(_Change, frozen=True):
    name: QueueName


class CohortSet(_Change, frozen=True):
    cohort: Cohort


class CohortGone(_Change, frozen=True):
    name: CohortName


class LocalQueueSet(_Change, frozen=True):
    local_queue: LocalQueue


class LocalQueueGone(_Change, frozen=True):
    key: LocalQueueKey


class NamespaceSet(_Change, frozen=True):
    namespace: Namespace


class NamespaceGone(_Change, frozen=True):
    name: str


class CheckSet(_Change, frozen=True):
    check: AdmissionCheck


class CheckGone(_Change, frozen=True):
    name: str


class TopologySet(_Change, frozen=True):
    topology: Topology


class TopologyGone(_Change, frozen=True):
    name: str


class NodeSet(_Change, frozen=True):
    node: Node


class NodeGone(_Change, frozen=True):
    name: NodeName


class PodOnNode(_Change, frozen=True):
    """A pod that is not ours to give away runs on a node."""

    pod: NodePod


class PodGone(_Change, frozen=True):
    key: str


class OfferingsSet(_Change, frozen=True, tag="MarketSet"):
    """What can be bought, as it is now; None: nothing."""

    offerings: Offerings | None = msgspec.field(name="market")


class PolicySet(_Change, frozen=True):
    policy: Policy


class ResultSet(_Change, frozen=True):
    """A job is over; others may have waited for that."""

    result: Result


class UsageSet(_Change, frozen=True):
    """An account, a user or a QOS had used so much at an instant, as it was written down."""

    record: UsageRecord


class TimePassed(_Change, frozen=True):
    """The clock now says `now`; what was waiting for an earlier instant wakes."""

    now: Instant


# Objects that any number of queues may refer to.
Shared = (
    FlavorSet
    | FlavorGone
    | NamespaceSet
    | NamespaceGone
    | CheckSet
    | CheckGone
    | TopologySet
    | TopologyGone
)
# What is configured rather than submitted.
Configured = QueueSet | QueueGone | CohortSet | CohortGone | PolicySet | Shared
NodeChange = NodeSet | NodeGone | PodOnNode | PodGone
# All but what happens to workloads, and time.
Rarer = (
    NodeChange | UsageSet | ResultSet | OfferingsSet | LocalQueueSet | LocalQueueGone | Configured
)
Change = WorkloadWaits | WorkloadHolds | WorkloadGone | TimePassed | Rarer
