"""Estimates: when workloads without a reservation would start; asking changes nothing."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from tests.support.quota_builders import job, pods, queue, running
from tests.support.quota_builders import snapshot as world
from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import estimates
from unisono.engine.model.explanation import Expected
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.resources import amounts
from unisono.engine.model.workload import AdmittedWorkload, Dependency, Workload
from unisono.engine.state.changes import WorkloadGone
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot

SECOND = 1000
NOW = Instant(10 * SECOND)


def limited(workload: Workload, seconds: int | None) -> Workload:
    """Return a workload with a time limit."""
    limit = None if seconds is None else seconds * SECOND
    return msgspec.structs.replace(workload, time_limit_ms=limit)


def held(name: str, gpus: int, seconds: int | None) -> AdmittedWorkload:
    """Return a workload that runs since the beginning."""
    node = ((NodeName("n"), gpus),)
    admitted = running(job(name, "q", pod_sets=(pods(gpus, {"gpu": 1}),)))
    sets = tuple(msgspec.structs.replace(one, nodes=node) for one in admitted.admission.pod_sets)
    return msgspec.structs.replace(
        admitted,
        workload=limited(admitted.workload, seconds),
        admission=msgspec.structs.replace(admitted.admission, pod_sets=sets),
    )


def state_of(
    *jobs: tuple[str, int, int | None],
    policy: Policy | None = None,
    strict: bool = False,
    runs: int | None = 100,
) -> ClusterState:
    """Return four GPUs on one node, taken by `h`, and jobs that wait for them, at rest."""
    waiting = tuple(
        msgspec.structs.replace(
            limited(job(name, "q", pod_sets=(pods(gpus, {"gpu": 1}),)), seconds),
            created_at=Instant(place),
        )
        for place, (name, gpus, seconds) in enumerate(jobs)
    )
    strategy = "StrictFIFO" if strict else "BestEffortFIFO"
    state = restore(
        world(
            queue("q", "4", strategy=strategy),
            policy=policy or Policy(),
            nodes=(Node(name=NodeName("n"), allocatable=amounts({"gpu": 4})),),
            admitted_workloads=(held("h", 4, runs),),
            waiting=waiting,
        )
    )
    dry_run(state, NOW)
    return state


def starts(state: ClusterState) -> dict[str, int]:
    """Return the estimates in seconds."""
    found = estimates(state, NOW)
    return {key.removeprefix("ns/"): fact.start // SECOND for key, fact in found.items()}


def test_pending_jobs_would_start_when_enough_others_end() -> None:
    state = state_of(("a", 4, 50), ("b", 2, 30), ("c", 2, 30), ("d", 1, 5))
    assert starts(state) == {"a": 100, "b": 150, "c": 150, "d": 180}
    found = estimates(state, NOW)[WorkloadKey("ns/b")]
    assert found == Expected(
        start=Instant(150 * SECOND),
        position=2,
        limit_ms=30 * SECOND,
        limit_from="request",
        nodes=(NodeName("n"),),
    )


def test_no_estimate_behind_a_job_without_a_time_limit() -> None:
    assert starts(state_of(("a", 4, 50), runs=None)) == {}
    assert starts(state_of(("a", 4, None), ("b", 4, 5))) == {"a": 100}


def test_strict_fifo_lets_none_overtake() -> None:
    """a wants more than there is until h ends, so b and c, which would fit, wait behind it."""
    jobs = (("a", 4, 50), ("b", 4, 30), ("c", 0, 5))
    assert starts(state_of(*jobs, strict=True)) == {"a": 100, "b": 150, "c": 150}


@pytest.mark.parametrize("rules", [None, Backfill(dates=1), Backfill()])
def test_asking_changes_nothing(rules: Backfill | None) -> None:
    policy = Policy(backfill=rules)
    jobs = (("a", 4, 50), ("b", 2, 30), ("c", 2, 30))
    asked, left_alone = state_of(*jobs, policy=policy), state_of(*jobs, policy=policy)
    estimates(asked, NOW)
    assert snapshot(asked) == snapshot(left_alone)
    for state in (asked, left_alone):
        state.apply(WorkloadGone(WorkloadKey("ns/h")))
    assert plan(asked, NOW) == plan(left_alone, NOW)


def test_work_is_bounded() -> None:
    state = state_of(*((f"j{place}", 4, 10) for place in range(30)))
    assert len(estimates(state, NOW, most=5)) == 5


def test_a_job_with_a_begin_time_may_start_then() -> None:
    later = limited(job("later", "q", pod_sets=(pods(1, {"gpu": 1}),)), 50)
    later = msgspec.structs.replace(later, begin_at=Instant(500 * SECOND))
    state = _beside(later)
    assert estimates(state, NOW)[WorkloadKey("ns/later")] == Expected(
        start=Instant(500 * SECOND), position=0, limit_ms=50 * SECOND, limit_from="request"
    )


def test_a_dependent_job_starts_when_the_last_dependency_has_ended() -> None:
    first = _after("first", 30, Dependency(kind="afterok", on="ns/h"))
    second = _after("second", 30, Dependency(kind="afterany", on="ns/first"))
    stranger = _after("stranger", 30, Dependency(kind="afterok", on="ns/missing"))
    begun = _after("begun", 30, Dependency(kind="after", on="ns/first", delay_ms=5 * SECOND))
    found = estimates(_beside(first, second, stranger, begun), NOW)
    starts = {key.partition("/")[2]: fact.start // SECOND for key, fact in found.items()}
    assert starts == {"first": 100, "second": 130, "begun": 105}
    assert all(fact.position == 0 for fact in found.values())


def test_layers_of_dependencies_are_followed_once() -> None:
    """Along every path through them there would be 8 to the power of 12 steps."""
    layers = [["h"], *([f"l{depth}-{number}" for number in range(8)] for depth in range(12))]
    waiting = [
        _after(name, 10, *(Dependency(kind="afterok", on=f"ns/{one}") for one in before))
        for before, names in pairwise(layers)
        for name in names
    ]
    found = estimates(_beside(*waiting), NOW)
    assert len(found) == 8 * 12
    assert found[WorkloadKey("ns/l11-7")].start == Instant((100 + 11 * 10) * SECOND)


def test_no_estimate_for_a_dependency_without_a_time_limit() -> None:
    state = _beside(_after("first", 30, Dependency(kind="afterok", on="ns/h")), runs=None)
    assert estimates(state, NOW) == {}


def _after(name: str, seconds: int, *depends: Dependency) -> Workload:
    made = limited(job(name, "q", pod_sets=(pods(1, {"gpu": 1}),)), seconds)
    return msgspec.structs.replace(made, depends=depends, job=f"ns/{name}")


def _beside(*waiting: Workload, runs: int | None = 100) -> ClusterState:
    """Return four GPUs, taken by `h`, and workloads on hold."""
    state = restore(
        world(
            queue("q", "4"),
            nodes=(Node(name=NodeName("n"), allocatable=amounts({"gpu": 4})),),
            admitted_workloads=(held("h", 4, runs),),
            waiting=waiting,
        )
    )
    dry_run(state, NOW)
    return state
