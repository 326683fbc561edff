"""Workload as it is written, in v1beta2 (stored) and v1beta1.

Status is read leniently: it comes from controllers of any version, so unknown fields are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.decode import Schema
from unisono.kinds.meta import Condition, ObjectMeta
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Timestamp

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
# More kinds of pods than one gang has; Kueue allows eight.
MOST_SETS = 18
_Priority = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]

WORKLOAD_PRIORITY_GROUP = "kueue.x-k8s.io"
POD_PRIORITY_GROUP = "scheduling.k8s.io"


class SliceConstraint(Schema, frozen=True, kw_only=True):
    """Slices of so many pods share a domain of a level."""

    topology: str
    size: Count = 1


class PodSetTopologyRequest(Schema, frozen=True, kw_only=True):
    """Which pods of the set must be close to each other."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: int | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Count | None = None
    # Kueue writes it so.
    podset_slice_required_topology_constraints: tuple[SliceConstraint, ...] = ()


class PodSet(Schema, frozen=True, kw_only=True):
    """Pods of one template."""

    name: Annotated[str, Meta(description="Unique in the workload.")] = "main"
    count: Annotated[int, Meta(ge=0, le=2**31 - 1, description="How many pods.")] = 1
    min_count: Annotated[
        Count | None, Meta(description="How many would do, if not all of them fit.")
    ] = None
    template: PodTemplateSpec = PodTemplateSpec()
    topology_request: PodSetTopologyRequest | None = None


class PriorityClassRef(Schema, frozen=True, kw_only=True):
    """The class that gave the priority."""

    group: Literal["kueue.x-k8s.io", "scheduling.k8s.io"]
    kind: Literal["WorkloadPriorityClass", "PriorityClass"]
    name: str


class WorkloadSpec(Schema, frozen=True, kw_only=True):
    """What is asked for."""

    pod_sets: Annotated[tuple[PodSet, ...], Meta(max_length=MOST_SETS)] = ()
    queue_name: Annotated[str, Meta(description="The LocalQueue, in the same namespace.")] = ""
    priority_class_ref: PriorityClassRef | None = None
    priority: Annotated[_Priority | None, Meta(description="Higher goes first. Default 0.")] = None
    active: Annotated[bool, Meta(description="False holds the workload back, or stops it.")] = True
    maximum_execution_time_seconds: Annotated[int, Meta(ge=1)] | None = None
    preemption_gates: Any = None


class PodSetAssignment(Schema, frozen=True, kw_only=True):
    """What one pod set was given."""

    is_open: ClassVar[bool] = True

    name: str = "main"
    flavors: Mapping[str, str] = {}
    resource_usage: Mapping[str, Quantity] = {}
    count: Count | None = None
    topology_assignment: Any = None


class Admission(Schema, frozen=True, kw_only=True):
    """A reservation of quota."""

    is_open: ClassVar[bool] = True

    cluster_queue: str
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class RequeueState(Schema, frozen=True, kw_only=True):
    """How often it was requeued after a time-out, and until when it waits."""

    is_open: ClassVar[bool] = True

    count: Count | None = None
    requeue_at: Timestamp | None = None


class ReclaimablePods(Schema, frozen=True, kw_only=True):
    """Pods of a set that are done and will not come back."""

    name: str
    count: Count


class AdmissionCheckState(Schema, frozen=True, kw_only=True):
    """What an admission check says of the workload."""

    is_open: ClassVar[bool] = True

    name: str
    state: Literal["Pending", "Ready", "Retry", "Rejected"] = "Pending"
    last_transition_time: Timestamp | None = None
    message: str = ""
    requeue_after_seconds: int | None = None
    retry_count: int | None = None
    pod_set_updates: tuple[Any, ...] = ()


class EvictionCount(Schema, frozen=True, kw_only=True):
    """How often it was evicted for one reason."""

    is_open: ClassVar[bool] = True

    reason: str
    underlying_cause: str = ""
    count: Count = 0


class SchedulingStats(Schema, frozen=True, kw_only=True):
    """Its history."""

    is_open: ClassVar[bool] = True

    evictions: tuple[EvictionCount, ...] = ()


class WorkloadStatus(Schema, frozen=True, kw_only=True):
    """What became of it."""

    is_open: ClassVar[bool] = True

    admission: Admission | None = None
    conditions: tuple[Condition, ...] = ()
    requeue_state: RequeueState | None = None
    reclaimable_pods: tuple[ReclaimablePods, ...] = ()
    admission_checks: Annotated[tuple[AdmissionCheckState, ...], Meta(max_length=8)] = ()
    resource_requests: tuple[Any, ...] = ()
    accumulated_past_execution_time_seconds: int | None = None
    scheduling_stats: SchedulingStats | None = None
    unhealthy_nodes: tuple[Any, ...] = ()


class Workload(Schema, frozen=True, kw_only=True):
    """A gang of pods that is admitted whole (v1beta2)."""

    api_version: str = "kueue.x-k8s.io/v1beta2"
    kind: str = "Workload"
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


# ---- v1beta1 -----------------------------------------------------------------------------------

PriorityClassSource = Literal[
    "kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""
]


class WorkloadSpecV1Beta1(Schema, frozen=True, kw_only=True):
    """What is asked for."""

    pod_sets: Annotated[tuple[PodSet, ...], Meta(max_length=MOST_SETS)] = ()
    queue_name: str = ""
    priority_class_name: str = ""
    priority_class_source: PriorityClassSource = ""
    priority: _Priority | None = None
    active: bool = True
    maximum_execution_time_seconds: Annotated[int, Meta(ge=1)] | None = None


class WorkloadStatusV1Beta1(Schema, frozen=True, kw_only=True):
    """What became of it; one field name has a typing error that is part of the version."""

    is_open: ClassVar[bool] = True

    admission: Admission | None = None
    conditions: tuple[Condition, ...] = ()
    requeue_state: RequeueState | None = None
    reclaimable_pods: tuple[ReclaimablePods, ...] = ()
    admission_checks: Annotated[tuple[AdmissionCheckState, ...], Meta(max_length=8)] = ()
    resource_requests: tuple[Any, ...] = ()
    accumulated_past_execution_time_seconds: int | None = msgspec.field(
        default=None, name="accumulatedPastExexcutionTimeSeconds"
    )
    scheduling_stats: SchedulingStats | None = None
    unhealthy_nodes: tuple[Any, ...] = ()


class WorkloadV1Beta1(Schema, frozen=True, kw_only=True):
    """A gang of pods that is admitted whole (v1beta1)."""

    api_version: str = "kueue.x-k8s.io/v1beta1"
    kind: str = "Workload"
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpecV1Beta1 = WorkloadSpecV1Beta1()
    status: WorkloadStatusV1Beta1 = WorkloadStatusV1Beta1()
