"""Every flavor is tried by name, holders of nodes are named, and what can never be comes first."""

from __future__ import annotations

from tests.support.quota_builders import group, job, pods, queue
from unisono.engine.cluster import new_cluster
from unisono.engine.diagnosis import diagnose
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.diagnosis import headline, way_sentence
from unisono.engine.model.diagnosis import Diagnosis, Holder, MissingNodes
from unisono.engine.model.names import FlavorName, Instant, LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Placement, Policy
from unisono.engine.model.queue import Flavor, LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import (
    FlavorSet,
    LocalQueueSet,
    NodeSet,
    QueueSet,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState

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
    assert [way_sentence(way).partition(";")[0] for way in found.ways] == [
        "a100: pod set main needs 16 gpu in flavor a100",
        "t4: pod set main needs 16 gpu in flavor t4",
    ]
    assert found.nearest == 0


def test_names_holders_of_nodes_where_quota_is_free() -> None:
    state = two_flavors("1000")
    submit(state, job("notebook", "q", 4), gang("train", 2, 8))
    found = diagnosis(state, "train")
    assert [one.workload for one in found.in_the_way if isinstance(one, Holder)] == ["ns/notebook"]
    assert way_sentence(found.ways[0]).startswith(
        "a100: 12 of 16 gpu are free on its nodes, 16 gpu asked for; pod set main: 1 of 2 pods fit"
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
