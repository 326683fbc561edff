"""Nodes: from a `v1` Node to a row that placement can fill.

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

from unisono.engine.model import node as engine
from unisono.engine.model.names import NodeName
from unisono.engine.model.resources import amounts, bounded
from unisono.engine.model.selection import Taint
from unisono.kinds.conditions import condition
from unisono.kinds.core.cluster import Node
from unisono.kinds.core.selection import labels_of

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


def _taints(node: Node) -> tuple[Taint, ...]:
    written = [Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
    known = {(taint.key, taint.effect) for taint in written}
    derived = [
        name
        for type_, status, name in _FROM_CONDITIONS
        if (found := condition(node.status.conditions, type_)) and found.status == status
    ]
    if node.spec.unschedulable:
        derived.append("unschedulable")
    keys = [f"{_PREFIX}{name}" for name in derived if (_PREFIX + name, "NoSchedule") not in known]
    return (*written, *(Taint(key) for key in keys))


def _is_ready(node: Node) -> bool:
    if node.metadata.deletion_timestamp is not None:
        return False
    if any(taint.key == UNREGISTERED for taint in node.spec.taints):
        return False
    ready = condition(node.status.conditions, "Ready")
    return ready is None or ready.is_true
