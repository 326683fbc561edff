"""ClusterQueue, Cohort and LocalQueue as they are written, in every version.

v1beta2 is the stored version; `versions.py` converts. Group-level `resources`, flavors that are
only names, and `preemption.minRuntimeSeconds` are ours (spec quota §2.2, §18.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from unisono.kinds.decode import Schema
from unisono.kinds.meta import LabelSelector, ObjectMeta
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Timestamp

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]
_INT32 = Meta(ge=-(2**31), le=2**31 - 1)


class ResourceQuota(Schema, frozen=True, kw_only=True):
    """How much of one resource."""

    name: Annotated[str, Meta(description="The resource, such as nvidia.com/gpu.")]
    nominal_quota: Annotated[Quantity, Meta(description="What the queue may always use.")]
    borrowing_limit: Annotated[
        Quantity | None,
        Meta(description="What it may borrow from its cohort on top; absent means no limit."),
    ] = None
    lending_limit: Annotated[
        Quantity | None,
        Meta(description="What others may borrow of its quota; absent means all of it."),
    ] = None


class FlavorQuotas(Schema, frozen=True, kw_only=True):
    """The quota of one flavor."""

    name: Annotated[str, Meta(description="The ResourceFlavor.")]
    resources: tuple[ResourceQuota, ...] = ()


class ResourceGroup(Schema, frozen=True, kw_only=True):
    """Resources that come from one flavor together, and the flavors to try, in order."""

    covered_resources: Annotated[
        tuple[str, ...], Meta(description="The resources that the flavors of this group provide.")
    ] = ()
    flavors: Annotated[
        tuple[FlavorQuotas | str, ...],
        Meta(description="Flavors in the order in which they are tried, each with its quota."),
    ] = ()
    resources: Annotated[
        tuple[ResourceQuota, ...],
        Meta(description="One quota for all flavors of the group, which are then only names."),
    ] = ()


class FairSharing(Schema, frozen=True, kw_only=True):
    """How much weight its share has."""

    weight: Annotated[
        Quantity | None,
        Meta(description="A queue of weight 2 is as entitled as two of weight 1. Default 1."),
    ] = None


class BorrowWithinCohort(Schema, frozen=True, kw_only=True):
    """May a workload that has to borrow make others leave?"""

    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: Annotated[int, _INT32] | None = None


class Preemption(Schema, frozen=True, kw_only=True):
    """Which workloads those of the queue may preempt."""

    within_cluster_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim_within_cohort: Literal["Never", "LowerPriority", "Any"] = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None
    min_runtime_seconds: (
        Annotated[
            int,
            Meta(ge=0, description="Workloads admitted less than this ago are not preempted."),
        ]
        | None
    ) = None


class AdmissionCheckRule(Schema, frozen=True, kw_only=True):
    """An admission check, for all flavors of the queue or for some."""

    name: str
    on_flavors: tuple[str, ...] = ()


class AdmissionChecksStrategy(Schema, frozen=True, kw_only=True):
    """The admission checks of a queue."""

    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class FlavorFungibility(Schema, frozen=True, kw_only=True):
    """When to go on to the next flavor although this one would do."""

    when_can_borrow: Literal["MayStopSearch", "TryNextFlavor"] = "MayStopSearch"
    when_can_preempt: Literal["MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None


class AdmissionScope(Schema, frozen=True, kw_only=True):
    """Whether recent usage of local queues decides the order."""

    admission_mode: Literal["UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"]


class ClusterQueueSpec(Schema, frozen=True, kw_only=True):
    """Quota, and the rules of its use."""

    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort_name: Annotated[str, Meta(description="The cohort it shares unused quota with.")] = ""
    queueing_strategy: Annotated[
        Literal["BestEffortFIFO", "StrictFIFO"],
        Meta(description="StrictFIFO: a workload that does not fit yet blocks all behind it."),
    ] = "BestEffortFIFO"
    namespace_selector: Annotated[
        LabelSelector | None, Meta(description="Namespaces whose workloads it takes; {} is all.")
    ] = None
    flavor_fungibility: FlavorFungibility | None = None
    preemption: Preemption | None = None
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: Annotated[
        StopPolicy, Meta(description="Hold admits no workload; HoldAndDrain also evicts all.")
    ] = "None"
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None
    concurrent_admission_policy: Any = None


class ClusterQueue(Schema, frozen=True, kw_only=True):
    """A queue with quota of its own (v1beta2)."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "ClusterQueue"
    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: Any = None


