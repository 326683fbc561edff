"""Nodes: as `v1` has them, and as a row that placement can fill.

    allocatable    what pods may take; where it is missing, the capacity
    taints         those written down, and those that Kubernetes derives from conditions:
                       Ready False, Unknown             not-ready, unreachable
                       MemoryPressure, DiskPressure,
                       PIDPressure, NetworkUnavailable  memory-pressure, …
                       spec.unschedulable               unschedulable
    ready          its Ready condition is true, or it has none; not while it is
                   being deleted, and not before Karpenter has registered it

Spec placement §5.2 and §5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from unisono.engine.model import node as engine
from unisono.engine.model import selection
from unisono.engine.model.names import NodeName
from unisono.engine.model.resources import amounts, bounded
from unisono.kinds.core.selection import labels_of
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta, TimedCondition, condition
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity, check_not_negative
from unisono.kinds.scalar import Timestamp


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


_PREFIX = "node.kubernetes.io/"
# Which status of which condition makes which taint; all of them keep new pods away.
_FROM_CONDITIONS = (
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("PIDPressure", "True", "pid-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
)
# The workload that a node was bought for, until its pods are there; also the key of a taint.
HELD_FOR = "unisono.dev/gang"
UNREGISTERED = "karpenter.sh/unregistered"


def node_of(node: Node, more_labels: Mapping[str, str]) -> engine.Node:
    """Return the engine's form of a node, with more labels on top."""
    holder = node.metadata.annotations.get(HELD_FOR, "")
    return engine.Node(
        name=NodeName(node.metadata.name),
        labels=labels_of({**node.metadata.labels, **more_labels}),
        # The workload it is held for is named; the taint says the same to other schedulers.
        taints=tuple(one for one in _taints(node) if not holder or one.key != HELD_FOR),
        held_for=holder,
        allocatable=amounts(
            {
                name: bounded(name, quantity.amount(name))
                for name, quantity in (node.status.allocatable or node.status.capacity).items()
            }
        ),
        unschedulable=node.spec.unschedulable,
        ready=_is_ready(node),
    )


def _taints(node: Node) -> tuple[selection.Taint, ...]:
    written = [selection.Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
    known = {(taint.key, taint.effect) for taint in written}
    derived = [
        name
        for type_, status, name in _FROM_CONDITIONS
        if (found := condition(node.status.conditions, type_)) and found.status == status
    ]
    if node.spec.unschedulable:
        derived.append("unschedulable")
    keys = [f"{_PREFIX}{name}" for name in derived if (_PREFIX + name, "NoSchedule") not in known]
    return (*written, *(selection.Taint(key) for key in keys))


def _is_ready(node: Node) -> bool:
    if node.metadata.deletion_timestamp is not None:
        return False
    if any(taint.key == UNREGISTERED for taint in node.spec.taints):
        return False
    ready = condition(node.status.conditions, "Ready")
    return ready is None or ready.is_true


def check_node(node: Node, notes: Notes) -> None:
    """Report negative amounts, and taints that are there twice."""
    check_not_negative(node.status.allocatable, "status.allocatable", notes)
    check_not_negative(node.status.capacity, "status.capacity", notes)
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node.spec.taints):
        if (taint.key, taint.effect) in seen:
            notes.problem(f"spec.taints[{index}]", f"{taint.key}:{taint.effect} is there twice")
        seen.add((taint.key, taint.effect))
