"""Pods that share a port, sit where others do not want them, or are not spread, are caught."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.audit_plans import breaks, machine, of, passes, replace, started, there, world
from tests.support.placement_builders import RACK, ZONE, like, rule
from tests.support.quota_builders import pods
from unisono.engine.model.names import NodeName
from unisono.engine.model.node import HOSTNAME, HostPort, NodePod, PodRule, PodSelector, SpreadRule
from unisono.engine.model.selection import LabelSelector
from unisono.engine.model.workload import PodSet

APP = (("app", "x"),)
N1, N2 = machine("n1", 8, {RACK: "r1", ZONE: "z1"}), machine("n2", 8, {RACK: "r1", ZONE: "z2"})
N3, BARE = machine("n3", 8, {RACK: "r3", ZONE: "z3"}), machine("bare")
NODES = (N1, N2, N3, BARE)


def a_set(count: int = 2, name: str = "main", **options: Any) -> PodSet:
    options.setdefault("labels", APP)
    return pods(count, {"gpu": 1}, name, **options)


def some_pod(where: str, **options: Any) -> NodePod:
    options.setdefault("labels", APP)
    return NodePod(key="ns/other", node=NodeName(where), **options)


@pytest.mark.parametrize(
    ("mine", "theirs", "fine"),
    [
        (HostPort(80), HostPort(80), False),
        (HostPort(80), HostPort(81), True),
        (HostPort(80), HostPort(80, "UDP"), True),
        (HostPort(80, address="10.0.0.1"), HostPort(80), False),
        (HostPort(80), HostPort(80, address="10.0.0.1"), False),
        (HostPort(80, address="10.0.0.1"), HostPort(80, address="10.0.0.2"), True),
        (HostPort(80, address="0.0.0.0"), HostPort(80, address="10.0.0.2"), False),
    ],
)
def test_a_port_belongs_to_one_pod(mine: HostPort, theirs: HostPort, fine: bool) -> None:
    gang = of(a_set(1, host_ports=(mine,)))
    cluster = world(*NODES, waiting=(gang,), pods=(some_pod("n1", host_ports=(theirs,)),))
    passes(cluster, started(gang, {"n2": 1}))
    if fine:
        passes(cluster, started(gang, {"n1": 1}))
    else:
        breaks("neighbours", cluster, started(gang, {"n1": 1}))


def test_pods_of_one_gang_share_no_port_either() -> None:
    port = (HostPort(29500),)
    alone = of(a_set(2, host_ports=port))
    passes(world(*NODES, waiting=(alone,)), started(alone, {"n1": 1, "n2": 1}))
    breaks("neighbours", world(*NODES, waiting=(alone,)), started(alone, {"n1": 2}))
    two = of(a_set(1, host_ports=port), a_set(1, "more", host_ports=port))
    passes(world(*NODES, waiting=(two,)), started(two, {"n1": 1}, {"n2": 1}))
    breaks("neighbours", world(*NODES, waiting=(two,)), started(two, {"n1": 1}, {"n1": 1}))


def test_pods_that_want_to_be_apart_are() -> None:
    apart = of(a_set(2, anti_affinity=(rule(RACK, app="x"),)))
    cluster = world(*NODES, waiting=(apart,))
    passes(cluster, started(apart, {"n1": 1, "n3": 1}))
    passes(cluster, started(apart, {"bare": 2}))
    breaks("neighbours", cluster, started(apart, {"n1": 1, "n2": 1}))
    breaks("neighbours", cluster, started(apart, {"n3": 2}))


def test_own_anti_affinity_is_kept() -> None:
    shy = of(a_set(1, anti_affinity=(rule(HOSTNAME, app="y"),)))
    busy = world(*NODES, waiting=(shy,), pods=(some_pod("n1", labels=(("app", "y"),)),))
    passes(busy, started(shy, {"n2": 1}))
    breaks("neighbours", busy, started(shy, {"n1": 1}))


def test_anti_affinity_of_other_pods_is_kept() -> None:
    keep_off = (rule(RACK, app="x"),)
    newcomer, other = of(a_set(1)), of(a_set(1, labels=(("app", "y"),)))
    for cluster in (
        world(*NODES, pods=(some_pod("n1", labels=(), anti_affinity=keep_off),)),
        world(
            *NODES,
            admitted_workloads=(
                there(of(a_set(1, labels=(), anti_affinity=keep_off), name="b"), {"n1": 1}),
            ),
        ),
    ):
        found = breaks(
            "neighbours", replace(cluster, waiting=(newcomer,)), started(newcomer, {"n2": 1})
        )
        assert "keep others away from rack=r1" in found.message
        passes(replace(cluster, waiting=(newcomer,)), started(newcomer, {"n3": 1}))
        passes(replace(cluster, waiting=(other,)), started(other, {"n2": 1}))


def test_a_rule_speaks_of_its_own_namespace_unless_it_says_otherwise() -> None:
    def keep_off(**options: Any) -> NodePod:
        selector = PodSelector(LabelSelector(), **options)
        return NodePod(
            key="far/away",
            node=NodeName("n1"),
            anti_affinity=(PodRule(selector, HOSTNAME),),
        )

    newcomer = of(a_set(1))
    made = started(newcomer, {"n1": 1})
    passes(world(*NODES, waiting=(newcomer,), pods=(keep_off(),)), made)
    for options in ({"namespaces": ("ns",)}, {"every_namespace": True}):
        cluster = world(*NODES, waiting=(newcomer,), pods=(keep_off(**options),))
        breaks("neighbours", cluster, made)


def test_affinity_is_kept() -> None:
    near = of(a_set(2, labels=(), affinity_to=(rule(RACK, app="x"),)))
    cluster = world(*NODES, waiting=(near,), pods=(some_pod("n1"),))
    passes(cluster, started(near, {"n1": 1, "n2": 1}))
    breaks("neighbours", cluster, started(near, {"n1": 1, "n3": 1}))
    breaks("neighbours", cluster, started(near, {"bare": 2}))
    breaks("neighbours", world(*NODES, waiting=(near,)), started(near, {"n1": 2}))


def test_pods_that_want_to_be_near_each_other_are_in_one_domain() -> None:
    near = of(a_set(2, affinity_to=(rule(RACK, app="x"),)))
    cluster = world(*NODES, waiting=(near,))
    passes(cluster, started(near, {"n1": 1, "n2": 1}))
    breaks("neighbours", cluster, started(near, {"n1": 1, "n3": 1}))


def test_the_first_pods_of_their_label_start_a_domain_before_others_of_the_gang() -> None:
    near = a_set(2, affinity_to=(rule(RACK, app="x"),))
    gang = of(near, a_set(1, "more"))
    cluster = world(*NODES, waiting=(gang,))
    passes(cluster, started(gang, {"n1": 1, "n2": 1}, {"n3": 1}))
    passes(cluster, started(gang, {"n1": 1, "n3": 1}, {"n3": 1}))
    breaks("neighbours", cluster, started(gang, {"n1": 1, "n3": 1}, {"bare": 1}))


SPREAD = SpreadRule(selector=like(app="x"), topology_key=ZONE)


def test_pods_are_spread() -> None:
    wide = of(a_set(4, spread=(SPREAD,)))
    cluster = world(*NODES, waiting=(wide,))
    passes(cluster, started(wide, {"n1": 2, "n2": 1, "n3": 1}))
    breaks("neighbours", cluster, started(wide, {"n1": 2, "n2": 2}))
    breaks("neighbours", cluster, started(wide, {"n1": 1, "n2": 1, "n3": 1, "bare": 1}))


def test_those_already_there_count_for_the_spread() -> None:
    wide = of(a_set(2, spread=(SPREAD,)))
    there_is_one = world(*NODES, waiting=(wide,), pods=(some_pod("n1"),))
    passes(there_is_one, started(wide, {"n2": 1, "n3": 1}))
    breaks("neighbours", there_is_one, started(wide, {"n1": 1, "n3": 1}))


def test_only_nodes_that_the_pods_select_make_domains() -> None:
    in_r1 = ((RACK, "r1"),)
    wide = of(a_set(4, spread=(SPREAD,), node_selector=in_r1))
    passes(world(*NODES, waiting=(wide,)), started(wide, {"n1": 2, "n2": 2}))
    few = replace(SPREAD, min_domains=3)
    strict = of(a_set(4, spread=(few,), node_selector=in_r1))
    breaks("neighbours", world(*NODES, waiting=(strict,)), started(strict, {"n1": 2, "n2": 2}))
