"""Pods that come in blocks: every block inside one domain of the slice level."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.placement_builders import BLOCK, RACK, demand, node, place, placer_of, refuse
from tests.support.quota_builders import job, pods, queue
from unisono.engine.cluster import new_cluster
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import FlavorName, LocalQueueKey, NodeName, QueueName
from unisono.engine.model.node import HOSTNAME, Node
from unisono.engine.model.policy import Placement, Policy
from unisono.engine.model.queue import Flavor, LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import TopologyRequest
from unisono.engine.placement.demand import Demand, Mode
from unisono.engine.state.changes import (
    FlavorSet,
    LocalQueueSet,
    NodeSet,
    QueueSet,
    WorkloadWaits,
)


def racks(*sizes: tuple[int, ...], labelled: bool = True) -> list[Node]:
    """Make one rack a tuple, with nodes of so many GPUs."""
    return [
        node(f"r{r}n{n}", gpus, {BLOCK: "b", RACK: f"r{r}"} if labelled else {})
        for r, rack in enumerate(sizes)
        for n, gpus in enumerate(rack)
    ]


def sliced(pods: int, size: int, at: str, mode: Mode = "required", **options: Any) -> Demand:
    options.setdefault("level", BLOCK)
    return demand(pods, 1, mode, levels=(BLOCK, RACK), slice_size=size, slice_level=at, **options)


def pods_by_rack(found: dict[str, int]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for name, count in found.items():
        totals[name[:2]] = totals.get(name[:2], 0) + count
    return totals


def test_blocks_stay_in_one_rack() -> None:
    placer = placer_of(*racks((2, 1), (3, 2), (1, 1)))
    found = place(placer, sliced(6, 2, RACK))["main"]
    assert pods_by_rack(found) == {"r0": 2, "r1": 4}
    # Ten pods would fit, but a rack of three holds one block and a rack of five two.
    assert refuse(placer, sliced(10, 2, RACK)).pods_placeable == 8


def test_blocks_stay_on_one_node() -> None:
    placer = placer_of(*racks((3, 3), (3,)))
    found = place(placer, sliced(6, 2, HOSTNAME))["main"]
    assert found == {"r0n0": 2, "r0n1": 2, "r1n0": 2}
    refuse(placer, sliced(8, 2, HOSTNAME))


@pytest.mark.parametrize("mode", ["required", "preferred", "unconstrained"])
def test_blocks_are_whole_in_every_mode(mode: Mode) -> None:
    placer = placer_of(*racks((3,), (3,)))
    found = place(placer, sliced(4, 2, RACK, mode))["main"]
    assert found == {"r0n0": 2, "r1n0": 2}
    assert refuse(placer, sliced(6, 2, RACK, mode)).pods_placeable == 4


def test_a_number_that_is_no_multiple_is_refused() -> None:
    refuse(placer_of(*racks((8,))), sliced(3, 2, RACK))


def test_an_elastic_set_takes_whole_blocks_only() -> None:
    found = place(placer_of(*racks((8,))), sliced(5, 2, RACK, least=3))["main"]
    assert sum(found.values()) == 4


def test_nodes_without_the_label_hold_no_block() -> None:
    refuse(placer_of(*racks((8,), labelled=False)), sliced(2, 2, RACK, "preferred"))


def test_the_domain_with_enough_whole_blocks_is_found_behind_many_without() -> None:
    blocks = [
        node(f"{n}{i:02}", gpus, {BLOCK: f"b{i:02}", RACK: "r"})
        for i in range(20)
        for n, gpus in (("a", 3), ("b", 1))
    ]
    last = [node(f"z{n}", 4, {BLOCK: "z", RACK: "r"}) for n in (1, 2)]
    found = place(placer_of(*blocks, *last), sliced(4, 4, HOSTNAME))["main"]
    assert found == {"z1": 4}


@pytest.mark.parametrize("at", [RACK, HOSTNAME])
def test_without_a_node_blocks_are_refused(at: str) -> None:
    """A cluster whose nodes are all bought begins with none."""
    assert refuse(placer_of(), sliced(6, 2, at, "preferred")).pods_placeable == 0


@pytest.mark.parametrize("mode", ["required", "preferred", "unconstrained"])
@pytest.mark.parametrize("level", ["", RACK, HOSTNAME])
@pytest.mark.parametrize("labels", [{}, {RACK: "r0"}, {BLOCK: "b", RACK: "r0"}])
def test_slices_of_a_level_that_no_node_has_wait(
    mode: Mode, level: str, labels: dict[str, str]
) -> None:
    """The planner once took single nodes for them, and the auditor refused every plan."""
    state = new_cluster(Policy(placement=Placement(needs_nodes=True)))
    state.apply(FlavorSet(Flavor(name=FlavorName("f"))))
    state.apply(QueueSet(queue("q")))
    state.apply(LocalQueueSet(LocalQueue(key=LocalQueueKey("ns/q"), queue=QueueName("q"))))
    for name in ("n1", "n2"):
        has = amounts({"gpu": 8, "pods": 110})
        made = tuple(sorted({**labels, HOSTNAME: name}.items()))
        state.apply(NodeSet(Node(name=NodeName(name), labels=made, allocatable=has)))
    wanted = TopologyRequest(mode=mode, level=level, slice_level="unknown", slice_size=2)
    gang = job("sliced", "q", pod_sets=(pods(2, {"gpu": 1}, topology=wanted),))
    state.apply(WorkloadWaits(gang))
    plans = dry_run(state, state.now)  # the auditor finds each of them sound
    assert not any(made.admissions for made in plans)
    why = explanation(state, gang.key)
    assert why is not None
    (fact,) = (one for one in why.blockers if isinstance(one, GangDoesNotFit))
    assert dict(fact.refusals).get("topology") == 2
