"""Why a workload waits: typed facts with numbers, each naming what would change it.

`Explanation.blockers` holds every fact that was found; the first one decides the stage and the
reason that conditions and tables show. Words are made in `engine/explain`, nowhere else.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.dependency import DependencyKind
from unisono.engine.model.names import (
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    QueueName,
    ResourceName,
    WorkloadKey,
)
from unisono.engine.model.provisioning import Alternative
from unisono.engine.model.workload import LimitWord

Stage = Literal[
    "quota", "flavor", "placement", "preemption", "provision", "order", "hold", "config"
]

# Reasons of the condition QuotaReserved=False (spec quota §11).
Reason = Literal[
    "NoMatchingFlavor",
    "WaitingForQuota",
    "ExceedsMaxQuota",
    "TopologyPlacementFailed",
    "WaitingForPreemptedWorkloads",
    "Misconfigured",
    "Quarantined",
    "Suspended",
    "PendingEvaluation",
    "WaitingForPodsReady",
    "AdmissionGated",
    "OnHold",
    "Deactivated",
]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="fact", gc=False):
    """Base of all facts; it only carries the tag, so that a plan is also a file."""


class QuotaExhausted(_Fact, frozen=True, kw_only=True):
    """The queue may not use that much now, even with everything it can borrow."""

    queue: QueueName
    pod_set: str
    flavor: FlavorName
    resource: ResourceName
    wanted: int
    available: int
    # True if making others leave was allowed and tried, and would not have been enough.
    tried_preemption: bool = False


class ExceedsMaximum(_Fact, frozen=True, kw_only=True):
    """The queue could not use that much even if the cluster were empty."""

    queue: QueueName
    pod_set: str
    flavor: FlavorName
    resource: ResourceName
    wanted: int
    maximum: int


class ResourceNotCovered(_Fact, frozen=True, kw_only=True):
    """No group of the queue has quota for the resource."""

    queue: QueueName
    pod_set: str
    resource: ResourceName


class FlavorMismatch(_Fact, frozen=True, kw_only=True):
    """The pods do not tolerate or do not select the flavor's nodes, or there is no such flavor."""

    pod_set: str
    flavor: FlavorName
    why: Literal["missing", "taint", "labels", "not-allowed", "topology"]
    detail: str = ""


class GangDoesNotFit(_Fact, frozen=True, kw_only=True):
    """There is quota, but no set of nodes holds the whole gang where it has to be."""

    pod_set: str
    pods: int
    pods_placeable: int
    level: str = ""  # the label whose domains had to hold all of it; empty: the cluster
    best_domain: str = ""
    cluster_holds: int = 0
    nodes: int = 0
    # When no node takes even one pod: what a pod asks for, and the most that one node has free,
    # and would have if it were empty.
    resource: ResourceName = ResourceName("")
    wanted_of_node: int = 0
    best_node_has: int = 0
    largest_node_has: int = 0
    refusals: tuple[tuple[str, int], ...] = ()  # why nodes take no pod, and how many of them
    labels: tuple[str, ...] = ()  # `key=value` that is asked for and that no node has
    slice_level: str = ""  # the label whose domains have to hold whole slices of its pods
    # True if making others leave was allowed and tried, and would not have been enough.
    tried_preemption: bool = False


class WaitingForVictims(_Fact, frozen=True, kw_only=True):
    """Others were told to leave for it, or to give up pods, and have not done so yet."""

    victims: tuple[WorkloadKey, ...]
    shrinking: tuple[WorkloadKey, ...] = ()  # these go on with fewer pods


class WaitingForPods(_Fact, frozen=True, kw_only=True):
    """Pods of others were told to end; the place that they leave is kept for it."""

    pods: tuple[str, ...]  # namespace/name
    until: Instant  # then those that are still there are not counted on any longer


class PreemptionBackoff(_Fact, frozen=True, kw_only=True):
    """It was itself preempted lately and may not make others leave before then."""

    until: Instant
    preemptions: int