class CohortSpec(Schema, frozen=True, kw_only=True):
    """Its place in the tree, and quota that belongs to all members."""

    parent_name: Annotated[str, Meta(description="The cohort above; absent means a root.")] = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing | None = None


class Cohort(Schema, frozen=True, kw_only=True):
    """Queues (and cohorts) that share (v1beta1, v1beta2)."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "Cohort"
    metadata: ObjectMeta = ObjectMeta()
    spec: CohortSpec = CohortSpec()
    status: Any = None


class ConsumedStatus(Schema, frozen=True, kw_only=True):
    """What a local queue used lately, with older use counting less."""

    is_open: ClassVar[bool] = True

    consumed_resources: Mapping[str, Quantity] = {}
    last_update: Timestamp | None = None


class LocalQueueFairSharingStatus(Schema, frozen=True, kw_only=True):
    """Shares of a local queue."""

    is_open: ClassVar[bool] = True

    admission_fair_sharing_status: ConsumedStatus | None = None


class LocalQueueStatus(Schema, frozen=True, kw_only=True):
    """What was observed of a local queue."""

    is_open: ClassVar[bool] = True

    fair_sharing: LocalQueueFairSharingStatus | None = None


class LocalQueueSpec(Schema, frozen=True, kw_only=True):
    """Where the queue leads."""

    cluster_queue: Annotated[str, Meta(description="The ClusterQueue behind it.")]
    stop_policy: StopPolicy = "None"
    fair_sharing: FairSharing | None = None


class LocalQueue(Schema, frozen=True, kw_only=True):
    """The way of a namespace's jobs to a ClusterQueue (v1beta1, v1beta2)."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "LocalQueue"
    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec
    status: LocalQueueStatus = LocalQueueStatus()


# ---- older versions ----------------------------------------------------------------------------


class FlavorFungibilityV1Beta1(Schema, frozen=True, kw_only=True):
    """As today, with the older words `Borrow` and `Preempt` for `MayStopSearch`."""

    when_can_borrow: Literal["Borrow", "MayStopSearch", "TryNextFlavor"] = "Borrow"
    when_can_preempt: Literal["Preempt", "MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"
    preference: Literal["BorrowingOverPreemption", "PreemptionOverBorrowing"] | None = None


class ClusterQueueSpecV1Beta1(Schema, frozen=True, kw_only=True):
    """Quota, and the rules of its use."""

    resource_groups: tuple[ResourceGroup, ...] = ()
    cohort: Annotated[str, Meta(description="The cohort it shares unused quota with.")] = ""
    queueing_strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    flavor_fungibility: FlavorFungibilityV1Beta1 | None = None
    preemption: Preemption | None = None
    admission_checks: tuple[str, ...] = ()
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: StopPolicy = "None"
    fair_sharing: FairSharing | None = None
    admission_scope: AdmissionScope | None = None


class ClusterQueueV1Beta1(Schema, frozen=True, kw_only=True):
    """A queue with quota of its own (v1beta1)."""

    api_version: str = "kueue.x-k8s.io/v1beta1"
    kind: str = "ClusterQueue"
    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpecV1Beta1 = ClusterQueueSpecV1Beta1()
    status: Any = None


class CohortSpecV1Alpha1(Schema, frozen=True, kw_only=True):
    """Its place in the tree, and quota that belongs to all members."""

    parent: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
    fair_sharing: FairSharing | None = None


class CohortV1Alpha1(Schema, frozen=True, kw_only=True):
    """Queues (and cohorts) that share (v1alpha1)."""

    api_version: str = "kueue.x-k8s.io/v1alpha1"
    kind: str = "Cohort"
    metadata: ObjectMeta = ObjectMeta()
    spec: CohortSpecV1Alpha1 = CohortSpecV1Alpha1()
    status: Any = None
