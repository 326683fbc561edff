"""Ports, affinity, anti-affinity and spread as limits on capacities (spec placement §5.5, §5.6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.placement_builders import (
    PORT,
    RACK,
    ZONE,
    demand,
    like,
    node,
    place,
    placer_over,
    refuse,
    rule,
    seated,
)
from tests.support.placement_oracle import Cluster
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import (
    HOSTNAME,
    HostPort,
    Node,
    NodePod,
    PodRule,
    PodSelector,
    SpreadRule,
)
from unisono.engine.model.selection import LabelSelector, Requirement
from unisono.engine.placement.demand import Constraint, Demand
from unisono.engine.placement.gang import Placer

X, Y = (("app", "x"),), (("app", "y"),)
NODES = [
    node("n1", 8, {RACK: "r1"}),
    node("n2", 8, {RACK: "r1"}),
    node("n3", 8, {RACK: "r2"}),
    node("bare"),
]


def over(*pods: NodePod, nodes: list[Node] | None = None) -> Placer:
    return placer_over(seated(Cluster(NODES if nodes is None else nodes, list(pods))))


def pod(where: str, name: str = "other", **options: Any) -> NodePod:
    return NodePod(key=f"ns/{name}", node=NodeName(where), **options)


def found(placer: Placer, wanted: Demand) -> dict[str, int]:
    return place(placer, wanted)["main"]


# --- ports ----------------------------------------------------------------------------------------


def test_a_port_that_is_taken_closes_a_node() -> None:
    taken = over(pod("n1", host_ports=(PORT,)))
    assert found(taken, demand(3, 1, host_ports=(PORT,))) == {"n2": 1, "n3": 1, "bare": 1}
    no = refuse(taken, demand(4, 1, host_ports=(PORT,)))
    assert (no.pods_placeable, dict(no.refusals)) == (3, {"rules between pods": 1})


@pytest.mark.parametrize(
    ("other", "conflicts"),
    [
        (HostPort(29500, address="10.0.0.1"), True),
        (HostPort(29500, "UDP"), False),
        (HostPort(29501), False),
    ],
)
def test_ports_conflict_by_number_protocol_and_address(other: HostPort, conflicts: bool) -> None:
    placer = over(pod("n1", host_ports=(other,)), nodes=NODES[:1])
    wanted = demand(1, 1, host_ports=(PORT,))
    if conflicts:
        refuse(placer, wanted)
    else:
        assert found(placer, wanted) == {"n1": 1}


def test_pods_without_ports_do_not_care() -> None:
    assert found(over(pod("n1", host_ports=(PORT,)), nodes=NODES[:1]), demand(2)) == {"n1": 2}


# --- apart ----------------------------------------------------------------------------------------


def test_pods_keep_away_from_others() -> None:
    placer = over(pod("n1", labels=X))
    apart = demand(3, 8, anti_affinity=(rule(RACK, app="x"),))
    refuse(placer, apart)  # both nodes of r1 are closed
    assert found(placer, demand(2, 8, anti_affinity=(rule(RACK, app="x"),))) == {
        "n3": 1,
        "bare": 1,
    }


def test_others_keep_pods_away() -> None:
    placer = over(pod("n1", anti_affinity=(rule(RACK, app="x"),)))
    assert found(placer, demand(2, 8, labels=X)) == {"n3": 1, "bare": 1}
    refuse(placer, demand(3, 8, labels=X))
    assert len(found(placer, demand(4, 8, labels=Y))) == 4


def test_pods_of_one_set_keep_apart_and_nodes_without_the_label_count_for_nothing() -> None:
    own: dict[str, Any] = {"labels": X, "anti_affinity": (rule(RACK, app="x"),)}
    assert found(over(nodes=NODES[:3]), demand(2, 1, **own)) == {"n1": 1, "n3": 1}
    refuse(over(nodes=NODES[:3]), demand(3, 1, **own))
    assert found(over(), demand(10, 1, **own))["bare"] == 8


def test_pods_of_one_set_keep_apart_by_node() -> None:
    own: dict[str, Any] = {"labels": X, "anti_affinity": (rule(HOSTNAME, app="x"),)}
    assert found(over(), demand(4, 1, **own)) == {"n1": 1, "n2": 1, "n3": 1, "bare": 1}
    refuse(over(), demand(5, 1, **own))


@pytest.mark.parametrize(
    ("selector", "is_closed"),
    [
        (PodSelector(LabelSelector()), False),
        (PodSelector(LabelSelector(), namespaces=("ns",)), True),
        (PodSelector(LabelSelector(), namespaces=("elsewhere",)), False),
        (PodSelector(LabelSelector(), every_namespace=True), True),
    ],
)
def test_a_rule_speaks_of_some_namespaces(selector: PodSelector, is_closed: bool) -> None:
    far = NodePod(key="far/away", node=NodeName("n1"), anti_affinity=(PodRule(selector, HOSTNAME),))
    placer = over(far, nodes=NODES[:1])
    if is_closed:
        refuse(placer, demand(1))
    else:
        assert found(placer, demand(1)) == {"n1": 1}


@pytest.mark.parametrize(
    "selector",
    [
        LabelSelector(),
        LabelSelector((Requirement("app", "NotIn", ("x",)),)),
        LabelSelector((Requirement("app", "DoesNotExist"),)),
    ],
)
def test_selectors_match_pods_without_labels(selector: LabelSelector) -> None:
    every = PodRule(PodSelector(selector), HOSTNAME)
    placer = over(pod("n1"), nodes=NODES[:2])
    assert found(placer, demand(1, 1, anti_affinity=(every,))) == {"n2": 1}
    refuse(placer, demand(2, 1, anti_affinity=(every,)))
    assert found(placer, demand(1, 1, affinity_to=(every,))) == {"n1": 1}


# --- together -------------------------------------------------------------------------------------


def test_pod_affinity_places_pods_beside_others() -> None:
    near = (rule(RACK, app="x"),)
    placer = over(pod("n1", labels=X))
    assert found(placer, demand(2, 8, affinity_to=near)) == {"n1": 1, "n2": 1}
    refuse(placer, demand(3, 8, affinity_to=near))
    refuse(over(), demand(1, 1, affinity_to=near))
    refuse(over(pod("bare", labels=X)), demand(1, 1, affinity_to=near))


def test_the_first_pods_of_their_label_may_start_in_any_domain() -> None:
    own: dict[str, Any] = {
        "labels": X,
        "affinity_to": (rule(RACK, app="x"),),
        "levels": (RACK,),
        "level": RACK,
    }
    assert found(over(), demand(2, 8, "required", **own)) == {"n1": 1, "n2": 1}
    refuse(over(nodes=NODES[3:]), demand(1, 1, "required", **own))


# --- spread ---------------------------------------------------------------------------------------


def zones(*sizes: int, **options: Any) -> list[Node]:
    return [
        node(f"z{number}", size, {ZONE: f"zone-{number}"}, **options)
        for number, size in enumerate(sizes)
    ]


def spread(max_skew: int = 1, key: str = ZONE, **options: Any) -> tuple[SpreadRule, ...]:
    return (SpreadRule(selector=like(app="x"), topology_key=key, max_skew=max_skew, **options),)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [(3, {"z0": 1, "z1": 1, "z2": 1}), (5, {"z0": 2, "z1": 2, "z2": 1}), (6, None)],
)
def test_scenario_11_a_full_zone_pins_the_minimum(
    pods: int, expected: dict[str, int] | None
) -> None:
    placer = over(nodes=zones(5, 5, 1))
    wanted = demand(pods, 1, labels=X, spread=spread())
    if expected is None:
        no = refuse(placer, wanted)
        assert (no.pods_placeable, no.pods) == (5, 6)
    else:
        assert found(placer, wanted) == expected


def test_a_larger_skew_lets_more_in() -> None:
    wanted = demand(7, 1, labels=X, spread=spread(2))
    assert found(over(nodes=zones(5, 5, 1)), wanted) == {"z0": 3, "z1": 3, "z2": 1}


def test_those_already_there_count() -> None:
    placer = over(pod("z0", labels=X), nodes=zones(5, 5, 5))
    assert found(placer, demand(2, 1, labels=X, spread=spread())) == {"z1": 1, "z2": 1}


def test_zones_that_the_pods_do_not_select_do_not_count() -> None:
    nodes = [*zones(5, 5), node("z2", 5, {ZONE: "zone-2", "old": "yes"})]
    new = Constraint(affinity=((Requirement("old", "DoesNotExist"),),))
    wanted = demand(4, 1, labels=X, spread=spread(), constraint=new)
    assert found(over(nodes=nodes), wanted) == {"z0": 2, "z1": 2}


def test_too_few_zones_count_as_an_empty_one() -> None:
    wanted = demand(4, 1, labels=X, spread=spread(min_domains=3))
    assert refuse(over(nodes=zones(5, 5)), wanted).pods_placeable == 2


def test_a_spread_that_does_not_speak_of_the_pods_only_closes_domains() -> None:
    crowded = (pod("z0", "p", labels=X), pod("z0", "q", labels=X))
    wanted = demand(3, 1, labels=Y, spread=spread())
    assert found(over(*crowded, nodes=zones(5, 5)), wanted) == {"z1": 3}
    refuse(over(nodes=NODES[:1]), demand(1, 1, labels=Y, spread=spread()))


def test_a_node_without_the_label_takes_no_pod() -> None:
    placer = over(nodes=[*zones(1), node("bare")])
    assert found(placer, demand(1, 1, labels=X, spread=spread())) == {"z0": 1}
    refuse(placer, demand(2, 1, labels=X, spread=spread()))
