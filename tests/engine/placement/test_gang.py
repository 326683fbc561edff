"""Placing gangs: the scenarios of spec placement §14 that need no queue, and what lies between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.placement_builders import (
    BLOCK,
    GPU,
    PORT,
    RACK,
    cluster_t,
    demand,
    gang,
    node,
    place,
    placer_of,
    put,
    refuse,
    rule,
)
from unisono.engine.model.node import HOSTNAME
from unisono.engine.placement.demand import Constraint, Demand, Mode
from unisono.engine.placement.gang import Placer

T_LEVELS = (BLOCK, RACK)


def on_t(pods: int, mode: Mode = "preferred", level: str = RACK, **options: Any) -> Demand:
    return demand(pods, 8, mode, levels=T_LEVELS, level=level, **options)


def test_scenario_1_the_narrowest_domain_that_fits() -> None:
    placer = placer_of(*cluster_t())
    assert put(placer, on_t(2)) == {"b0r0n0": 1, "b0r0n1": 1}
    assert put(placer, on_t(2)) == {"b0r1n0": 1, "b0r1n1": 1}
    assert put(placer, on_t(4)) == {"b1r0n0": 1, "b1r0n1": 1, "b1r1n0": 1, "b1r1n1": 1}
    assert refuse(placer, on_t(1)).cluster_holds == 0


def test_scenario_2_required_stays_in_its_domain() -> None:
    placer = placer_of(*cluster_t())
    no = refuse(placer, on_t(3, "required"))
    assert (no.level, no.best_domain, no.pods_placeable, no.pods) == (RACK, "b0/r0", 2, 3)
    assert no.cluster_holds == 8
    assert put(placer, on_t(3)) == {"b0r0n0": 1, "b0r0n1": 1, "b0r1n0": 1}
    assert put(placer, on_t(1)) == {"b0r1n1": 1}  # the smallest domain that fits, not b1


def test_scenario_3_the_whole_cluster_if_no_domain_fits() -> None:
    assert put(placer_of(*cluster_t()), on_t(5)) == {
        "b0r0n0": 1,
        "b0r0n1": 1,
        "b0r1n0": 1,
        "b0r1n1": 1,
        "b1r0n0": 1,
    }


def test_scenario_4_small_holes_first_unless_pods_want_to_be_close() -> None:
    nodes = (node("x1", 2), node("x2", 1), node("x3", 1))
    placer = placer_of(*nodes)
    assert put(placer, demand(2)) == {"x2": 1, "x3": 1}
    assert put(placer, demand(1, 2)) == {"x1": 1}
    close = demand(2, 1, "preferred", level=HOSTNAME)
    assert put(placer_of(*nodes), close) == {"x1": 2}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (10, {"c": 5, "d": 5}),
        (11, {"a": 8, "b": 3}),
        (12, {"a": 8, "b": 3, "c": 1}),
        (9, {"c": 5, "d": 4}),
        (5, {"c": 5}),
    ],
)
def test_scenario_5_the_least_to_spare(pods: int, expected: dict[str, int]) -> None:
    racks = (("a", 8, "r0"), ("b", 3, "r0"), ("c", 5, "r1"), ("d", 5, "r1"))
    placer = placer_of(*(node(name, gpus, {RACK: rack}) for name, gpus, rack in racks))
    assert put(placer, demand(pods, 1, "preferred", levels=(RACK,), level=RACK)) == expected


def test_scenario_6_a_master_keeps_off_the_gpus() -> None:
    workers = demand(4, 1, "preferred", name="workers", more={"cpu": 1})
    master = demand(1, 0, name="master", more={"cpu": 1})
    gpu_node, plain = node("g", 4, more={"cpu": 8}), node("m", 0, more={"cpu": 8})
    assert place(placer_of(gpu_node, plain), workers, master) == {
        "workers": {"g": 4},
        "master": {"m": 1},
    }
    assert place(placer_of(gpu_node), workers, master) == {"workers": {"g": 4}, "master": {"g": 1}}
    no = refuse(placer_of(node("g", 3, more={"cpu": 8}), plain), workers, master)
    assert (no.pod_set, no.pods_placeable, no.pods) == ("workers", 3, 4)


def test_scenario_7_a_total_minimum_over_roles() -> None:
    nodes = (node("x", 3, {"role": "a"}), node("y", 2, {"role": "b"}))
    a = demand(3, 1, name="a", least=0)
    b = demand(3, 1, name="b", least=0)
    found = place(placer_of(*nodes), a, b, min_total=4)
    assert sum(sum(where.values()) for where in found.values()) == 5
    no = refuse(placer_of(*nodes), a, b, min_total=6)
    assert (no.pods_placeable, no.pods) == (5, 6)
    both = (demand(3, 1, name="a"), demand(3, 1, name="b"))
    refuse(placer_of(*nodes), *both, min_total=6)


def test_scenario_9_an_elastic_gang_takes_the_domain_where_it_is_largest() -> None:
    nodes = [node("small", 8, {BLOCK: "b0"}), *(node(f"n{i}", 8, {BLOCK: "b1"}) for i in range(5))]
    elastic = demand(8, 8, "required", levels=(BLOCK,), level=BLOCK, least=2)
    assert place(placer_of(*nodes), elastic) == {"main": {f"n{i}": 1 for i in range(5)}}


def test_an_elastic_gang_that_only_prefers_a_domain_grows_beyond_it() -> None:
    nodes = [node("small", 8, {BLOCK: "b0"}), *(node(f"n{i}", 8, {BLOCK: "b1"}) for i in range(5))]
    elastic = demand(8, 8, "preferred", levels=(BLOCK,), level=BLOCK, least=2)
    assert place(placer_of(*nodes), elastic)["main"] == {
        "small": 1,
        **{f"n{i}": 1 for i in range(5)},
    }
    assert refuse(placer_of(node("n")), demand(8, 8, least=2)).pods_placeable == 1


def test_scenario_10_ports_and_pods_that_keep_apart() -> None:
    four = placer_of(*(node(f"n{i}") for i in range(5)))
    assert place(four, demand(4, 1, host_ports=(PORT,)))["main"] == {f"n{i}": 1 for i in range(4)}
    apart: dict[str, Any] = {"labels": (("app", "x"),), "anti_affinity": (rule(RACK, app="x"),)}
    # On cluster T racks of both blocks have the same names, so a label that tells them apart.
    nodes = [
        node(f"{name}n{i}", 8, {RACK: name}) for name in ("r0", "r1", "r2", "r3") for i in (0, 1)
    ]
    found = place(placer_of(*nodes), demand(3, 1, **apart))["main"]
    assert {name[:2] for name in found} == {"r0", "r1", "r2"}
    assert set(found.values()) == {1}
    no = refuse(placer_of(*nodes), demand(5, 1, **apart))
    assert (no.pods_placeable, no.pods) == (4, 5)


def test_scenario_25_a_selector_pins_one_zone() -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = [node(f"{z}{i}", 8, {zone: f"ap-northeast-{z}"}) for z in ("2a", "2c") for i in (0, 1)]
    here = Constraint(selector=((zone, "ap-northeast-2a"),))
    assert place(placer_of(*nodes), demand(2, 8, constraint=here))["main"] == {"2a0": 1, "2a1": 1}
    no = refuse(placer_of(*nodes), demand(3, 8, constraint=here))
    assert (no.pods_placeable, dict(no.refusals)) == (2, {"selector": 2})


def test_scenario_26_placing_leaves_every_byte_as_it_was() -> None:
    placer = placer_of(*cluster_t())
    table = placer.feasibility.table
    before = table.free.tobytes(), table.allocatable.tobytes()
    wanted = gang(on_t(2, name="a"), on_t(3, name="b"), demand(1, 0, name="c"))
    first = placer.place(wanted)
    refuse(placer, on_t(9))
    assert (table.free.tobytes(), table.allocatable.tobytes()) == before
    assert placer.place(wanted) == first


def test_nodes_are_named_in_topology_order_so_that_ranks_are_near() -> None:
    answer = placer_of(*cluster_t()).place(gang(on_t(5)))
    assert isinstance(answer, tuple)
    names = [name for name, _ in answer[0].nodes]
    assert names == sorted(names)
    assert answer[0].pods == 5


def test_sets_of_one_group_share_a_domain() -> None:
    placer = placer_of(*cluster_t())
    group = {"group": "g", "levels": T_LEVELS, "level": RACK}
    one = demand(1, 8, "required", name="one", **group)
    two = demand(2, 4, "required", name="two", **group)
    found = place(placer, one, two)
    assert {name[:4] for where in found.values() for name in where} == {"b0r0"}
    no = refuse(placer, one, demand(3, 8, "required", name="more", **group))
    assert no.pods_placeable < no.pods


def test_sets_without_a_group_find_their_own_domains() -> None:
    placer = placer_of(*cluster_t())
    found = place(placer, on_t(2, "required", name="a"), on_t(2, "required", name="b"))
    assert found == {"a": {"b0r0n0": 1, "b0r0n1": 1}, "b": {"b0r1n0": 1, "b0r1n1": 1}}


def test_sets_of_one_gang_share_no_gpu() -> None:
    placer = placer_of(node("n1"), node("n2"))
    sets = [demand(1, 6, name="a"), demand(1, 6, name="b")]
    assert sorted(name for where in place(placer, *sets).values() for name in where) == ["n1", "n2"]
    no = refuse(placer, *sets, demand(1, 6, name="c"))
    assert (no.pods_placeable, no.pods) == (0, 1)


def test_another_order_is_tried_before_giving_up() -> None:
    """The larger set alone would take the node that the other one cannot do without."""
    small_only = Constraint(selector=(("size", "small"),))
    nodes = (node("big", 8), node("small", 4, {"size": "small"}))
    picky = demand(1, 4, name="picky", constraint=small_only)
    large = demand(2, 4, name="large", mode="preferred")
    assert place(placer_of(*nodes), picky, large) == {"picky": {"small": 1}, "large": {"big": 2}}


def test_rules_hold_between_sets_of_one_gang() -> None:
    one, two = (demand(1, 1, name=name, host_ports=(PORT,)) for name in ("one", "two"))
    found = place(placer_of(node("n1"), node("n2")), one, two)
    assert found["one"] != found["two"]
    refuse(placer_of(node("n1")), one, two)
    shy = demand(1, 1, name="shy", anti_affinity=(rule(HOSTNAME, app="x"),))
    loud = demand(1, 1, name="loud", labels=(("app", "x"),))
    refuse(placer_of(node("n1")), shy, loud)
    found = place(placer_of(node("n1"), node("n2")), shy, loud)
    assert found["shy"] != found["loud"]


def test_growing_keeps_the_rules_too() -> None:
    elastic = demand(4, 1, least=2, host_ports=(PORT,))
    assert place(placer_of(node("n1"), node("n2")), elastic)["main"] == {"n1": 1, "n2": 1}


def test_a_node_held_for_a_gang_is_closed_to_others() -> None:
    held = placer_of(node("n1", held_for="ns/gang"), node("n2", 4))
    assert place(held, demand(1, 8))["main"] == {"n1": 1}
    no = refuse(held, demand(1, 8), key="ns/other")
    assert dict(no.refusals) == {"held for others": 1, str(GPU): 1}


def test_a_set_that_needs_nothing_may_get_nothing() -> None:
    sets = (demand(2, 1, name="a"), demand(2, 16, "required", name="b", least=0, level=HOSTNAME))
    assert place(placer_of(node("n")), *sets) == {"a": {"n": 2}, "b": {}}


def test_only_sixteen_domains_are_tried_but_the_tightest() -> None:
    nodes = [node(f"n{i}", 8 + i, {RACK: f"r{i}"}) for i in range(40)]
    wanted = demand(2, 4, "required", levels=(RACK,), level=RACK)
    assert place(placer_of(*nodes[::-1]), wanted)["main"] == {"n0": 2}


def test_an_empty_cluster_refuses() -> None:
    placer = placer_of(node("n", ready=False))
    for mode in ("required", "preferred", "unconstrained"):
        no = refuse(placer, demand(1, 1, mode))
        assert (no.pods_placeable, no.nodes, no.refusals) == (0, 1, (("not ready", 1),))


def test_scorings_agree_on_what_fits() -> None:
    nodes = cluster_t()
    for scoring in ("leftover", "binpack", "spread", "fgd", "none"):
        placer: Placer = placer_of(*nodes, scoring=scoring)
        table = placer.feasibility.table
        table.take(np.array([0]), np.array([1]), demand(1, 3).requests)
        assert sum(place(placer, on_t(7))["main"].values()) == 7
        refuse(placer, on_t(8))
