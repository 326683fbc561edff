"""Masks and capacities: which nodes a pod may use, and how many of them fit there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.placement_builders import GPU, RACK, ZONE, by_name, caps_by_name, node, table_of
from unisono.engine.model.names import NodeName, ResourceName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement, Taint, Toleration
from unisono.engine.model.workload import WeightedTerm
from unisono.engine.placement.demand import Constraint, without_taints
from unisono.engine.placement.feasibility import CAPACITIES_KEPT, MOST_TALLIED, Feasibility


def allowed(*nodes: Node, **options: Any) -> dict[str, bool]:
    table = table_of(*nodes)
    mask = Feasibility(table).allowed(Constraint(**options))
    return by_name(table, range(len(table)), mask.tolist())


def capacity(*nodes: Node, more: dict[str, int] | None = None, gpus: int = 1) -> dict[str, int]:
    table = table_of(*nodes)
    requests = amounts({GPU: gpus, **(more or {})})
    return caps_by_name(table, Feasibility(table).capacity(Constraint(), requests, ()))


def test_scenario_13_taints() -> None:
    """A node with 7 of 8 GPUs free and a taint."""
    table = table_of(node("n", taints=(Taint("dedicated", "ml"),)))
    table.take(np.array([0]), np.array([1]), amounts({GPU: 1}))
    feasibility, one = Feasibility(table), amounts({GPU: 1})
    assert caps_by_name(table, feasibility.capacity(Constraint(), one, ())) == {"n": 0}
    keen = Constraint(tolerations=(Toleration("dedicated", "Exists"),))
    assert caps_by_name(table, feasibility.capacity(keen, one, ())) == {"n": 7}


def test_a_soft_taint_allows_but_is_not_liked() -> None:
    soft = node("soft", taints=(Taint("old", "", "PreferNoSchedule"),))
    assert allowed(soft) == {"soft": True}
    feasibility = Feasibility(table_of(soft, node("fine")))
    assert feasibility.bonus(Constraint()).tolist() == [-1000, 0]
    tolerant = Constraint(tolerations=(Toleration("old", "Exists"),))
    assert feasibility.bonus(tolerant).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("requirement", "labels", "matches"),
    [
        # Scenario 14: a missing label is not in any list, and text is no number.
        (Requirement("zone", "NotIn", ("a",)), {}, True),
        (Requirement("gen", "Gt", ("3",)), {"gen": "new"}, False),
        (Requirement("gen", "Gt", ("3",)), {"gen": "4"}, True),
        (Requirement("gen", "Gt", ("3",)), {"gen": "3"}, False),
        (Requirement("gen", "Lt", ("3",)), {"gen": "-2"}, True),
        (Requirement("gen", "Lt", ("3", "4")), {"gen": "2"}, True),
        (Requirement("gen", "Lt", ("3",)), {}, False),
        (Requirement("zone", "In", ("a", "b")), {"zone": "b"}, True),
        (Requirement("zone", "In", ("a", "b")), {}, False),
        (Requirement("zone", "NotIn", ("a",)), {"zone": "a"}, False),
        (Requirement("zone", "Exists"), {"zone": ""}, True),
        (Requirement("zone", "Exists"), {}, False),
        (Requirement("zone", "DoesNotExist"), {"zone": "a"}, False),
        (Requirement("zone", "DoesNotExist"), {}, True),
        (Requirement("metadata.name", "In", ("n",)), {}, True),
        (Requirement("metadata.name", "NotIn", ("n",)), {}, False),
        (Requirement(HOSTNAME, "In", ("n",)), {}, True),
    ],
)
def test_every_operator(requirement: Requirement, labels: dict[str, str], matches: bool) -> None:
    assert allowed(node("n", 8, labels), affinity=((requirement,),)) == {"n": matches}


def test_terms_are_alternatives_and_clauses_are_not() -> None:
    ssd, new = Requirement("disk", "In", ("ssd",)), Requirement("gen", "Exists")
    nodes = (node("a", 8, {"disk": "ssd"}), node("b", 8, {"gen": "2"}), node("c"))
    assert allowed(*nodes, affinity=((ssd,), (new,))) == {"a": True, "b": True, "c": False}
    assert allowed(*nodes, affinity=((ssd, new),)) == {"a": False, "b": False, "c": False}
    # Scenario 14: a term without clauses matches nothing.
    assert allowed(*nodes, affinity=((),)) == {"a": False, "b": False, "c": False}
    assert allowed(*nodes, affinity=((), (ssd,))) == {"a": True, "b": False, "c": False}


def test_a_selector_wants_every_label() -> None:
    nodes = (node("a", 8, {"x": "1", "y": "2"}), node("b", 8, {"x": "1"}), node("c", 8, {"x": "2"}))
    wanted = (("x", "1"), ("y", "2"))
    assert allowed(*nodes, selector=wanted) == {"a": True, "b": False, "c": False}
    assert allowed(*nodes, selector=(("x", "never seen"),)) == {"a": False, "b": False, "c": False}


def test_closed_nodes() -> None:
    cordoned = node("cordoned", unschedulable=True)
    assert allowed(cordoned, node("down", ready=False)) == {"cordoned": False, "down": False}
    keen = (Toleration("node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"),)
    assert allowed(cordoned, tolerations=keen) == {"cordoned": True}
    assert allowed(node("down", ready=False), tolerations=(Toleration("", "Exists"),)) == {
        "down": False
    }


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", "Equal", "v"), True),
        (Toleration("k", "Equal", "w"), False),
        (Toleration("k", "Exists"), True),
        (Toleration("k", "Exists", "", "NoSchedule"), True),
        (Toleration("k", "Exists", "", "NoExecute"), False),
        (Toleration("", "Exists"), True),
        (Toleration("", "Equal", "v"), False),
        (Toleration("other", "Exists"), False),
    ],
)
def test_tolerations(toleration: Toleration, tolerated: bool) -> None:
    tainted = node("n", taints=(Taint("k", "v"),))
    assert allowed(tainted, tolerations=(toleration,)) == {"n": tolerated}


def test_all_taints_of_a_node_have_to_be_tolerated() -> None:
    tainted = node("n", taints=(Taint("a"), Taint("b", "", "NoExecute")))
    assert allowed(tainted, tolerations=(Toleration("a", "Exists"),)) == {"n": False}
    both = (Toleration("a", "Exists"), Toleration("b", "Exists"))
    assert allowed(tainted, tolerations=both) == {"n": True}


def test_taints_do_not_matter_where_only_selectors_count() -> None:
    tainted = node("n", taints=(Taint("a"),), unschedulable=True)
    table = table_of(tainted)
    assert Feasibility(table).allowed(without_taints(Constraint())).tolist() == [True]


def test_the_scarcest_resource_decides() -> None:
    big = node("n", 8, more={"cpu": 10, "memory": 64})
    assert capacity(big) == {"n": 8}
    assert capacity(big, more={"cpu": 4}) == {"n": 2}
    assert capacity(big, more={"cpu": 4, "memory": 64}) == {"n": 1}
    assert capacity(big, more={"cpu": 11}) == {"n": 0}


def test_what_a_node_does_not_have_is_none() -> None:
    some = (node("n", 8, more={"fpga": 1}), node("m", 8))
    assert capacity(*some, more={"fpga": 1}) == {"n": 1, "m": 0}
    assert capacity(*some, more={"never seen": 1}) == {"n": 0, "m": 0}


def test_what_a_pod_does_not_ask_for_is_not_looked_at() -> None:
    table = table_of(node("n", 4, more={"cpu": 1}))
    table.take(np.array([0]), np.array([1]), amounts({"cpu": 5}))
    feasibility = Feasibility(table)
    for requests in (amounts({GPU: 1}), amounts({GPU: 1, "cpu": 0})):
        assert caps_by_name(table, feasibility.capacity(Constraint(), requests, ())) == {"n": 4}
    starved = feasibility.capacity(Constraint(), amounts({GPU: 1, "cpu": 1}), ())
    assert caps_by_name(table, starved) == {"n": 0}


def test_a_node_takes_110_pods_unless_it_says_otherwise() -> None:
    assert capacity(node("n"), node("m", more={"pods": 7}), gpus=0) == {"n": 110, "m": 7}


def test_preferred_terms_add_up() -> None:
    ssd, near = Requirement("disk", "In", ("ssd",)), Requirement("zone", "In", ("a",))
    preferred = (WeightedTerm(10, (ssd,)), WeightedTerm(5, (near,)), WeightedTerm(100, ()))
    table = table_of(node("a", 8, {"disk": "ssd", "zone": "a"}), node("b", 8, {"zone": "a"}))
    bonus = Feasibility(table).bonus(Constraint(preferred=preferred))
    assert by_name(table, range(2), bonus.tolist()) == {"a": 15, "b": 5}


def test_domains_are_summed_and_kept_up_to_date() -> None:
    nodes = [node(f"n{i}", 8, {RACK: f"r{i // 2}"}) for i in range(8)]
    table = table_of(*nodes)
    feasibility, one = Feasibility(table), amounts({GPU: 1})
    first = feasibility.capacity(Constraint(), one, (RACK,))
    assert first.sums[0].tolist() == [16, 16, 16, 16]
    table.take(np.array([3]), np.array([5]), one)
    again = feasibility.capacity(Constraint(), one, (RACK,))
    assert again is first, "one row changed, so the vector was not made anew"
    assert again.sums[0].tolist() == [16, 11, 16, 16]
    assert again.total == 59
    table.give_back(np.array([3]), np.array([5]), one)
    assert feasibility.capacity(Constraint(), one, (RACK,)).total == 64


def test_nodes_are_tallied_by_what_they_hold() -> None:
    table = table_of(*(node(f"n{i}", 4) for i in range(12)), node("small", 1))
    feasibility, one = Feasibility(table), amounts({GPU: 1})
    first = feasibility.capacity(Constraint(), one, ())
    assert first.histogram is not None
    assert first.histogram.tolist() == [0, 1, 0, 0, 12]
    table.take(np.array([0, 1]), np.array([4, 2]), one)
    table.put(node("n2", 6))
    again = feasibility.capacity(Constraint(), one, ())
    assert again is first
    assert again.histogram is not None
    assert again.histogram.tolist() == [1, 1, 1, 0, 9, 0, 1]


def test_what_has_no_end_is_not_tallied() -> None:
    nodes = [node(f"n{i}", MOST_TALLIED, more={"pods": 1 << 40}) for i in range(8)]
    table = table_of(*nodes)
    feasibility, one = Feasibility(table), amounts({GPU: 1})
    counted = feasibility.capacity(Constraint(), one, ())
    assert counted.histogram is not None
    assert counted.histogram[MOST_TALLIED] == 8
    table.put(node("n3", MOST_TALLIED + 1, more={"pods": 1 << 40}))
    assert feasibility.capacity(Constraint(), one, ()).histogram is None
    assert feasibility.capacity(Constraint(), amounts({GPU: 0}), ()).histogram is None
    assert feasibility.capacity(Constraint(), amounts({"pods": 0}), ()).histogram is None


def test_what_is_free_of_a_resource_in_every_domain() -> None:
    racks = [node(f"n{i}", 8, {RACK: f"r{i // 2}"}, more={"memory": 1 << 40}) for i in range(4)]
    table = table_of(*racks, node("down", 8, {RACK: "r1"}, ready=False))
    table.take(np.array([0]), np.array([3]), amounts({GPU: 1}))
    table.take(np.array([1]), np.array([1]), amounts({GPU: 9}))
    feasibility = Feasibility(table)
    assert feasibility.free(GPU, (RACK,)).sums[0].tolist() == [5, 16]
    memory = feasibility.free(ResourceName("memory"), (RACK,))
    assert memory.sums[0].tolist() == [2 << 40, 2 << 40]
    assert memory.histogram is None


def test_sums_of_wide_domains_are_those_of_the_narrow_ones() -> None:
    places = [("z0", "r0"), ("z0", "r1"), ("z1", "r0"), ("z1", "r1"), ("z1", "r1")]
    nodes = [node(f"n{i}", 1 << i, {ZONE: z, RACK: r}) for i, (z, r) in enumerate(places)]
    found = Feasibility(table_of(*nodes)).capacity(Constraint(), amounts({GPU: 1}), (ZONE, RACK))
    assert [sums.tolist() for sums in found.sums] == [[3, 28], [1, 2, 4, 24]]
    assert found.total == 31


def test_preferences_come_and_go_with_what_nodes_are() -> None:
    table = table_of(*(node(f"n{i}") for i in range(8)))
    feasibility = Feasibility(table)
    assert feasibility.preference(Constraint()) is None
    table.put(node("n3", taints=(Taint("old", "", "PreferNoSchedule"),)))
    bonus = feasibility.preference(Constraint())
    assert bonus is not None
    assert bonus.tolist() == [0, 0, 0, -1000, 0, 0, 0, 0]
    table.put(node("n3"))
    assert feasibility.preference(Constraint()) is None
    assert feasibility.bonus(Constraint()).tolist() == [0] * 8


def test_many_changes_make_a_vector_anew() -> None:
    table = table_of(*(node(f"n{i}") for i in range(4)))
    feasibility, one = Feasibility(table), amounts({GPU: 1})
    first = feasibility.capacity(Constraint(), one, ())
    rows = np.arange(4)
    table.take(rows, np.full(4, 2), one)
    again = feasibility.capacity(Constraint(), one, ())
    assert again is not first
    assert again.caps.tolist() == [6, 6, 6, 6]


def test_a_changed_node_changes_its_bit_and_its_capacity() -> None:
    table = table_of(*(node(f"n{i}", 8, {"disk": "ssd"}) for i in range(8)))
    feasibility, one = Feasibility(table), amounts({GPU: 1})
    ssd = Constraint(selector=(("disk", "ssd"),))
    assert feasibility.capacity(ssd, one, ()).total == 64
    table.put(node("n3", 8, {"disk": "hdd"}))
    assert feasibility.capacity(ssd, one, ()).total == 56
    table.put(node("n4", 8, {"disk": "ssd"}, ready=False))
    assert feasibility.capacity(ssd, one, ()).total == 48
    table.put(node("n5", 16, {"disk": "ssd"}))
    assert feasibility.capacity(ssd, one, ()).total == 56
    table.drop(NodeName("n0"))
    assert feasibility.capacity(ssd, one, ()).total == 48
    table.put(node("new", 1, {"disk": "ssd"}))
    assert feasibility.capacity(ssd, one, ()).total == 49


def test_only_so_many_requests_are_remembered() -> None:
    table = table_of(node("n"))
    feasibility = Feasibility(table)
    for gpus in range(1, CAPACITIES_KEPT + 10):
        feasibility.capacity(Constraint(), amounts({GPU: gpus}), ())
    assert len(feasibility._capacities) == CAPACITIES_KEPT
