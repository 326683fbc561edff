"""Who sits where: coming and going are exact inverses, and nodes may come and go underneath."""

from __future__ import annotations

from tests.support.place_books import bytes_of
from tests.support.place_builders import GPU, PORT, node, table_of
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HostPort, Node
from unisono.engine.model.resources import amounts
from unisono.engine.state.pod_index import PodIndex
from unisono.engine.state.tenancy import Tenancy
from unisono.engine.state.tenant import Tenant


def tenancy_of(*nodes: Node) -> Tenancy:
    return Tenancy(table_of(*nodes), PodIndex())


def tenant(gpus: int = 1, ports: tuple[HostPort, ...] = (), **on: int) -> Tenant:
    return Tenant(
        nodes=tuple((NodeName(name), pods) for name, pods in on.items()),
        requests=amounts({GPU: gpus}),
        namespace="ns",
        labels={"app": "x"},
        host_ports=ports,
    )


def free(tenancy: Tenancy) -> dict[str, int]:
    table = tenancy.table
    column = table.resources[GPU]
    return {str(name): int(table.free[column, row]) for name, row in table.row_of.items()}


def test_coming_and_going() -> None:
    tenancy = tenancy_of(node("a"), node("b"))
    before = bytes_of(tenancy)
    gang = tenant(2, a=3, b=1)
    tenancy.occupy(gang)
    assert free(tenancy) == {"a": 2, "b": 6}
    assert [members.pods_on for members in tenancy.pod_index.groups.values()] == [{"a": 3, "b": 1}]
    tenancy.vacate(gang)
    assert bytes_of(tenancy) == before


def test_every_move_is_counted() -> None:
    tenancy = tenancy_of(node("a"))
    gang = tenant(a=1)
    seen = [tenancy.moves]
    tenancy.occupy(gang)
    seen.append(tenancy.moves)
    tenancy.vacate(gang)
    seen.append(tenancy.moves)
    tenancy.put_node(node("a", 4))
    seen.append(tenancy.moves)
    tenancy.drop_node(NodeName("a"))
    seen.append(tenancy.moves)
    assert seen == sorted(set(seen)), "it grows each time"


def test_equal_tenants_are_two() -> None:
    tenancy = tenancy_of(node("a"))
    one, other = tenant(a=1), tenant(a=1)
    tenancy.occupy(one)
    tenancy.occupy(other)
    assert free(tenancy) == {"a": 6}
    tenancy.vacate(one)
    assert free(tenancy) == {"a": 7}
    assert len(tenancy.pod_index.groups) == 1


def test_who_sits_on_a_node_that_is_not_there_is_counted_when_it_comes() -> None:
    tenancy = tenancy_of(node("a"))
    gang = tenant(a=1, late=2)
    tenancy.occupy(gang)
    assert free(tenancy) == {"a": 7}
    tenancy.put_node(node("late"))
    assert free(tenancy) == {"a": 7, "late": 6}
    tenancy.vacate(gang)
    assert free(tenancy) == {"a": 8, "late": 8}


def test_before_the_first_node_nobody_is_lost() -> None:
    tenancy = Tenancy(table_of(), PodIndex())
    tenancy.occupy(tenant(a=1))
    tenancy.put_node(node("a"))
    assert free(tenancy) == {"a": 7}


def test_a_node_that_returns_finds_its_tenants_again() -> None:
    tenancy = tenancy_of(node("a"), node("b"))
    gang = tenant(a=3, b=1)
    tenancy.occupy(gang)
    tenancy.drop_node(NodeName("a"))
    assert free(tenancy) == {"b": 7}
    tenancy.put_node(node("c"))  # takes over the row of the node that left
    assert free(tenancy) == {"b": 7, "c": 8}
    tenancy.put_node(node("a", 4))
    assert free(tenancy) == {"b": 7, "c": 8, "a": 1}
    tenancy.vacate(gang)
    assert free(tenancy) == {"b": 8, "c": 8, "a": 4}


def test_who_left_meanwhile_is_not_counted_when_the_node_returns() -> None:
    tenancy = tenancy_of(node("a"))
    gang = tenant(a=3)
    tenancy.occupy(gang)
    tenancy.drop_node(NodeName("a"))
    tenancy.vacate(gang)
    tenancy.put_node(node("a"))
    assert free(tenancy) == {"a": 8}
    assert not tenancy._homeless


def test_a_changed_node_keeps_its_tenants() -> None:
    tenancy = tenancy_of(node("a"))
    tenancy.occupy(tenant(a=3))
    tenancy.put_node(node("a", 16))
    assert free(tenancy) == {"a": 13}
    tenancy.drop_node(NodeName("never there"))
    assert free(tenancy) == {"a": 13}


def test_nobody_is_remembered_of_whom_no_rule_could_speak() -> None:
    tenancy = tenancy_of(node("a"))
    plain = Tenant(nodes=((NodeName("a"), 1),), requests=amounts({GPU: 1}))
    tenancy.occupy(plain)
    assert not tenancy.pod_index.groups
    tenancy.vacate(plain)
    tenancy.occupy(tenant(ports=(PORT,), a=1))
    assert [members.host_ports for members in tenancy.pod_index.with_ports()] == [(PORT,)]
