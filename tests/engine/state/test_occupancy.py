"""Pods on nodes: occupying and vacating are exact inverses, whatever nodes come and go."""

from __future__ import annotations

from tests.support.placement_builders import GPU, PORT, bytes_of, node, table_of
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, Node
from unisono.engine.model.resources import amounts
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex


def occupancy_of(*nodes: Node) -> Occupancy:
    return Occupancy(table_of(*nodes), PodIndex())


def placed(gpus: int = 1, ports: tuple[HostPort, ...] = (), **on: int) -> PlacedPods:
    return PlacedPods(
        nodes=tuple((NodeName(name), pods) for name, pods in on.items()),
        requests=amounts({GPU: gpus}),
        namespace="ns",
        labels={"app": "x"},
        host_ports=ports,
    )


def free(occupancy: Occupancy) -> dict[str, int]:
    table = occupancy.table
    column = table.resources[GPU]
    return {str(name): int(table.free[column, row]) for name, row in table.row_of.items()}


def test_coming_and_going() -> None:
    occupancy = occupancy_of(node("a"), node("b"))
    before = bytes_of(occupancy)
    gang = placed(2, a=3, b=1)
    occupancy.occupy(gang)
    assert free(occupancy) == {"a": 2, "b": 6}
    assert [members.pods_on for members in occupancy.pod_index.groups.values()] == [
        {"a": 3, "b": 1}
    ]
    occupancy.vacate(gang)
    assert bytes_of(occupancy) == before


def test_every_move_is_counted() -> None:
    occupancy = occupancy_of(node("a"))
    gang = placed(a=1)
    seen = [occupancy.moves]
    occupancy.occupy(gang)
    seen.append(occupancy.moves)
    occupancy.vacate(gang)
    seen.append(occupancy.moves)
    occupancy.put_node(node("a", 4))
    seen.append(occupancy.moves)
    occupancy.drop_node(NodeName("a"))
    seen.append(occupancy.moves)
    assert seen == sorted(set(seen)), "it grows each time"


def test_equal_placed_pods_are_two() -> None:
    occupancy = occupancy_of(node("a"))
    one, other = placed(a=1), placed(a=1)
    occupancy.occupy(one)
    occupancy.occupy(other)
    assert free(occupancy) == {"a": 6}
    occupancy.vacate(one)
    assert free(occupancy) == {"a": 7}
    assert len(occupancy.pod_index.groups) == 1


def test_a_pod_on_a_missing_node_is_counted_when_the_node_comes() -> None:
    occupancy = occupancy_of(node("a"))
    gang = placed(a=1, late=2)
    occupancy.occupy(gang)
    assert free(occupancy) == {"a": 7}
    occupancy.put_node(node("late"))
    assert free(occupancy) == {"a": 7, "late": 6}
    occupancy.vacate(gang)
    assert free(occupancy) == {"a": 8, "late": 8}


def test_before_the_first_node_no_pod_is_lost() -> None:
    occupancy = Occupancy(table_of(), PodIndex())
    occupancy.occupy(placed(a=1))
    occupancy.put_node(node("a"))
    assert free(occupancy) == {"a": 7}


def test_a_node_that_returns_has_its_pods_again() -> None:
    occupancy = occupancy_of(node("a"), node("b"))
    gang = placed(a=3, b=1)
    occupancy.occupy(gang)
    occupancy.drop_node(NodeName("a"))
    assert free(occupancy) == {"b": 7}
    occupancy.put_node(node("c"))  # takes over the row of the node that left
    assert free(occupancy) == {"b": 7, "c": 8}
    occupancy.put_node(node("a", 4))
    assert free(occupancy) == {"b": 7, "c": 8, "a": 1}
    occupancy.vacate(gang)
    assert free(occupancy) == {"b": 8, "c": 8, "a": 4}


def test_a_pod_that_left_meanwhile_is_not_counted_when_the_node_returns() -> None:
    occupancy = occupancy_of(node("a"))
    gang = placed(a=3)
    occupancy.occupy(gang)
    occupancy.drop_node(NodeName("a"))
    occupancy.vacate(gang)
    occupancy.put_node(node("a"))
    assert free(occupancy) == {"a": 8}
    assert not occupancy._without_node


def test_a_changed_node_keeps_its_pods() -> None:
    occupancy = occupancy_of(node("a"))
    occupancy.occupy(placed(a=3))
    occupancy.put_node(node("a", 16))
    assert free(occupancy) == {"a": 13}
    occupancy.drop_node(NodeName("never there"))
    assert free(occupancy) == {"a": 13}


def test_pods_that_no_rule_could_select_are_not_remembered() -> None:
    occupancy = occupancy_of(node("a"))
    plain = PlacedPods(nodes=((NodeName("a"), 1),), requests=amounts({GPU: 1}))
    occupancy.occupy(plain)
    assert not occupancy.pod_index.groups
    occupancy.vacate(plain)
    occupancy.occupy(placed(ports=(PORT,), a=1))
    assert [members.host_ports for members in occupancy.pod_index.with_ports()] == [(PORT,)]
