"""What a cluster is made of besides pods: namespaces, nodes, limit ranges, priority classes.

Field names as in Kubernetes' `v1` and `scheduling.k8s.io/v1`; what no decision reads is `Any`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from unisono.kinds.core.conditions import TimedCondition
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import Timestamp


class NamespaceSpec(Schema, frozen=True, kw_only=True):
    """What keeps a namespace from going away."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Schema, frozen=True, kw_only=True):
    """Whether a namespace is there or going away."""

    phase: Literal["Active", "Terminating", ""] = ""
    conditions: tuple[Any, ...] = ()


class Namespace(Schema, frozen=True, kw_only=True):
    """A namespace; its labels decide which cluster queues it may use."""

    api_version: str = "v1"
    kind: str = "Namespace"
    metadata: ObjectMeta = ObjectMeta()
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class Taint(Schema, frozen=True, kw_only=True):
    """A mark that keeps pods away unless they tolerate it."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    time_added: Timestamp | None = None


class NodeSpec(Schema, frozen=True, kw_only=True):
    """What an operator says about a node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")
    pod_cidr: str = msgspec.field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = msgspec.field(default=(), name="podCIDRs")
    external_id: str = msgspec.field(default="", name="externalID")
    config_source: Any = None
    pod_preemption_policy: Any = None


class NodeStatus(Schema, frozen=True, kw_only=True):
    """What a node has and how it feels."""

    capacity: Mapping[str, Quantity] = {}
    allocatable: Mapping[str, Quantity] = {}
    conditions: tuple[TimedCondition, ...] = ()
    phase: str = ""
    addresses: tuple[Any, ...] = ()
    daemon_endpoints: Any = None
    node_info: Any = None
    images: tuple[Any, ...] = ()
    volumes_in_use: tuple[Any, ...] = ()
    volumes_attached: tuple[Any, ...] = ()
    config: Any = None
    runtime_handlers: tuple[Any, ...] = ()
    features: Any = None
    declared_features: tuple[str, ...] = ()


class Node(Schema, frozen=True, kw_only=True):
    """A machine."""

    api_version: str = "v1"
    kind: str = "Node"
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LimitRangeItem(Schema, frozen=True, kw_only=True):
    """Bounds and defaults for one type of object."""

    type: str
    max: Mapping[str, Quantity] = {}
    min: Mapping[str, Quantity] = {}
    default: Mapping[str, Quantity] = {}
    default_request: Mapping[str, Quantity] = {}
    max_limit_request_ratio: Mapping[str, Quantity] = {}


class LimitRangeSpec(Schema, frozen=True, kw_only=True):
    """The items of a limit range."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Schema, frozen=True, kw_only=True):
    """How small and how large the containers and pods of a namespace may be."""

    api_version: str = "v1"
    kind: str = "LimitRange"
    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(Schema, frozen=True, kw_only=True):
    """A name for a pod priority."""

    api_version: str = "scheduling.k8s.io/v1"
    kind: str = "PriorityClass"
    metadata: ObjectMeta = ObjectMeta()
    value: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


class RuntimeClass(Schema, frozen=True, kw_only=True):
    """A container runtime, and what running a pod with it costs on top (node.k8s.io/v1)."""

    api_version: str = "node.k8s.io/v1"
    kind: str = "RuntimeClass"
    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None


class RuntimeOverhead(Schema, frozen=True, kw_only=True):
    """Resources that every pod of a runtime class uses besides its containers."""

    pod_fixed: Mapping[str, Quantity] = {}


class RuntimeScheduling(Schema, frozen=True, kw_only=True):
    """Where pods of a runtime class may run."""

    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Any, ...] = ()
