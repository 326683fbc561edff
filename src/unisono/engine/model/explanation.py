"""Why a workload waits: typed facts with numbers, each naming what would change it.

`Explanation.blockers` holds every fact that was found; the first one decides the stage and the
reason that conditions and tables show. Sentences are made in `engine/explain`, nowhere else.
"""

from __future__ import annotations

from typing import Literal

import msgspec

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
from unisono.engine.model.workload import DependencyKind, LimitWord

Stage = Literal[
    "quota", "flavor", "placement", "preemption", "provision", "order", "hold", "config"
]

# Reasons of the condition QuotaReserved=False (spec quota §11).
Reason = Literal[
    "NoMatchingFlavor",
    "WaitingForQuota",
    "ExceedsMaxQuota",
    "TopologyPlacementFailed",
    "Unschedulable",
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
    # True if preemption was allowed and tried, and would not have been enough.
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
    """There is quota, but the gang fits on no set of nodes that it may use."""

    pod_set: str
    pods: int
    pods_placeable: int
    level: str = ""  # the label of the required domain; empty: the whole cluster
    best_domain: str = ""
    cluster_holds: int = 0
    nodes: int = 0
    # When no node takes even one pod: what a pod asks for, and the most that one node has free,
    # and would have if it were empty.
    resource: ResourceName = ResourceName("")
    wanted_of_node: int = 0
    best_node_has: int = 0
    largest_node_has: int = 0
    refusals: tuple[tuple[str, int], ...] = ()  # why nodes accept no pod, and how many nodes
    labels: tuple[str, ...] = ()  # `key=value` that is required and that no node has
    slice_level: str = ""  # the label whose domains have to hold whole slices of its pods
    # True if preemption was allowed and tried, and would not have been enough.
    tried_preemption: bool = False


class WaitingForVictims(_Fact, frozen=True, kw_only=True):
    """Its victims are being evicted, or are shrinking, and are not gone yet."""

    victims: tuple[WorkloadKey, ...]
    shrinking: tuple[WorkloadKey, ...] = ()  # victims that keep some of their pods
    # What it lacks while they hold it, and the flavors that it could not use.
    lacks: tuple[QuotaExhausted | ExceedsMaximum | ResourceNotCovered | FlavorMismatch, ...] = ()
    of_another: bool = False  # they leave for another preemptor, and that is enough for both


class WaitingForPods(_Fact, frozen=True, kw_only=True):
    """It waits for terminating pods; their nodes are kept for it."""

    pods: tuple[str, ...]  # namespace/name
    until: Instant  # after that, pods that are still there are not waited for


class PreemptionBackoff(_Fact, frozen=True, kw_only=True):
    """It was itself preempted recently and may not preempt before then."""

    until: Instant
    preemptions: int


class ClaimedThisCycle(_Fact, frozen=True, kw_only=True):
    """It fitted, but earlier decisions of this cycle took the quota; it is evaluated again."""

    queue: QueueName
    overlapping_victims: bool = False


class BehindInQueue(_Fact, frozen=True, kw_only=True):
    """Not evaluated yet, or blocked by the head of a StrictFIFO queue."""

    queue: QueueName
    head: WorkloadKey
    position: int


class QueueMissing(_Fact, frozen=True, kw_only=True):
    """The local queue, or the ClusterQueue that it names, does not exist."""

    local_queue: LocalQueueKey
    queue: QueueName | None = None


class QueueInactive(_Fact, frozen=True, kw_only=True):
    """The ClusterQueue cannot admit anything until its configuration is fixed."""

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
    """The queue is stopped (stopPolicy)."""

    queue: str
    local: bool
    drain: bool


class NamespaceNotSelected(_Fact, frozen=True, kw_only=True):
    """The ClusterQueue's namespaceSelector does not match the workload's namespace."""

    queue: QueueName
    namespace: str


class Misconfigured(_Fact, frozen=True, kw_only=True):
    """The workload cannot run as specified."""

    problem: str


# Where a workload could not be handled: while it was read, while the engine evaluated it, when the
# auditor checked its plan, or when that was written.
QuarantineStage = Literal["read", "decide", "audit", "write"]


class Quarantined(_Fact, frozen=True, kw_only=True):
    """The scheduler could not handle this workload and goes on without it."""

    stage: QuarantineStage
    problem: str
    retry_at: Instant


class CheckFailed(_Fact, frozen=True, kw_only=True):
    """An admission check is in state Retry or Rejected."""

    check: str
    state: Literal["Retry", "Rejected"]


class Deactivated(_Fact, frozen=True, kw_only=True):
    """spec.active is false."""


class Gated(_Fact, frozen=True, kw_only=True):
    """An annotation names the controllers that must release it first."""

    by: str


class OnHold(_Fact, frozen=True, kw_only=True):
    """Evicted; it is requeued at `until`, or when condition Requeued becomes true."""

    until: Instant | None = None


class WouldDelay(_Fact, frozen=True, kw_only=True, rename={"reserved_for": "whom"}):
    """It fits now, but would delay the backfill reservation of another workload."""

    reserved_for: WorkloadKey
    start: Instant  # of that reservation
    limit_ms: int  # its own time limit


class Planned(_Fact, frozen=True, kw_only=True):
    """It has a backfill reservation: it starts then at the latest if all keep their limits."""

    start: Instant
    position: int  # in the reservation table, from 1
    limit_ms: int = 0  # its own time limit
    limit_from: LimitWord = "policy"
    behind: WorkloadKey | None = None  # the workload with the reservation before it
    nodes: tuple[NodeName, ...] = ()  # as planned now; empty if not computed


class Expected(_Fact, frozen=True, kw_only=True):
    """An estimate of its start from time limits. Nothing is reserved for it."""

    start: Instant
    # Its position in priority order, from 1; 0: it waits for something other than capacity, and
    # whether there is capacity by then was not computed.
    position: int
    limit_ms: int = 0
    limit_from: LimitWord = "policy"
    nodes: tuple[NodeName, ...] = ()  # as planned now; empty if not computed


class NotBefore(_Fact, frozen=True, kw_only=True):
    """Its begin time is in the future."""

    begin: Instant


class DeadlineMissed(_Fact, frozen=True, kw_only=True):
    """It cannot end before its deadline any more."""

    deadline: Instant
    limit_ms: int


class Reserved(_Fact, frozen=True, kw_only=True):
    """It would fit, but an advance reservation excludes it from nodes while it would run."""

    name: str  # of the advance reservation
    start: Instant
    end: Instant
    nodes: int  # how many it has; 0: all
    limit_ms: int  # the time limit of the workload


class ArrayLimit(_Fact, frozen=True, kw_only=True):
    """As many of its array run, or are ahead of it, as may run at a time."""

    array: str
    limit: int


class DependencyPending(_Fact, frozen=True, kw_only=True):
    """It depends on a job that has not reached the required state, or is not known yet."""

    kind: DependencyKind
    on: str  # namespace/name of the job


class DependencyNeverSatisfied(_Fact, frozen=True, kw_only=True):
    """It depends on a job that ended differently than required."""

    kind: DependencyKind
    on: str


class PodsNotReady(_Fact, frozen=True, kw_only=True):
    """Admission waits until the pods of an admitted workload are ready (blockAdmission)."""

    waiting_for: WorkloadKey


class Held(_Fact, frozen=True, kw_only=True):
    """Its user or an administrator holds it; its multifactor priority is 0 meanwhile."""

    by: Literal["user", "admin"]


class NotEntitled(_Fact, frozen=True, kw_only=True):
    """Its account, QOS or partition does not exist, is down, or does not admit it."""

    code: str  # Slurm's reason
    problem: str


class LimitReached(_Fact, frozen=True, kw_only=True, rename={"member": "whose"}):
    """It would exceed a limit of an account, a QOS or a partition.

    Amounts are as `unit` says: thousandths of a TRES (`tres`), thousandths of a TRES for a minute
    (`tres-minutes`), workloads (`jobs`), or milliseconds (`time`).
    """

    code: str  # Slurm's reason
    owner: str  # account/NAME, user/ACCOUNT/NAME, qos/NAME or partition/NAME
    per: Literal["group", "user", "account", "job", "node", "least"]
    member: str = ""  # the user or the account that is counted within a QOS
    unit: Literal["tres", "tres-minutes", "jobs", "time"] = "tres"
    tres: str = ""
    used: int = 0
    wanted: int
    limit: int
    denied: bool = False  # refused for good (DenyOnLimit, or too many were submitted)
    until: Instant | None = None  # when usage has decayed enough


class PoolRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why one node pool cannot provide machines: the first reason that was found."""

    pool: str
    code: str
    detail: str = ""


class CannotBuy(_Fact, frozen=True, kw_only=True):
    """There is quota, it fits on no nodes, and machines for all of it cannot be bought."""

    code: str  # of the pool that came furthest (spec provisioning §5.14)
    pod_set: str
    pods: int
    each: tuple[tuple[ResourceName, int], ...] = ()  # what one pod asks for
    pools: tuple[PoolRefusal, ...] = ()
    alternatives: tuple[Alternative, ...] = ()  # other sets of machines that would fit, with prices
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
