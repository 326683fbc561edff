"""The engine's own books of nodes, filled from plain values and read back by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from tests.support.placement_oracle import Cluster
from unisono.engine.model.names import namespace_of
from unisono.engine.model.node import NodePod
from unisono.engine.model.policy import Placement
from unisono.engine.model.selection import label_map
from unisono.engine.placement.feasibility import Capacity, Feasibility
from unisono.engine.placement.gang import Placer
from unisono.engine.state.node_table import NodeTable
from unisono.engine.state.occupancy import Occupancy
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.pod_index import PodIndex

T = TypeVar("T")
Path = tuple[str | None, ...]  # label values from the widest level down


def tenant_of(pod: NodePod) -> PlacedPods:
    """Return a pod as one who sits on a node."""
    return PlacedPods(
        nodes=((pod.node, 1),),
        requests=pod.requests,
        namespace=namespace_of(pod.key),
        labels=label_map(pod.labels),
        host_ports=pod.host_ports,
        anti_affinity=pod.anti_affinity,
    )


def seated(cluster: Cluster) -> Occupancy:
    """Put a cluster into the engine's books."""
    occupancy = Occupancy(NodeTable(), PodIndex())
    for node in cluster.nodes:
        occupancy.put_node(node)
    for pod in cluster.pods:
        occupancy.occupy(tenant_of(pod))
    return occupancy


def placer_over(occupancy: Occupancy, placement: Placement | None = None) -> Placer:
    """Return a placer over the engine's books."""
    return Placer(Feasibility(occupancy.table), occupancy.pod_index, placement or Placement())


def bytes_of(occupancy: Occupancy) -> tuple[bytes, bytes, tuple[str, ...]]:
    """Return everything that a placement must leave as it was."""
    table = occupancy.table
    everybody = [
        f"{members.namespace} {members.labels} {members.host_ports} {members.anti_affinity} "
        f"{sorted(members.pods_on.items())}"
        for members in occupancy.pod_index.groups.values()
    ]
    return table.free.tobytes(), table.allocatable.tobytes(), tuple(sorted(everybody))


def by_name(table: NodeTable, rows: Iterable[int], values: Iterable[T]) -> dict[str, T]:
    """Return values of rows by the names of their nodes."""
    named = {}
    for row, value in zip(rows, values, strict=True):
        node = table.nodes[row]
        if node is not None:
            named[str(node.name)] = value
    return named


def caps_by_name(table: NodeTable, capacity: Capacity) -> dict[str, int]:
    """Return the room of every node by its name."""
    return by_name(table, capacity.view.rows.tolist(), capacity.caps.tolist())


def sums_by_path(table: NodeTable, capacity: Capacity) -> dict[Path, int]:
    """Return the room of every domain of every level by its label values."""
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
