"""Every flavor is tried by name, holders of nodes are named, and what can never be comes first."""

from __future__ import annotations

import msgspec

from tests.support.quota_builders import group, job, pods, queue
from unisono.engine.cluster import new_cluster
from unisono.engine.diagnosis import diagnose
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.diagnosis import headline, message_with, way_sentences
from unisono.engine.explain.messages import message_of
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.diagnosis import Diagnosis, Holder, MissingNodes
from unisono.engine.model.names import (
    FlavorName,
    Instant,
    LocalQueueKey,
    NodeName,
    WorkloadKey,
)
from unisono.engine.model.node import QUARANTINE, Node, Topology
from unisono.engine.model.policy import Placement, Policy
from unisono.engine.model.queue import CheckRule, Flavor, LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Taint
from unisono.engine.model.workload import TopologyRequest, Workload
from unisono.engine.state.changes import (
    FlavorSet,
    LocalQueueSet,
    NodeSet,
    QueueSet,
    TopologySet,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState

replace = msgspec.structs.replace
NOW = Instant(1_767_268_800_000)
HOUR = 3_600_000


def two_flavors(gpu_quota: str = "16") -> ClusterState:
    """Two nodes with 8 A100s each, and one with 8 T4s."""
    state = new_cluster(Policy(placement=Placement(needs_nodes=True)), now=NOW)
    for name, count in (("a100", 2), ("t4", 1)):
        state.apply(FlavorSet(Flavor(name=FlavorName(name), node_labels=(("type", name),))))
        for number in range(count):
            node = NodeName(f"{name}-{number}")
            has = amounts({"gpu": 8, "pods": 110})
            state.apply(NodeSet(Node(name=node, labels=(("type", name),), allocatable=has)))
    quotas = {"a100": {"gpu": gpu_quota}, "t4": {"gpu": "8"}}
    state.apply(QueueSet(queue("q", groups=(group(quotas),))))
    state.apply(LocalQueueSet(LocalQueue(key=LocalQueueKey("ns/q"), queue=queue("q").name)))
    return state


def submit(state: ClusterState, *workloads: Workload) -> None:
    for workload in workloads:
        state.apply(WorkloadWaits(workload))
        dry_run(state, state.now)


def diagnosis(state: ClusterState, name: str) -> Diagnosis:
    found = diagnose(state, WorkloadKey(f"ns/{name}"))
    assert found is not None
    return found


def gang(name: str, count: int, gpus: int) -> Workload:
    return job(name, "q", pod_sets=(pods(count, {"gpu": gpus}),))


def test_names_every_flavor_and_the_job_that_holds_nodes() -> None:
    state = two_flavors()
    submit(state, job("notebook", "q", 4, time_limit_ms=HOUR), gang("train", 2, 8))
    found = diagnosis(state, "train")
    assert found.verdict == "later"
    (holder,) = found.in_the_way
    assert isinstance(holder, Holder)
    assert (holder.workload, holder.nodes) == ("ns/notebook", ("a100-0",))
    assert headline(found) == (
        "starts once ns/notebook has ended (4 gpu of a100 on a100-0; by 2026-01-01T13:00:00Z, "
        "its time limit)"
    )
    assert [one.partition(";")[0] for one in way_sentences(found)] == [
        "a100 (nearest): pod set main needs 16 gpu in flavor a100",
        "t4: never: pod set main needs 16 gpu in flavor t4",
    ]
    assert found.nearest == 0


def test_names_holders_of_nodes_where_quota_is_free() -> None:
    state = two_flavors("1000")
    submit(state, job("notebook", "q", 4), gang("train", 2, 8))
    found = diagnosis(state, "train")
    assert [one.workload for one in found.in_the_way if isinstance(one, Holder)] == ["ns/notebook"]
    assert way_sentences(found)[0].startswith(
        "a100 (nearest): 12 of 16 gpu are free on its nodes, 16 gpu asked for; "
        "pod set main: 1 of 2 pods fit"
    )


def test_a_pod_larger_than_every_node_never_starts() -> None:
    state = two_flavors("1000")
    submit(state, gang("filler", 2, 8), gang("huge", 1, 16))
    found = diagnosis(state, "huge")
    assert found.verdict == "never"
    (missing,) = found.in_the_way
    assert isinstance(missing, MissingNodes)
    assert (missing.short_of, missing.largest) == ("gpu", 8)
    assert headline(found) == (
        "never, unless there is a node with 16 gpu (type=a100); the largest node has 8 gpu"
    )


def test_counts_the_nodes_that_are_missing() -> None:
    state = two_flavors("1000")
    submit(state, gang("wide", 4, 8))
    assert headline(diagnosis(state, "wide")) == (
        "never, unless there are 2 more nodes like these: 8 gpu (type=a100)"
    )


def test_nodes_beyond_all_measure_are_counted_and_not_made() -> None:
    state = two_flavors()
    submit(state, gang("huge", 2**31 - 1, 8))
    found = diagnosis(state, "huge")
    assert found.verdict == "never"
    missing = [one for one in found.in_the_way if isinstance(one, MissingNodes)]
    assert [(one.count, one.tried) for one in missing] == [(2**31 - 1 - 3, False)]
    assert f"at least {2**31 - 4} more nodes" in headline(found)


def test_a_way_that_no_empty_node_opens_says_why_there() -> None:
    """What is in use now does not matter for it."""
    state = two_flavors("1000")
    submit(state, gang("filler", 1, 8), job("small", "q", 8), gang("pair", 2, 8))
    found = diagnosis(state, "pair")
    assert found.verdict == "later"
    a100, t4 = way_sentences(found)
    assert a100.startswith("a100 (nearest): 0 of 16 gpu are free on its nodes, 16 gpu asked for")
    assert t4.startswith("t4: never: pod set main needs 16 gpu in flavor t4; queue q can never")
    assert [way.possible for way in found.ways] == [True, False]


def test_the_summary_of_a_workload_begins_with_the_root_cause_and_names_every_flavor() -> None:
    state = two_flavors()
    submit(state, job("notebook", "q", 4, time_limit_ms=HOUR), gang("train", 2, 8))
    why = explanation(state, WorkloadKey("ns/train"))
    assert why is not None
    line = message_with(why, diagnosis(state, "train"))
    assert line.startswith("starts once ns/notebook has ended (4 gpu of a100 on a100-0; by ")
    assert ". a100 (nearest): " in line
    assert ". t4: never: " in line
    assert "To change that" not in line, "what was not tried may not be enough"


def test_labels_that_no_flavor_has_are_never_met() -> None:
    state = two_flavors()
    pod_set = msgspec.structs.replace(pods(1, {"gpu": 1}), node_selector=(("type", "h100"),))
    submit(state, job("picky", "q", pod_sets=(pod_set,)))
    found = diagnosis(state, "picky")
    assert headline(found) == (
        "never as things are: pod set main asks for type=h100, unlike flavor a100 "
        "(change the pods' nodeSelector or affinity, or the flavor's nodeLabels)"
    )
    why = explanation(state, WorkloadKey("ns/picky"))
    assert why is not None
    assert message_with(why, found).endswith(
        ". t4: never: pod set main asks for type=h100, unlike flavor t4"
    )


def test_nodes_that_are_out_are_not_called_free() -> None:
    state = two_flavors("1000")
    (node,) = (one for one in state.nodes.table.nodes if one is not None and one.name == "a100-0")
    taint = Taint(key=QUARANTINE, value="Xid79", effect="NoSchedule")
    state.apply(NodeSet(replace(node, taints=(taint,))))
    submit(state, gang("train", 2, 8))
    found = diagnosis(state, "train")
    assert headline(found) == (
        "starts once node a100-0 is out of quarantine (by itself once it is healthy, or: "
        "kubectl taint node a100-0 unisono.dev/quarantine-)"
    )
    a100 = way_sentences(found)[0]
    assert a100.startswith(
        "a100: 8 of 16 gpu are free on its nodes (8 on nodes that are out), 16 gpu asked for; "
        "pod set main: 1 of 2 pods fit (3 nodes: "
    )
    assert "1 in quarantine" in a100
    assert "tainted" not in a100


def test_nodes_of_others_are_none_of_its_own() -> None:
    state = two_flavors("1000")
    (node,) = (one for one in state.nodes.table.nodes if one is not None and one.name == "a100-0")
    state.apply(NodeSet(replace(node, taints=(Taint(key="team", value="b", effect="NoSchedule"),))))
    submit(state, job("notebook", "q", 4), gang("one", 1, 8), gang("two", 1, 8))
    found = diagnosis(state, "two")
    assert "4 of 8 gpu are free on its nodes, 8 gpu asked for" in way_sentences(found)[0]


def test_labels_that_no_node_has_are_named_and_no_node_is_called_alike() -> None:
    state = two_flavors("1000")
    state.apply(FlavorSet(Flavor(name=FlavorName("h100"), node_labels=(("type", "h100"),))))
    state.apply(QueueSet(queue("q", groups=(group({"h100": {"gpu": "8"}}),))))
    submit(state, gang("train", 1, 8))
    assert headline(diagnosis(state, "train")) == (
        "never, unless there is a node with 8 gpu (type=h100); no node has the label type=h100"
    )


def test_a_topology_level_that_no_node_has_is_what_is_missing() -> None:
    state = two_flavors("1000")
    rack = TopologyRequest(mode="required", level="rack")
    submit(
        state, job("train", "q", pod_sets=(replace(pods(2, {"gpu": 2}), topology=rack, name="w"),))
    )
    found = diagnosis(state, "train")
    assert "; no node has the label rack" in headline(found)
    why = explanation(state, WorkloadKey("ns/train"))
    assert why is not None
    assert "all 2 pods have to be in one rack, and no node that they fit on has the label rack" in (
        message_of(why)
    )
    assert "label nodes with rack, or drop the request for one rack" in message_of(why)


def test_under_a_closed_queue_no_way_says_that_others_go_first() -> None:
    state = two_flavors("1000")
    closed = queue("q", groups=(group({"a100": {"gpu": "8"}}),), checks=(CheckRule("nope"),))
    state.apply(QueueSet(closed))
    submit(state, gang("train", 1, 8))
    found = diagnosis(state, "train")
    assert found.verdict == "never"
    assert way_sentences(found) == ["there is room now"]


def test_a_full_domain_is_not_called_unlabelled() -> None:
    state = two_flavors("1000")
    for node in [one for one in state.nodes.table.nodes if one is not None]:
        if node.name != "t4-0":
            state.apply(NodeSet(replace(node, labels=(*node.labels, ("rack", "r1")))))
    state.apply(QueueSet(queue("q", groups=(group({"a100": {"gpu": "99"}}),))))
    rack = TopologyRequest(mode="required", level="rack")
    gang_of_rack = replace(pods(2, {"gpu": 2}), topology=rack)
    submit(state, gang("filler", 2, 8), job("train", "q", pod_sets=(gang_of_rack,)))
    why = explanation(state, WorkloadKey("ns/train"))
    assert why is not None
    assert "all 2 pods have to be in one rack; best rack r1 holds 0 of 2" in message_of(why)


def test_new_nodes_are_in_a_domain_only_where_that_matters() -> None:
    state = two_flavors("1000")
    state.apply(TopologySet(Topology("racks", ("rack",))))
    for node in [one for one in state.nodes.table.nodes if one is not None]:
        state.apply(NodeSet(replace(node, labels=(*node.labels, ("rack", "r1")))))
    submit(state, gang("wide", 4, 8))
    assert headline(diagnosis(state, "wide")) == (
        "never, unless there are 2 more nodes like these: 8 gpu (type=a100)"
    )
