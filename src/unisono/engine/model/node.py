"""Nodes as placement sees them, and the pods on them that no workload of ours accounts for."""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.names import Instant, NodeName
from unisono.engine.model.resources import Amounts
from unisono.engine.model.selection import Labels, LabelSelector, Taint

HOSTNAME = "kubernetes.io/hostname"

# Levels that a cluster may have, widest first; each is used only if some node carries it.
DEFAULT_LEVELS = (
    "topology.kubernetes.io/zone",
    "topology.k8s.aws/network-node-layer-1",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-3",
    "cloud.provider.com/topology-block",
    "cloud.provider.com/topology-rack",
    "nvidia.com/gpu.clique",
)


class HostPort(msgspec.Struct, frozen=True):
    """A port that a pod takes on its node; an empty address means every address."""

    port: int
    protocol: str = "TCP"
    address: str = ""


class PodSelector(msgspec.Struct, frozen=True):
    """Which pods an inter-pod rule selects: labels, within some namespaces."""

    labels: LabelSelector
    namespaces: tuple[str, ...] = ()  # empty: the pod's own
    every_namespace: bool = False


class PodRule(msgspec.Struct, frozen=True):
    """A required affinity (or anti-affinity) term: pods like these, in the same domain (or not)."""

    selector: PodSelector
    topology_key: str


class SpreadRule(msgspec.Struct, frozen=True, kw_only=True):
    """A topology spread constraint that forbids (DoNotSchedule) rather than prefers."""

    selector: PodSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1


class Topology(msgspec.Struct, frozen=True):
    """A named list of levels (node labels), widest first."""

    name: str
    levels: tuple[str, ...] = ()


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine."""

    name: NodeName
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = ()
    unschedulable: bool = False
    ready: bool = True
    held_for: str = ""  # only this workload may use it (a node bought for a gang)


# Taints of the node lifecycle (not-ready, unschedulable, disk-pressure, ...) and of our quarantine
# come and go with the health of a node; all others are configuration.
_LIFECYCLE = "node.kubernetes.io/"
QUARANTINE = "unisono.dev/quarantine"

NodeTrouble = Literal["not ready", "cordoned", "quarantined", "under pressure"]


def node_problem(node: Node) -> NodeTrouble | None:
    """Say why a node takes no pods for now; None if it does."""
    passing = {taint.key for taint in node.taints if _is_passing(taint)}
    if QUARANTINE in passing:
        return "quarantined"
    if not node.ready:
        return "not ready"
    if node.unschedulable or f"{_LIFECYCLE}unschedulable" in passing:
        return "cordoned"
    return "under pressure" if passing else None


def repaired(node: Node) -> Node:
    """Return a node as it is when it is well again and takes pods."""
    if node_problem(node) is None:
        return node
    taints = tuple(taint for taint in node.taints if not _is_passing(taint))
    return msgspec.structs.replace(node, ready=True, unschedulable=False, taints=taints)


def _is_passing(taint: Taint) -> bool:
    if taint.effect == "PreferNoSchedule":
        return False
    return taint.key.startswith(_LIFECYCLE) or taint.key == QUARANTINE


class NodePod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod on a node that belongs to no workload of ours; what it uses is not free."""

    key: str  # namespace/name
    node: NodeName
    requests: Amounts = ()
    labels: Labels = ()
    host_ports: tuple[HostPort, ...] = ()
    anti_affinity: tuple[PodRule, ...] = ()
    device: int | None = None  # the GPU that it shares, if it does and that is known
    leaves_at: Instant | None = None  # terminating: gone by then
