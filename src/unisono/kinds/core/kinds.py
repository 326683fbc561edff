"""What the registry knows of Kubernetes' own kinds, and those that need no module of their own:
namespaces, priority classes and runtime classes.

Field names as in Kubernetes; what no decision reads is `Any`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from unisono.kinds.core.device_claims import DeviceClass
from unisono.kinds.core.limit_ranges import LimitRange, check_limit_range
from unisono.kinds.core.nodes import Node, check_node
from unisono.kinds.core.pod_groups import MEMBERS, check_pod
from unisono.kinds.core.schema import Pod
from unisono.kinds.core.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity, check_not_negative
from unisono.kinds.registry import Kind


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


def _check_runtime_class(runtime: RuntimeClass, notes: Notes) -> None:
    if runtime.overhead is not None:
        check_not_negative(runtime.overhead.pod_fixed, "overhead.podFixed", notes)


KINDS = (
    Kind(group="", version="v1", kind="Namespace", struct=Namespace, namespaced=False),
    Kind(group="", version="v1", kind="Node", struct=Node, namespaced=False, check=check_node),
    Kind(
        group="",
        version="v1",
        kind="Pod",
        struct=Pod,
        namespaced=True,
        check=check_pod,
        members=MEMBERS,
    ),
    Kind(
        group="",
        version="v1",
        kind="LimitRange",
        struct=LimitRange,
        namespaced=True,
        check=check_limit_range,
    ),
    Kind(
        group="scheduling.k8s.io",
        version="v1",
        kind="PriorityClass",
        struct=PriorityClass,
        namespaced=False,
    ),
    Kind(
        group="node.k8s.io",
        version="v1",
        kind="RuntimeClass",
        struct=RuntimeClass,
        namespaced=False,
        check=_check_runtime_class,
    ),
    Kind(
        group="resource.k8s.io",
        version="v1",
        kind="DeviceClass",
        struct=DeviceClass,
        namespaced=False,
    ),
    Kind(
        group="",
        version="v1",
        kind="PersistentVolumeClaim",
        struct=PersistentVolumeClaim,
        namespaced=True,
    ),
    Kind(
        group="",
        version="v1",
        kind="PersistentVolume",
        struct=PersistentVolume,
        namespaced=False,
    ),
    Kind(
        group="storage.k8s.io",
        version="v1",
        kind="StorageClass",
        struct=StorageClass,
        namespaced=False,
    ),
)
