"""Typed, read-only views of objects as informers hold them: `views.Workload(obj).spec.queue_name`.

    base         what a view is, and the fields it is made of
    meta         Object (any kind), ObjectMeta, OwnerReference
    conditions   Condition, Conditions
    pods         Pod, PodTemplate, Container and their statuses
    nodes        Node, Taint; Karpenter's NodePool and NodeClaim
    jobs         Job of batch/v1, JobSet
    workloads    Workload, PodSet, Admission
    queues       ClusterQueue, Cohort, LocalQueue

Import the package and name the kind through it (`from unisono.kinds import views`): the engine and
the decoder have a Workload, a Pod and a Node of their own. What is strict about a manifest (every
problem with its field path) is `kinds.decode`; this is for objects that are stored already.
"""

from __future__ import annotations

from unisono.kinds.views.base import (
    Malformed,
    Raw,
    View,
)
from unisono.kinds.views.conditions import (
    Condition,
    Conditions,
    Status,
)
from unisono.kinds.views.jobs import (
    Job,
    JobSet,
    JobSetSpec,
    JobSetStatus,
    JobSpec,
    JobStatus,
    JobTemplate,
    ReplicatedJob,
)
from unisono.kinds.views.meta import (
    List,
    Object,
    ObjectMeta,
    OwnerReference,
    owner_uids,
)
from unisono.kinds.views.nodes import (
    Disruption,
    DisruptionBudget,
    Node,
    NodeAddress,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClaimTemplate,
    NodeClassRef,
    NodePool,
    NodePoolSpec,
    NodeSpec,
    NodeStatus,
    Requirement,
    Taint,
)
from unisono.kinds.views.pods import (
    Container,
    ContainerPort,
    ContainerState,
    ContainerStatus,
    EnvVar,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplate,
    Resources,
    Running,
    SchedulingGate,
    Terminated,
    Toleration,
    VolumeMount,
    Waiting,
)
from unisono.kinds.views.queues import (
    ClusterQueue,
    ClusterQueueSpec,
    ClusterQueueStatus,
    Cohort,
    CohortSpec,
    FairSharing,
    FlavorQuotas,
    FlavorUsage,
    LocalQueue,
    LocalQueueSpec,
    LocalQueueStatus,
    ResourceGroup,
    ResourceQuota,
    ResourceUsage,
)
from unisono.kinds.views.times import (
    seconds_of,
)
from unisono.kinds.views.workloads import (
    Admission,
    AdmissionCheck,
    EvictionCount,
    PodSet,
    PodSetAssignment,
    PriorityClassRef,
    ReclaimablePods,
    RequeueState,
    SchedulingStats,
    TopologyRequest,
    UnhealthyNode,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)

__all__ = [
    "Admission",
    "AdmissionCheck",
    "ClusterQueue",
    "ClusterQueueSpec",
    "ClusterQueueStatus",
    "Cohort",
    "CohortSpec",
    "Condition",
    "Conditions",
    "Container",
    "ContainerPort",
    "ContainerState",
    "ContainerStatus",
    "Disruption",
    "DisruptionBudget",
    "EnvVar",
    "EvictionCount",
    "FairSharing",
    "FlavorQuotas",
    "FlavorUsage",
    "Job",
    "JobSet",
    "JobSetSpec",
    "JobSetStatus",
    "JobSpec",
    "JobStatus",
    "JobTemplate",
    "List",
    "LocalQueue",
    "LocalQueueSpec",
    "LocalQueueStatus",
    "Malformed",
    "Node",
    "NodeAddress",
    "NodeClaim",
    "NodeClaimSpec",
    "NodeClaimStatus",
    "NodeClaimTemplate",
    "NodeClassRef",
    "NodePool",
    "NodePoolSpec",
    "NodeSpec",
    "NodeStatus",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "Pod",
    "PodSet",
    "PodSetAssignment",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PriorityClassRef",
    "Raw",
    "ReclaimablePods",
    "ReplicatedJob",
    "RequeueState",
    "Requirement",
    "ResourceGroup",
    "ResourceQuota",
    "ResourceUsage",
    "Resources",
    "Running",
    "SchedulingGate",
    "SchedulingStats",
    "Status",
    "Taint",
    "Terminated",
    "Toleration",
    "TopologyRequest",
    "UnhealthyNode",
    "View",
    "VolumeMount",
    "Waiting",
    "Workload",
    "WorkloadSpec",
    "WorkloadStatus",
    "owner_uids",
    "seconds_of",
]
