"""What a diagnosis costs is bounded by its budget, whatever one manifest says."""

from __future__ import annotations

import pytest

from tests.hostile.stage import Meter
from tests.support.quota_builders import group, job, pods, queue
from unisono.control.scheduler.root_causes import ONE_OBJECTS
from unisono.engine.cluster import new_cluster
from unisono.engine.diagnosis.diagnose import diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.dry_run import dry_run
from unisono.engine.model.names import FlavorName, Instant, LocalQueueKey, NodeName, QueueName
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Placement, Policy
from unisono.engine.model.queue import Flavor, LocalQueue, PreemptionRules
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement, Toleration
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import (
    FlavorSet,
    LocalQueueSet,
    NodeSet,
    QueueSet,
    WorkloadWaits,
)
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

NOW = Instant(1_767_268_800_000)
# Python's calls and returns: some twenty for an object of the budget.
_MOST_STEPS = 1_500_000


def cluster(*, flavors: int = 1, queues: int = 1, quota: str = "100") -> ClusterState:
    """Return a hundred nodes with 8 GPUs each."""
    state = new_cluster(Policy(placement=Placement(needs_nodes=True)), now=NOW)
    names = [f"f{number}" for number in range(flavors)]
    for name in names:
        state.apply(FlavorSet(Flavor(name=FlavorName(name), node_labels=(("type", name),))))
    for number in range(100):
        labels = (("type", names[number % flavors]),)
        has = amounts({"gpu": 8, "pods": 110})
        state.apply(NodeSet(Node(name=NodeName(f"n{number}"), labels=labels, allocatable=has)))
    for number in range(queues):
        made = queue(
            f"q{number}",
            groups=(group({name: {"gpu": quota} for name in names}),),
            cohort="c",
            preemption=PreemptionRules(within_queue="LowerPriority", reclaim="Any"),
        )
        state.apply(QueueSet(made))
        key = LocalQueueKey(f"ns/q{number}")
        state.apply(LocalQueueSet(LocalQueue(key=key, queue=QueueName(f"q{number}"))))
    return state


def many_terms() -> Workload:
    sets = (
        pods(
            1,
            {"gpu": 1},
            name=f"s{number}",
            affinity=tuple((Requirement(f"k{number}-{term}", "In", ("v",)),) for term in range(30)),
        )
        for number in range(200)
    )
    return job("hostile", "q0", pod_sets=tuple(sets))


def many_sets(count: int) -> Workload:
    sets = (pods(9, {"gpu": 1}, name=f"s{number}") for number in range(count))
    return job("hostile", "q0", pod_sets=tuple(sets))


def many_tolerations() -> Workload:
    tolerated = tuple(Toleration(f"t{number}", "Exists", "", "") for number in range(5_000))
    return job("hostile", "q0", pod_sets=(pods(900, {"gpu": 1}, tolerations=tolerated),))


@pytest.mark.parametrize(
    ("flavors", "workload"),
    [
        (1, many_terms()),
        (1, many_sets(500)),
        (16, many_sets(100)),
        (16, many_sets(500)),
        (1, many_tolerations()),
    ],
    ids=["200 sets with 30 terms each", "500 sets", "100 sets", "500 sets, 16 flavors", "taints"],
)
def test_one_workload_cannot_make_its_diagnosis_long(flavors: int, workload: Workload) -> None:
    state = cluster(flavors=flavors)
    state.apply(WorkloadWaits(workload))
    dry_run(state, state.now)
    recorded = snapshot(state)
    with Meter(_MOST_STEPS):
        found = diagnose(recorded, workload.key, budget=Budget(objects=ONE_OBJECTS))
    assert found is not None


def test_neither_can_many_queues_that_search_for_victims() -> None:
    state = cluster(queues=150, quota="4")
    for number in range(150):
        for priority in range(3):
            state.apply(
                WorkloadWaits(
                    job(
                        f"w{number}-{priority}",
                        f"q{number}",
                        pod_sets=(pods(2, {"gpu": 2 + priority}),),
                        priority=priority,
                    )
                )
            )
    dry_run(state, state.now)
    recorded = snapshot(state)
    key = recorded.waiting[-1].key
    with Meter(2 * _MOST_STEPS):
        found = diagnose(recorded, key, budget=Budget(objects=ONE_OBJECTS))
    assert found is not None


def test_a_workload_of_one_pod_set_costs_what_it_did() -> None:
    state = cluster(flavors=4)
    state.apply(WorkloadWaits(job("plain", "q0", pod_sets=(pods(3, {"gpu": 9}),))))
    budget = Budget(objects=ONE_OBJECTS)
    found = diagnose(snapshot(state), job("plain", "q0").key, budget=budget)
    assert found is not None
    assert found.verdict == "never"
