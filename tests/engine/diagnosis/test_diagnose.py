"""What keeps a workload from starting: minimal sufficient sets, dates, conditions."""

from __future__ import annotations

from tests.support.quota_builders import job, pods, queue
from unisono.engine.cluster import new_cluster
from unisono.engine.diagnosis.diagnose import diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.diagnosis import headline
from unisono.engine.model.diagnosis import Ahead, Condition, Diagnosis, Holder, Until
from unisono.engine.model.explanation import Held, QueueStopped
from unisono.engine.model.multifactor import SubmitOptions
from unisono.engine.model.names import FlavorName, Instant, LocalQueueKey, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.queue import ClusterQueue, Flavor, LocalQueue
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import TopologyRequest, Workload
from unisono.engine.state.changes import FlavorSet, LocalQueueSet, NodeSet, QueueSet, WorkloadWaits
from unisono.engine.state.cluster import ClusterState

NOW = Instant(1_000_000)


def cluster(*queues: ClusterQueue) -> ClusterState:
    """Return a cluster with these queues, without nodes."""
    state = new_cluster(now=NOW)
    state.apply(FlavorSet(Flavor(name=FlavorName("f"))))
    for one in queues or (queue("q"),):
        state.apply(QueueSet(one))
        state.apply(LocalQueueSet(LocalQueue(key=LocalQueueKey(f"ns/{one.name}"), queue=one.name)))
    return state


def submit(state: ClusterState, *workloads: Workload) -> None:
    for workload in workloads:
        state.apply(WorkloadWaits(workload))
        dry_run(state, state.now)


def diagnosis(state: ClusterState, name: str) -> Diagnosis:
    found = diagnose(state, WorkloadKey(f"ns/{name}"))
    assert found is not None
    return found


def holders(found: Diagnosis) -> list[str]:
    return [cause.workload for cause in found.in_the_way if isinstance(cause, Holder)]


def test_names_the_holders_that_end_soonest() -> None:
    state = cluster()
    submit(
        state,
        job("long", "q", 2, time_limit_ms=9_000),
        job("short", "q", 1, time_limit_ms=1_000),
        job("middle", "q", 1, time_limit_ms=2_000),
        job("blocked", "q", 2),
    )
    found = diagnosis(state, "blocked")
    assert found.verdict == "later"
    assert holders(found) == ["ns/short", "ns/middle"]
    assert found.starts_at == NOW + 2_000
    assert found.basis == "limits"


def test_names_the_workload_of_higher_priority() -> None:
    state = cluster(queue("q", strategy="StrictFIFO"))
    submit(
        state,
        job("running", "q", 2),
        job("first", "q", 4, created_at=NOW),
        job("second", "q", 1, created_at=NOW + 1),
    )
    found = diagnosis(state, "second")
    assert [type(cause) for cause in found.in_the_way] == [Ahead]
    assert found.in_the_way[0] == Ahead(workload=WorkloadKey("ns/first"), queue=queue("q").name)


def test_names_conditions_one_after_the_other() -> None:
    state = cluster(queue("q", stop="Hold"))
    submit(
        state, job("held", "q", 1, submit_options=SubmitOptions(hold="user"), begin_at=NOW + 5_000)
    )
    found = diagnosis(state, "held")
    assert found.verdict == "later"
    assert found.in_the_way == (
        Condition(blocker=Held(by="user")),
        Until(instant=Instant(NOW + 5_000), what="begin"),
        Condition(blocker=QueueStopped(queue="q", local=False, drain=False)),
    )
    assert found.starts_at is None


def test_a_domain_that_no_node_is_in_may_have_any_name() -> None:
    state = cluster()
    has = amounts({"gpu": 8, "pods": 110})
    state.apply(NodeSet(Node(name=NodeName("n0"), allocatable=has)))
    slices = TopologyRequest(mode="unconstrained", slice_level="rack", slice_size=2)
    submit(state, job("sliced", "q", pod_sets=(pods(2, {"gpu": 1}, topology=slices),)))
    found = diagnosis(state, "sliced")
    assert found.verdict == "never"
    assert headline(found).endswith("(any rack)")


def test_marks_nothing_without_a_budget() -> None:
    state = cluster()
    submit(state, job("running", "q", 4), job("blocked", "q", 2))
    found = diagnose(state, WorkloadKey("ns/blocked"), budget=Budget(objects=100))
    assert found is not None
    assert (found.verdict, found.in_the_way) == ("unknown", ())


def test_is_none_for_what_is_not_pending() -> None:
    state = cluster()
    submit(state, job("running", "q", 4))
    assert diagnose(state, WorkloadKey("ns/running")) is None
