"""Nodes as placement sees them, and the pods on them that no workload of ours accounts for."""

from __future__ import annotations

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
