"""Other nodes for those that a gang lost (spec placement §10.4)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from tests.support.placement_builders import BLOCK, GPU, RACK, cluster_t
from tests.support.quota_builders import assignment, job, pods, queue
from unisono.engine.cluster import new_cluster
from unisono.engine.dry_run import BrokenPlan, refuse_broken_repair
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import FlavorName, NodeName, QueueName
from unisono.engine.model.node import Topology
from unisono.engine.model.queue import Flavor
from unisono.engine.model.workload import (
    Admission,
    AdmittedWorkload,
    PodSetAssignment,
    TopologyRequest,
)
from unisono.engine.placement.gang import PodSetPlacement
from unisono.engine.repair import repair, with_others
from unisono.engine.state import changes

Mode = Literal["required", "preferred", "unconstrained"]


def admitted(name: str, on: str, **options: Any) -> AdmittedWorkload:
    """Return a workload with one pod of eight GPUs on each of these nodes."""
    nodes = on.split()
    pod_set = pods(len(nodes), {GPU: 8}, **options)
    workload = job(name, "q", pod_sets=(pod_set,))
    places = tuple((NodeName(node), 1) for node in nodes)
    placed = msgspec.structs.replace(assignment(pod_set), nodes=places)
    return AdmittedWorkload(
        workload=workload, admission=Admission(queue=QueueName("q"), pod_sets=(placed,))
    )


def after_losing(lost: str, *admitted_workloads: AdmittedWorkload, stays: str = "") -> str:
    """Return the nodes of the first admitted workload when some nodes of cluster T are lost."""
    state = new_cluster()
    for node in cluster_t():
        ready = node.name not in lost.split()
        state.apply(changes.NodeSet(msgspec.structs.replace(node, ready=ready)))
    state.apply(changes.TopologySet(Topology("t", (BLOCK, RACK))))
    state.apply(changes.FlavorSet(Flavor(name=FlavorName("f"), topology="t")))
    state.apply(changes.QueueSet(queue("q", "64")))
    for one in admitted_workloads:
        state.apply(changes.WorkloadHolds(one))
    gone = [NodeName(name) for name in lost.split()]
    pod_set = admitted_workloads[0].workload.pod_sets[0].name
    keeps = {(pod_set, NodeName(name)): (-1,) for name in stays.split()}
    answer = repair(state, admitted_workloads[0].workload.key, gone, keeps)
    if isinstance(answer, GangDoesNotFit):
        return f"{answer.pods_placeable} of {answer.pods}"
    refuse_broken_repair(state, admitted_workloads[0].workload.key, answer)
    return " ".join(node for node, _ in answer.pod_sets[0].nodes)


def topology(mode: Mode, level: str) -> TopologyRequest:
    return TopologyRequest(mode, level)


@pytest.mark.parametrize(
    ("lost", "others", "topology", "expected"),
    [
        # In the place of the lost one, in the same rack, the same block, anywhere.
        ("b0r0n0", (), topology("preferred", RACK), "b0r1n0 b0r0n1"),
        ("b0r0n0", ("b0r1n0 b0r1n1",), topology("preferred", RACK), "b1r0n0 b0r0n1"),
        ("b0r0n0", (), topology("required", BLOCK), "b0r1n0 b0r0n1"),
        ("b0r0n0", ("b0r1n0 b0r1n1",), topology("required", BLOCK), "0 of 1"),
        ("b0r0n0", (), topology("required", RACK), "0 of 1"),
        ("b0r0n0 b0r0n1", (), topology("required", RACK), "b0r1n0 b0r1n1"),
        ("b0r0n1", ("b0r1n1",), None, "b0r0n0 b0r1n0"),
    ],
)
def test_new_nodes_are_near_the_others(
    lost: str, others: tuple[str, ...], topology: TopologyRequest | None, expected: str
) -> None:
    neighbours = [admitted(f"o{number}", on) for number, on in enumerate(others)]
    mine = admitted("mine", "b0r0n0 b0r0n1", topology=topology)
    assert after_losing(lost, mine, *neighbours) == expected


def test_a_gang_in_two_racks_stays_in_its_block() -> None:
    mine = admitted("mine", "b1r0n0 b1r1n0 b1r1n1", topology=topology("preferred", RACK))
    assert after_losing("b1r1n1", mine) == "b1r0n0 b1r1n0 b1r0n1"


def test_no_pod_moves_in_where_others_are() -> None:
    full = admitted("o", "b0r0n1 b0r1n0 b0r1n1 b1r0n0 b1r0n1 b1r1n0 b1r1n1")
    assert after_losing("b0r0n0", admitted("mine", "b0r0n0"), full) == "0 of 1"


def test_a_pod_that_still_runs_on_a_lost_node_stays_there() -> None:
    mine = admitted("mine", "b0r0n0 b0r0n1", topology=topology("required", BLOCK))
    assert after_losing("b0r0n0 b0r0n1", mine, stays="b0r0n1") == "b0r1n0 b0r0n1"
    assert after_losing("b0r0n0 b0r0n1", mine, stays="b0r0n0 b0r0n1") == "b0r0n0 b0r0n1"


def test_pods_that_are_done_need_no_place() -> None:
    mine = admitted("mine", "b0r0n0 b0r0n1", topology=topology("preferred", RACK))
    (placed,) = mine.admission.pod_sets
    left = msgspec.structs.replace(placed, nodes=placed.nodes[:1])
    admission = msgspec.structs.replace(mine.admission, pod_sets=(left,))
    assert after_losing("b0r0n0", msgspec.structs.replace(mine, admission=admission)) == "b0r0n1"


def test_parts_of_gpus_stay_by_their_numbers() -> None:
    a, b = NodeName("a"), NodeName("b")
    before = PodSetAssignment(name="main", count=3, nodes=((a, 3),), devices=(0, 1, 2))
    found = PodSetPlacement("main", ((b, 2),), devices=(5, 6))
    after = with_others(before, found, {a}, {("main", a): (1,)})
    assert (after.nodes, after.devices) == (((b, 2), (a, 1)), (5, 6, 1))


def test_a_node_that_is_reserved_for_the_gang_may_replace_a_lost_one() -> None:
    state = new_cluster()
    spare = msgspec.structs.replace(cluster_t()[0], held_for="ns/gang")
    state.apply(changes.NodeSet(spare))
    state.apply(changes.FlavorSet(Flavor(name=FlavorName("f"))))
    state.apply(changes.QueueSet(queue("q", "64")))
    gang = admitted("gang", "lost")
    state.apply(changes.WorkloadHolds(gang))
    answer = repair(state, gang.workload.key, [NodeName("lost")])
    assert not isinstance(answer, GangDoesNotFit)
    assert answer.pod_sets[0].nodes == ((spare.name, 1),)
    refuse_broken_repair(state, gang.workload.key, answer)


def test_the_auditor_refuses_a_repair_onto_a_full_node() -> None:
    state = new_cluster()
    for node in cluster_t():
        state.apply(changes.NodeSet(node))
    state.apply(changes.FlavorSet(Flavor(name=FlavorName("f"))))
    state.apply(changes.QueueSet(queue("q", "64")))
    mine, other = admitted("mine", "b0r0n0 b0r0n1"), admitted("other", "b0r0n2")
    for one in (mine, other):
        state.apply(changes.WorkloadHolds(one))
    elsewhere = admitted("mine", "b0r0n0 b0r0n2").admission
    with pytest.raises(BrokenPlan, match="b0r0n2"):
        refuse_broken_repair(state, mine.workload.key, elsewhere)
    refuse_broken_repair(state, mine.workload.key, admitted("mine", "b0r0n0 b0r1n0").admission)
