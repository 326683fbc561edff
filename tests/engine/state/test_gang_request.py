"""Equal gang requests: labels count only where an anti-affinity rule uses them."""

from __future__ import annotations

from typing import Any

from tests.support.quota_builders import job, pods, queue, snapshot
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.model.names import LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import HOSTNAME, Node, NodePod, PodRule, PodSelector
from unisono.engine.model.queue import LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import LabelSelector, Requirement
from unisono.engine.model.snapshot import Namespace
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import (
    LocalQueueSet,
    NamespaceSet,
    NodeSet,
    PodOnNode,
    WorkloadGone,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.gang_request import UNUSED_KEPT, GangRequests


def _named(name: str, app: str = "x", gpus: int = 1, **options: Any) -> Workload:
    labels = (("app", app), ("job-name", name))
    return job(name, "q", pod_sets=(pods(1, {"gpu": gpus}, labels=labels, **options),))


def _rule(key: str, value: str) -> PodRule:
    selector = LabelSelector((Requirement(key, "In", (value,)),))
    return PodRule(PodSelector(selector), HOSTNAME)


def _cluster(nodes: int = 1) -> ClusterState:
    state = restore(snapshot(queue("q", "8")))
    for number in range(nodes):
        name = NodeName(f"n{number}")
        state.apply(NodeSet(Node(name=name, allocatable=amounts({"gpu": 4}))))
    return state


def _keeps_away(state: ClusterState, key: str, value: str, node: str = "n0") -> None:
    rule = _rule(key, value)
    pod = NodePod(key=f"ns/{key}-{value}", node=NodeName(node), anti_affinity=(rule,))
    state.apply(PodOnNode(pod))


def _starts(state: ClusterState) -> set[str]:
    dry_run(state, state.now)
    return {key.partition("/")[2] for key in state.running}


def test_the_very_same_pod_sets_are_known_again() -> None:
    requests, same = GangRequests(), (pods(2, {"gpu": 1}),)
    first, second = (job(name, "q", pod_sets=same) for name in "ab")
    assert requests.take_again(first) is None
    request = requests.take(first)
    assert requests.take_again(second) is request
    assert request.users == 2
    equal = job("c", "q", pod_sets=(pods(2, {"gpu": 1}),))
    assert requests.take_again(equal) is None
    assert requests.take(equal) is request
    for other in ({"reclaimable": (("main", 1),)}, {"min_total": 1}, {"replaces": first.key}):
        assert requests.take_again(job("d", "q", pod_sets=same, **other)) is None
        assert requests.take(job("d", "q", pod_sets=same, **other)) is not request
    requests.read_selectors((_rule("app", "x"),))  # now it may count whose they are
    assert requests.take_again(second) is None


def test_pod_sets_unused_for_long_are_forgotten() -> None:
    requests, same = GangRequests(), (pods(2, {"gpu": 1}),)
    requests.give_back(requests.take(job("a", "q", pod_sets=same)))
    for gpus in range(3, 4 + UNUSED_KEPT):
        requests.give_back(requests.take(job("b", "q", gpus)))
    assert requests.take_again(job("a", "q", pod_sets=same)) is None


def test_labels_are_read_before_pod_sets_are_known_again() -> None:
    requests, labelled = GangRequests(), _named("a")
    requests.take(labelled)
    assert requests.take_again(labelled) is None


def test_jobs_that_differ_only_in_their_names_are_alike() -> None:
    requests = GangRequests()
    assert requests.take(_named("a")) is requests.take(_named("b"))


def test_labels_of_an_anti_affinity_rule_count() -> None:
    requests = GangRequests()
    assert requests.read_selectors((_rule("app", "x"),))
    assert not requests.read_selectors((_rule("app", "y"),))
    assert requests.take(_named("a")) is requests.take(_named("b"))
    assert requests.take(_named("a", "x")) is not requests.take(_named("b", "y"))


def test_pods_with_rules_of_their_own_count_with_all_their_labels() -> None:
    requests = GangRequests()
    one, other = (_named(name, anti_affinity=(_rule("app", "x"),)) for name in ("a", "b"))
    assert requests.take(one) is not requests.take(other)


def test_a_workload_that_is_kept_away_does_not_stand_for_others() -> None:
    state = _cluster()
    _keeps_away(state, "app", "x")
    for workload in (_named("first", "x"), _named("second", "y")):
        state.apply(WorkloadWaits(workload))
    assert _starts(state) == {"second"}


def test_nor_if_the_rule_comes_later() -> None:
    state = _cluster()
    state.apply(WorkloadWaits(_named("large", gpus=4)))
    assert _starts(state) == {"large"}
    for workload in (_named("first", "x"), _named("second", "y")):
        state.apply(WorkloadWaits(workload))
    _starts(state)
    _keeps_away(state, "app", "x")
    state.apply(WorkloadGone(WorkloadKey("ns/large")))
    assert _starts(state) == {"second"}


def test_nor_those_of_another_namespace() -> None:
    state = _cluster()
    state.apply(NamespaceSet(Namespace("other")))
    there = LocalQueueKey("other/q")
    queue_of_ns = state.config.local_queues[LocalQueueKey("ns/q")].queue
    state.apply(LocalQueueSet(LocalQueue(key=there, queue=queue_of_ns)))
    _keeps_away(state, "app", "x")
    mine = _named("mine")
    yours = Workload(
        key=WorkloadKey("other/yours"), uid="yours", queue=there, pod_sets=mine.pod_sets
    )
    for workload in (mine, yours):
        state.apply(WorkloadWaits(workload))
    assert _starts(state) == {"yours"}


def test_placed_pods_keep_their_own_labels() -> None:
    state = _cluster(nodes=3)
    for name in ("a", "b", "c"):
        state.apply(WorkloadWaits(_named(name, gpus=3)))
    assert _starts(state) == {"a", "b"}  # so much quota there is
    beside = _named("beside", affinity_to=(_rule("job-name", "b"),))
    state.apply(WorkloadWaits(beside))
    _starts(state)
    places = {
        name: state.running[WorkloadKey(f"ns/{name}")].admitted.admission.pod_sets[0].nodes[0][0]
        for name in ("b", "beside")
    }
    assert places["b"] == places["beside"]
