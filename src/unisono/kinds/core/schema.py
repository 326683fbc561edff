"""The pod of `v1`: every field name that Kubernetes knows, typed where a decision reads it.

All field names are listed so that a misspelt one is found and a valid manifest is never refused.
What no decision reads is `Any`: it is kept, not judged. What a pod asks for is computed in
`requests`, where it may run in `selection`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from unisono.kinds.decode import Int64, Schema
from unisono.kinds.meta import LabelSelector, ObjectMeta, TimedCondition
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Timestamp

Weight = Annotated[int, Meta(ge=0, le=100)]

ResourceList = Mapping[str, Quantity]


class ResourceRequirements(Schema, frozen=True, kw_only=True):
    """What a container (or a whole pod) asks for, and what it may not exceed."""

    requests: Mapping[str, Quantity] = {}
    limits: Mapping[str, Quantity] = {}
    claims: tuple[Any, ...] = ()


class ContainerPort(Schema, frozen=True, kw_only=True):
    """A port of a container; a host port keeps two such pods apart."""

    container_port: Annotated[int, Meta(ge=1, le=65535)]
    host_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    name: str = ""
    protocol: str = "TCP"


class EnvVar(Schema, frozen=True, kw_only=True):
    """An environment variable."""

    name: str
    value: str = ""
    value_from: Any = None


class VolumeMount(Schema, frozen=True, kw_only=True):
    """Where a volume appears in a container."""

    name: str
    mount_path: str
    sub_path: str = ""
    sub_path_expr: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    mount_propagation: str | None = None
    bind_mount_options: tuple[str, ...] = ()


class Container(Schema, frozen=True, kw_only=True):
    """One container. An init container with restartPolicy Always is a sidecar."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    ports: tuple[ContainerPort, ...] = ()
    env_from: tuple[Any, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[Any, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[Any, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    volume_devices: tuple[Any, ...] = ()
    liveness_probe: Any = None
    readiness_probe: Any = None
    startup_probe: Any = None
    lifecycle: Any = None
    termination_message_path: str = ""
    termination_message_policy: str = ""
    image_pull_policy: str = ""
    security_context: Any = None
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False

    @property
    def is_sidecar(self) -> bool:
        """Whether it keeps running beside the containers (init containers only)."""
        return self.restart_policy == "Always"


class NodeSelectorRequirement(Schema, frozen=True, kw_only=True):
    """One clause about a node's labels or fields."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Schema, frozen=True, kw_only=True):
    """Clauses that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Schema, frozen=True, kw_only=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...]


class PreferredSchedulingTerm(Schema, frozen=True, kw_only=True):
    """Nodes that a pod would like, and how much."""

    weight: Weight
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Schema, frozen=True, kw_only=True):
    """Which nodes a pod demands, and which it would like."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Schema, frozen=True, kw_only=True):
    """Pods, and the node label whose value must (or must not) be the same as theirs."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Schema, frozen=True, kw_only=True):
    """Pods that it would like to be near, or not."""

    weight: Weight
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Schema, frozen=True, kw_only=True):
    """Which pods it must (or must not) be near; read when nodes are chosen."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Schema, frozen=True, kw_only=True):
    """Everything a pod says about the nodes and pods around it."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Schema, frozen=True, kw_only=True):
    """A taint the pod accepts."""

    key: str = ""
    operator: Literal["Equal", "Exists", "Lt", "Gt", ""] = "Equal"
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    toleration_seconds: Int64 | None = None


class TopologySpreadConstraint(Schema, frozen=True, kw_only=True):
    """How evenly pods spread over domains; read when nodes are chosen."""

    max_skew: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    match_label_keys: tuple[str, ...] = ()


class SchedulingGroup(Schema, frozen=True, kw_only=True):
    """The PodGroup of `scheduling.k8s.io` that a pod belongs to (Kubernetes 1.36 and later)."""

    pod_group_name: str | None = None


class WorkloadReference(Schema, frozen=True, kw_only=True):
    """The group inside a `scheduling.k8s.io` Workload that a pod belongs to (Kubernetes 1.35)."""

    name: str
    pod_group: str
    pod_group_replica_key: str = ""


class PodSpec(Schema, frozen=True, kw_only=True):
    """What a pod is made of."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Any, ...] = ()
    volumes: tuple[Any, ...] = ()
    # Read by decisions.
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: Mapping[str, Quantity] = {}
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    scheduler_name: str = ""
    scheduling_gates: tuple[Any, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: WorkloadReference | None = None
    resource_claims: tuple[Any, ...] = ()
    node_name: str = ""
    restart_policy: str = ""
    # Carried along.
    active_deadline_seconds: Int64 | None = None
    automount_service_account_token: bool | None = None
    dns_config: Any = None
    dns_policy: str = ""
    enable_service_links: bool | None = None
    eviction_responders: tuple[Any, ...] = ()
    host_aliases: tuple[Any, ...] = ()
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_users: bool | None = None
    hostname: str = ""
    hostname_override: str | None = None
    image_pull_secrets: tuple[Any, ...] = ()
    os: Any = None
    readiness_gates: tuple[Any, ...] = ()
    security_context: Any = None
    service_account: str = ""
    service_account_name: str = ""
    set_hostname_as_fqdn: bool | None = msgspec.field(default=None, name="setHostnameAsFQDN")
    share_process_namespace: bool | None = None
    subdomain: str = ""
    termination_grace_period_seconds: Int64 | None = None


class PodTemplateSpec(Schema, frozen=True, kw_only=True):
    """What every pod of a set is made from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class PodStatus(Schema, frozen=True, kw_only=True):
    """What became of a pod."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown", ""] = ""
    conditions: tuple[TimedCondition, ...] = ()
    observed_generation: Int64 = 0
    message: str = ""
    reason: str = ""
    nominated_node_name: str = ""
    host_ip: str = msgspec.field(default="", name="hostIP")
    host_ips: tuple[Any, ...] = msgspec.field(default=(), name="hostIPs")
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: tuple[Any, ...] = msgspec.field(default=(), name="podIPs")
    start_time: Timestamp | None = None
    init_container_statuses: tuple[Any, ...] = ()
    container_statuses: tuple[Any, ...] = ()
    ephemeral_container_statuses: tuple[Any, ...] = ()
    qos_class: str = ""
    resize: str = ""
    resource_claim_statuses: tuple[Any, ...] = ()
    extended_resource_claim_status: Any = None
    node_allocatable_resource_claim_statuses: tuple[Any, ...] = ()
    allocated_resources: Any = None
    resources: Any = None
    volume_health: tuple[Any, ...] = ()


class Pod(Schema, frozen=True, kw_only=True):
    """One pod."""

    api_version: str = "v1"
    kind: str = "Pod"
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
