"""Small clusters and gangs for tests about placement, in the notation of the specification.

One resource `nvidia.com/gpu` unless something else is said. Cluster T is the one of spec placement
§14: blocks b0 and b1, in each of them racks r0 and r1, in each of those nodes n0 and n1, with eight
GPUs each; the node is called `b0r0n0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from tests.support.placement_oracle import Cluster
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import NodeName, ResourceName, namespace_of
from unisono.engine.model.node import HOSTNAME, HostPort, Node, NodePod, PodRule, PodSelector
from unisono.engine.model.policy import Placement
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import LabelSelector, Requirement, label_map
from unisono.engine.placement.demand import Demand, Mode
from unisono.engine.placement.feasibility import Capacity, Feasibility
from unisono.engine.placement.gang import Gang, Placer, PodSetPlacement
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex

GPU = ResourceName("nvidia.com/gpu")
ZONE, BLOCK, RACK = "topology.kubernetes.io/zone", "block", "rack"
PORT = HostPort(29500)
ANYTHING = LabelSelector()


def node(name: str, gpus: int = 8, labels: Mapping[str, str] | None = None, **options: Any) -> Node:
    """Make a node; `more` is what it has besides GPUs."""
    more = options.pop("more", {})
    return Node(
        name=NodeName(name),
        labels=tuple(sorted((labels or {}).items())),
        allocatable=amounts({GPU: gpus, **more}),
        **options,
    )


def cluster_t() -> list[Node]:
    """Make the eight nodes of cluster T, not in order."""
    names = [(b, r, n) for n in (1, 0) for b in (1, 0) for r in (0, 1)]
    return [
        node(f"b{b}r{r}n{n}", 8, {BLOCK: f"b{b}", RACK: f"r{r}", HOSTNAME: f"b{b}r{r}n{n}"})
        for b, r, n in names
    ]


def table_of(*nodes: Node) -> NodeTable:
    """Put nodes into a table."""
    table = NodeTable()
    for each in nodes:
        table.put(each)
    return table


def placer_of(*nodes: Node, pod_index: PodIndex | None = None, **options: Any) -> Placer:
    """Make a placer over nodes; options are those of the placement policy."""
    return Placer(Feasibility(table_of(*nodes)), pod_index or PodIndex(), Placement(**options))


def demand(pods: int, gpus: int = 1, mode: Mode = "unconstrained", **options: Any) -> Demand:
    """Make a demand for so many pods of so many GPUs; `least` of them are needed."""
    more = options.pop("more", {})
    requests: Amounts = amounts({**({GPU: gpus} if gpus else {}), **more})
    options.setdefault("least", pods)
    options.setdefault("name", "main")
    options.setdefault("namespace", "ns")
    return Demand(most=pods, requests=requests, mode=mode, **options)


def gang(*demands: Demand, **options: Any) -> Gang:
    """Make a gang of the workload ns/gang."""
    options.setdefault("key", "ns/gang")
    return Gang(demands=demands, **options)


def place(placer: Placer, *demands: Demand, **options: Any) -> dict[str, dict[str, int]]:
    """Place a gang that has to fit and return how many pods of each demand are on which node."""
    answer = placer.place(gang(*demands, **options))
    assert not isinstance(answer, GangDoesNotFit), answer
    return {placed.demand: {str(name): pods for name, pods in placed.nodes} for placed in answer}


def put(placer: Placer, wanted: Demand) -> dict[str, int]:
    """Place a demand that has to fit, leave its pods there, and return them by node."""
    answer = placer.place(gang(wanted))
    assert not isinstance(answer, GangDoesNotFit), answer
    take(placer, answer[0], wanted)
    return {str(name): pods for name, pods in answer[0].nodes}


def take(placer: Placer, placed: PodSetPlacement, wanted: Demand) -> None:
    """Count placed pods as running."""
    import numpy as np

    table = placer.feasibility.table
    rows = np.array([table.row_of[name] for name, _ in placed.nodes], np.intp)
    counts = np.array([pods for _, pods in placed.nodes], np.int64)
    table.take(rows, counts, wanted.requests)


def refuse(placer: Placer, *demands: Demand, **options: Any) -> GangDoesNotFit:
    """Demand that a gang finds no place and return what is said about it."""
    answer = placer.place(gang(*demands, **options))
    assert isinstance(answer, GangDoesNotFit), answer
    return answer


def like(**labels: str) -> PodSelector:
    """Select pods with these labels, in the pod's own namespace."""
    return PodSelector(
        LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))
    )


def rule(key: str, **labels: str) -> PodRule:
    """Make a rule about pods with these labels, by a label of nodes."""
    return PodRule(like(**labels), key)


T = TypeVar("T")
Path = tuple[str | None, ...]  # label values from the widest level down


def placed_pods_of(pod: NodePod) -> PlacedPods:
    """Return a pod as the engine keeps it on its node."""
    return PlacedPods(
        nodes=((pod.node, 1),),
        requests=pod.requests,
        namespace=namespace_of(pod.key),
        labels=label_map(pod.labels),
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
    )


def seated(cluster: Cluster) -> Occupancy:
    """Put a cluster into the engine's state."""
    occupancy = Occupancy(NodeTable(), PodIndex())
    for node in cluster.nodes:
        occupancy.put_node(node)
    for pod in cluster.pods:
        occupancy.occupy(placed_pods_of(pod))
    return occupancy


def placer_over(occupancy: Occupancy, placement: Placement | None = None) -> Placer:
    """Return a placer over the engine's state."""
    return Placer(Feasibility(occupancy.table), occupancy.pod_index, placement or Placement())


def bytes_of(occupancy: Occupancy) -> tuple[bytes, bytes, tuple[str, ...]]:
    """Return everything that a placement must leave as it was."""
    table = occupancy.table
    groups = [
        f"{members.namespace} {members.labels} {members.host_ports} {members.anti_affinity} "
        f"{sorted(members.pods_on.items())}"
        for members in occupancy.pod_index.groups.values()
    ]
    return table.free.tobytes(), table.allocatable.tobytes(), tuple(sorted(groups))


def by_name(table: NodeTable, rows: Iterable[int], values: Iterable[T]) -> dict[str, T]:
    """Return values of rows by the names of their nodes."""
    named = {}
    for row, value in zip(rows, values, strict=True):
        node = table.nodes[row]
        if node is not None:
            named[str(node.name)] = value
    return named


def caps_by_name(table: NodeTable, capacity: Capacity) -> dict[str, int]:
    """Return the capacity of every node by its name."""
    return by_name(table, capacity.view.rows.tolist(), capacity.caps.tolist())


def sums_by_path(table: NodeTable, capacity: Capacity) -> dict[Path, int]:
    """Return the capacity of every domain of every level by its label values."""
    found: dict[Path, int] = {}
    view = capacity.view
    for depth, level in enumerate(view.levels, start=1):
        for start, total in zip(level.starts.tolist(), capacity.sums[depth - 1], strict=True):
            node = table.nodes[int(view.rows[start])]
            assert node is not None, "views list only nodes"
            labels = dict(node.labels)
            path = tuple(labels.get(key) for key in view.keys[:depth])
            assert path not in found, f"domain {path} is in two pieces"
            found[path] = int(total)
    return found