class ClaimedThisCycle(_Fact, frozen=True, kw_only=True):
    """It fitted, but others of this cycle came first; it is tried again."""

    queue: QueueName
    overlapping_victims: bool = False


class BehindInQueue(_Fact, frozen=True, kw_only=True):
    """Not examined yet, or held up by the head of a StrictFIFO queue."""

    queue: QueueName
    head: WorkloadKey
    position: int


class QueueMissing(_Fact, frozen=True, kw_only=True):
    """The local queue, or the ClusterQueue that it names, does not exist."""

    local_queue: LocalQueueKey
    queue: QueueName | None = None


class QueueInactive(_Fact, frozen=True, kw_only=True):
    """The ClusterQueue cannot admit anything until its configuration is mended."""

    queue: QueueName
    why: Literal[
        "Terminating",
        "FlavorNotFound",
        "AdmissionCheckNotFound",
        "AdmissionCheckInactive",
        "TopologyNotFound",
        "CohortCycle",
    ]
    detail: str = ""


class QueueStopped(_Fact, frozen=True, kw_only=True):
    """Somebody stopped the queue (stopPolicy)."""

    queue: str
    local: bool
    drain: bool


class NamespaceNotSelected(_Fact, frozen=True, kw_only=True):
    """The ClusterQueue's namespaceSelector does not match the workload's namespace."""

    queue: QueueName
    namespace: str


class Misconfigured(_Fact, frozen=True, kw_only=True):
    """The workload itself cannot be run as written."""

    problem: str


# Where a workload could not be handled: while it was read, while the engine decided about it, when
# the auditor looked at what was planned for it, or when that was written down.
QuarantineStage = Literal["read", "decide", "audit", "write"]


class Quarantined(_Fact, frozen=True, kw_only=True):
    """The scheduler could not handle this workload and goes on without it."""

    stage: QuarantineStage
    problem: str
    retry_at: Instant


class CheckFailed(_Fact, frozen=True, kw_only=True):
    """An admission check said Retry or Rejected."""

    check: str
    state: Literal["Retry", "Rejected"]


class Deactivated(_Fact, frozen=True, kw_only=True):
    """spec.active is false."""


class Gated(_Fact, frozen=True, kw_only=True):
    """An annotation names who must release it first."""

    by: str


class OnHold(_Fact, frozen=True, kw_only=True):
    """Evicted lately; it comes back to the queue by itself at `until`, or when somebody says so."""

    until: Instant | None = None


class WouldDelay(_Fact, frozen=True, kw_only=True):
    """It fits now, but would still run when somebody before it is to start there."""

    whom: WorkloadKey
    start: Instant  # of the other
    limit_ms: int  # how long it says that it runs itself


class Planned(_Fact, frozen=True, kw_only=True):
    """It has a date: it starts then at the latest, if everybody keeps to their limits."""

    start: Instant
    position: int  # how many have dates before it, and itself
    limit_ms: int = 0  # how long it will run itself
    limit_from: LimitWord = "policy"
    behind: WorkloadKey | None = None  # who has the date before it
    nodes: tuple[NodeName, ...] = ()  # on which, as things stand; none where nobody looked


class Expected(_Fact, frozen=True, kw_only=True):
    """An estimate: if limits were kept, it would start about then. Nothing is kept free for it."""

    start: Instant
    # How many would be looked at before it, and itself; 0: it waits for something else
    # than room, and whether there is room by then nobody looked at.
    position: int
    limit_ms: int = 0
    limit_from: LimitWord = "policy"
    nodes: tuple[NodeName, ...] = ()  # on which, as things stand; none where nobody looked


class NotBefore(_Fact, frozen=True, kw_only=True):
    """It asked not to start before then."""

    begin: Instant


class DeadlineMissed(_Fact, frozen=True, kw_only=True):
    """It cannot end in time any more."""

    deadline: Instant
    limit_ms: int


