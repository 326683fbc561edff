"""Pods and slices that must be close to each other and are not, are caught."""

from __future__ import annotations

from typing import Any

from tests.support.audit_plans import breaks, machine, of, passes, replace, started, world
from tests.support.quota_builders import pods
from unisono.engine.model.names import FlavorName
from unisono.engine.model.node import HOSTNAME, Topology
from unisono.engine.model.queue import Flavor
from unisono.engine.model.workload import PodSet, TopologyRequest

BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"
# Both blocks have a rack r0: a rack's name alone does not say which one it is.
NODES = (
    machine("a0", 8, {BLOCK: "a", RACK: "r0"}),
    machine("a1", 8, {BLOCK: "a", RACK: "r0"}),
    machine("a2", 8, {BLOCK: "a", RACK: "r1"}),
    machine("b0", 8, {BLOCK: "b", RACK: "r0"}),
    machine("bare"),
)


def a_set(
    count: int, topology: TopologyRequest | None, name: str = "main", **options: Any
) -> PodSet:
    return pods(count, {"gpu": 1}, name, topology=topology, **options)


def required(level: str, **options: Any) -> TopologyRequest:
    return TopologyRequest("required", level, **options)


def test_required_pods_share_a_domain() -> None:
    close = of(a_set(2, required(RACK)))
    cluster = world(*NODES, waiting=(close,))
    passes(cluster, started(close, {"a0": 1, "a1": 1}))
    breaks("topology", cluster, started(close, {"a0": 1, "a2": 1}))
    breaks("topology", cluster, started(close, {"a0": 1, "b0": 1}))
    breaks("topology", cluster, started(close, {"bare": 2}))


def test_the_node_is_the_narrowest_level() -> None:
    for level in ("", HOSTNAME):
        close = of(a_set(2, required(level)))
        cluster = world(*NODES, waiting=(close,))
        passes(cluster, started(close, {"bare": 2}))
        breaks("topology", cluster, started(close, {"a0": 1, "a1": 1}))


def test_what_is_only_preferred_may_be_anywhere() -> None:
    topology = TopologyRequest("preferred", RACK)
    loose = of(a_set(2, topology))
    passes(world(*NODES, waiting=(loose,)), started(loose, {"a0": 1, "bare": 1}))


def test_a_topology_says_which_levels_belong_together() -> None:
    close = of(a_set(2, required("row")))
    nodes = (
        machine("h0", 8, {"hall": "h", "row": "1"}),
        machine("i0", 8, {"hall": "i", "row": "1"}),
    )
    made = started(close, {"h0": 1, "i0": 1})
    passes(world(*nodes, waiting=(close,)), made)  # no topology says that rows are in halls
    known = (Topology("dc", ("hall", "row")),)
    breaks("topology", world(*nodes, waiting=(close,), topologies=known), made)
    flat = (Topology("dc", ("hall", "row")), Topology("flat", ("row",)))
    flavor = Flavor(name=FlavorName("f"), topology="flat")
    passes(world(*nodes, waiting=(close,), topologies=flat, flavors=(flavor,)), made)


def test_sets_of_one_group_share_a_domain() -> None:
    topology = required(RACK)
    grouped = of(a_set(1, topology, group="g"), a_set(1, topology, "more", group="g"))
    single = of(a_set(1, topology), a_set(1, topology, "more"))
    split = ({"a0": 1}, {"a2": 1})
    breaks("topology", world(*NODES, waiting=(grouped,)), started(grouped, *split))
    passes(world(*NODES, waiting=(grouped,)), started(grouped, {"a0": 1}, {"a1": 1}))
    passes(world(*NODES, waiting=(single,)), started(single, *split))


def test_slices_are_whole() -> None:
    sliced = of(a_set(4, required(BLOCK, slice_level=RACK, slice_size=2)))
    cluster = world(*NODES, waiting=(sliced,))
    passes(cluster, started(sliced, {"a0": 1, "a1": 1, "a2": 2}))
    breaks("topology", cluster, started(sliced, {"a0": 1, "a1": 2, "a2": 1}))
    breaks("topology", cluster, started(sliced, {"a0": 2, "b0": 2}))
    loose = TopologyRequest("unconstrained", "", slice_level=RACK, slice_size=2)
    anywhere = of(a_set(4, loose))
    passes(world(*NODES, waiting=(anywhere,)), started(anywhere, {"a0": 2, "b0": 2}))
    breaks("topology", world(*NODES, waiting=(anywhere,)), started(anywhere, {"a0": 2, "bare": 2}))
    on_nodes = of(a_set(4, replace(loose, slice_level=HOSTNAME)))
    cluster = world(*NODES, waiting=(on_nodes,))
    passes(cluster, started(on_nodes, {"a0": 2, "bare": 2}))
    breaks("topology", cluster, started(on_nodes, {"a0": 1, "a1": 1, "bare": 2}))
