"""Why a gang has no place, in numbers and in words (spec placement §8.10)."""

from __future__ import annotations

import numpy as np

from tests.support.placement_builders import (
    BLOCK,
    GPU,
    PORT,
    RACK,
    cluster_t,
    demand,
    node,
    placer_of,
    refuse,
)
from unisono.engine.explain.messages import remedy, sentence, what_would_help
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import ResourceName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement, Taint
from unisono.engine.placement.demand import Constraint, Demand

T_LEVELS = (BLOCK, RACK)


def why(wanted: Demand, *nodes: Node) -> GangDoesNotFit:
    return refuse(placer_of(*nodes), wanted)


def test_three_of_four_pods_fit() -> None:
    no = why(demand(4, 8), *(node(f"n{i}") for i in range(3)))
    assert (no.pods, no.pods_placeable, no.cluster_holds, no.nodes) == (4, 3, 3, 3)
    assert no.refusals == ()
    assert sentence(no) == "pod set main: 3 of 4 pods fit"


def test_the_best_domain_is_named() -> None:
    no = why(demand(3, 8, "required", levels=T_LEVELS, level=RACK), *cluster_t())
    assert sentence(no) == (
        "pod set main: all 3 pods have to be in one rack; best rack b0/r0 holds 2 of 3, "
        "the cluster 8"
    )


def test_the_best_node_is_named_where_one_node_has_to_do() -> None:
    no = why(demand(3, 4, "required", level=HOSTNAME), node("n1", 4), node("n2", 8))
    assert (no.best_domain, no.pods_placeable, no.cluster_holds) == ("n2", 2, 3)


def test_nodes_without_the_label_are_never_the_best_domain() -> None:
    nodes = (node("a"), node("b"), node("c", 8, {RACK: "r1"}))
    no = why(demand(2, 8, "required", levels=(RACK,), level=RACK), *nodes)
    assert (no.best_domain, no.pods_placeable, no.cluster_holds) == ("r1", 1, 3)


def test_nodes_are_counted_by_the_first_thing_that_speaks_against_them() -> None:
    ssd = {"disk": "ssd"}
    nodes = (
        node("down", 8, ready=False),
        node("hdd", 8, taints=(Taint("spot"),)),
        node("hdd2", 8),
        node("tainted", 8, ssd, taints=(Taint("spot"),)),
        node("cordoned", 8, ssd, unschedulable=True),
        node("small", 1, ssd, more={"cpu": 8}),
        node("no-cpu", 8, ssd, more={"cpu": 1}),
        node("no-pods", 8, ssd, more={"cpu": 8, "pods": 0}),
        node("held", 8, ssd, more={"cpu": 8}, held_for="ns/other"),
    )
    only_ssd = Constraint(selector=(("disk", "ssd"),))
    no = why(demand(1, 2, more={"cpu": 2}, constraint=only_ssd), *nodes)
    assert no.refusals == (
        ("selector", 2),
        ("taint", 2),
        ("cpu", 1),
        ("held for others", 1),
        ("not ready", 1),
        (GPU, 1),
        ("pods", 1),
    )
    assert sum(count for _, count in no.refusals) == no.nodes == len(nodes)
    assert sentence(no).startswith(
        "pod set main: 0 of 1 pods fit (9 nodes: 2 without the labels that are asked for, "
        "2 tainted, 1 short of cpu, 1 held for other workloads, "
    )


def test_nodes_that_are_shut_say_nothing_about_what_is_free_on_them() -> None:
    no = why(demand(1, 8), node("down", 8, ready=False), node("spot", 8, taints=(Taint("spot"),)))
    assert sentence(no) == "pod set main: 0 of 1 pods fit (2 nodes: 1 not ready, 1 tainted)"


def test_rules_between_pods_are_the_last_resort() -> None:
    no = why(demand(2, 1, "required", level=HOSTNAME, host_ports=(PORT,)), node("n"))
    assert (no.pods_placeable, no.refusals) == (1, ())


def test_what_the_best_node_has_of_what_one_pod_wants() -> None:
    placer = placer_of(node("n1", 8), node("n2", 8))
    table = placer.feasibility.table
    table.take(np.array([0, 1]), np.array([1, 1]), amounts({GPU: 6}))
    no = refuse(placer, demand(1, 8))
    assert (no.resource, no.wanted_of_node, no.best_node_has) == (GPU, 8, 2)
    assert sentence(no) == (
        "pod set main: 0 of 1 pods fit (2 nodes: 2 short of nvidia.com/gpu); "
        "the best node has 2 of 8 nvidia.com/gpu"
    )
    assert no.largest_node_has == 8
    assert remedy(no) is None, "it has to wait for its neighbours, and no node need be added"
    assert what_would_help(no) == (
        "room for 1 more pod: nodes that join, or workloads that end; "
        "or ask for no more than 2 nvidia.com/gpu in one pod"
    )
    no = refuse(placer, demand(1, 16))
    assert remedy(no) == "add a node with 16 nvidia.com/gpu, or ask for less in one pod"
    no = refuse(placer, demand(1, 1, more={ResourceName("fpga"): 1}))
    assert (no.resource, no.best_node_has) == ("fpga", 0)
    assert refuse(placer, demand(5, 1)).resource == "", "some node takes some pods"


def test_of_several_sets_the_one_that_lacks_is_named() -> None:
    placer = placer_of(node("n", 8))
    no = refuse(placer, demand(1, 6, name="first"), demand(2, 2, name="second"))
    assert (no.pod_set, no.pods_placeable, no.pods) == ("second", 1, 2)


def test_together_they_do_not_fit_although_each_would() -> None:
    placer = placer_of(*cluster_t())
    sets = [
        demand(2, 6, "required", name=name, group="g", levels=T_LEVELS, level=RACK)
        for name in ("a", "b")
    ]
    no = refuse(placer, *sets)
    assert no.pods_placeable < no.pods


def test_nodes_that_do_not_reach_a_volume_are_counted_as_such() -> None:
    here = (Requirement("zone", "In", ("a",)),)
    fast = Constraint(affinity=((*here, Requirement("disk", "In", ("ssd",))),))
    nodes = (node("a1", 8, {"zone": "a"}), node("b1", 8, {"zone": "b"}), node("b2", 8))
    no = why(demand(1, 8, constraint=fast, volumes=((here,),)), *nodes)
    assert dict(no.refusals) == {"volume": 2, "selector": 1}
    assert "(3 nodes: 2 out of reach of a volume, 1 without the labels" in sentence(no)
    only = why(demand(1, 8, constraint=Constraint(affinity=(here,)), volumes=((here,),)), nodes[1])
    assert remedy(only) == "add a node that reaches the volumes of the pods, or move the volumes"