class Reserved(_Fact, frozen=True, kw_only=True):
    """There would be a place, but nodes are reserved for others while it would run."""

    name: str  # of the reservation
    start: Instant
    end: Instant
    nodes: int  # how many it has; 0: all
    limit_ms: int  # how long the workload runs at most


class ArrayLimit(_Fact, frozen=True, kw_only=True):
    """As many of its array run, or stand in line before it, as may run at a time."""

    array: str
    limit: int


class DependencyPending(_Fact, frozen=True, kw_only=True):
    """It depends on a job that has not got so far, or is not known yet."""

    kind: DependencyKind
    on: str  # namespace/name of the job


class DependencyNeverSatisfied(_Fact, frozen=True, kw_only=True):
    """It depends on a job that ended otherwise than it was to."""

    kind: DependencyKind
    on: str


class PodsNotReady(_Fact, frozen=True, kw_only=True):
    """Admission waits until the pods of an admitted workload are ready (blockAdmission)."""

    waiting_for: WorkloadKey


class Held(_Fact, frozen=True, kw_only=True):
    """Somebody holds it back until it is released; with turns its priority is 0 meanwhile."""

    by: Literal["user", "admin"]


class NotEntitled(_Fact, frozen=True, kw_only=True):
    """Its account, QOS or partition does not exist, is shut, or is not for it."""

    code: str  # Slurm's word
    problem: str


class LimitReached(_Fact, frozen=True, kw_only=True):
    """It would be more than an account, a QOS or a partition allows.

    Amounts are as `unit` says: thousandths of a TRES (`tres`), thousandths of a TRES for a minute
    (`tres-minutes`), workloads (`jobs`), or milliseconds (`time`).
    """

    code: str  # Slurm's word
    owner: str  # account/NAME, user/ACCOUNT/NAME, qos/NAME or partition/NAME
    per: Literal["group", "user", "account", "job", "node", "least"]
    whose: str = ""  # the user or the account that is counted within a QOS
    unit: Literal["tres", "tres-minutes", "jobs", "time"] = "tres"
    tres: str = ""
    used: int = 0
    wanted: int
    limit: int
    denied: bool = False  # refused for good (DenyOnLimit, or too many were submitted)
    until: Instant | None = None  # when use has faded enough by itself


class PoolRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why one pool of machines has nothing: the first thing that stood in the way."""

    pool: str
    code: str
    detail: str = ""


class CannotBuy(_Fact, frozen=True, kw_only=True):
    """There is quota, no node is free, and machines for all of it cannot be bought either."""

    code: str  # of the pool that came furthest (spec provisioning §5.14)
    pod_set: str
    pods: int
    each: tuple[tuple[ResourceName, int], ...] = ()  # what one pod asks for
    pools: tuple[PoolRefusal, ...] = ()
    alternatives: tuple[Alternative, ...] = ()  # what would do, and its price
    retry_at: Instant | None = None  # when something may be in stock again


Blocker = (
    QuotaExhausted
    | ExceedsMaximum
    | ResourceNotCovered
    | FlavorMismatch
    | GangDoesNotFit
    | WaitingForVictims
    | WaitingForPods
    | PreemptionBackoff
    | ClaimedThisCycle
    | BehindInQueue
    | QueueMissing
    | QueueInactive
    | QueueStopped
    | NamespaceNotSelected
    | Misconfigured
    | Quarantined
    | CheckFailed
    | Deactivated
    | Gated
    | OnHold
    | PodsNotReady
    | WouldDelay
    | Planned
    | Expected
    | NotBefore
    | DeadlineMissed
    | Reserved
    | ArrayLimit
    | DependencyPending
    | DependencyNeverSatisfied
    | Held
    | NotEntitled
    | LimitReached
    | CannotBuy
)


class Explanation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything known about why one workload does not start. The first blocker is the main one."""

    workload: WorkloadKey
    queue: QueueName | None
    blockers: tuple[Blocker, ...]
