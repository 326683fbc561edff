"""Dependencies: no workload starts before what it waits for has happened."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import job, queue, snapshot
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import DependencyNeverSatisfied, DependencyPending
from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.workload import Dependency, DependencyKind, Result, Workload
from unisono.engine.state import dependencies
from unisono.engine.state.changes import ResultSet, TimePassed, WorkloadGone, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot as seen

MINUTE = 60_000


def named(name: str, *depends: Dependency, at: int = 0, on_any: bool = False) -> Workload:
    made = job(name, "q", created_at=Instant(at))
    return msgspec.structs.replace(made, job=f"ns/{name}", depends=depends, depends_on_any=on_any)


def on(kind: DependencyKind, name: str, minutes: int = 0) -> Dependency:
    return Dependency(kind=kind, on=f"ns/{name}", delay_ms=minutes * MINUTE)


def cluster(*workloads: Workload, way: Backfill | None = None) -> ClusterState:
    state = restore(snapshot(queue("q", "99"), policy=Policy(backfill=way)))
    for each in workloads:
        state.apply(WorkloadWaits(each))
    return state


def running(state: ClusterState, minutes: int = 0) -> list[str]:
    state.apply(TimePassed(Instant(minutes * MINUTE)))
    dry_run(state, state.now)
    return sorted(key.partition("/")[2] for key in state.running)


def end(state: ClusterState, workload: Workload, *, succeeded: bool | None) -> None:
    """Let a job end; None: it is deleted."""
    if succeeded is not None:
        result = Result(job=workload.job_name, succeeded=succeeded, ended_at=state.now)
        state.apply(ResultSet(result))
    state.apply(WorkloadGone(workload.key))


def why(state: ClusterState, workload: Workload) -> object:
    found = explanation(state, workload.key)
    assert found is not None
    return found.blockers[0]


@pytest.mark.parametrize("way", [None, Backfill()])
@pytest.mark.parametrize(
    ("kind", "succeeded", "starts"),
    [
        ("afterok", True, True),
        ("afterok", False, False),
        ("afterok", None, False),
        ("afternotok", True, False),
        ("afternotok", False, True),
        ("afternotok", None, True),
        ("afterany", True, True),
        ("afterany", None, True),
    ],
)
def test_how_it_ended_decides(
    kind: DependencyKind, succeeded: bool | None, starts: bool, way: Backfill | None
) -> None:
    first, then = named("first"), named("then", on(kind, "first"), at=1)
    state = cluster(first, then, way=way)
    assert running(state) == ["first"]
    assert why(state, then) == DependencyPending(kind=kind, on="ns/first")
    end(state, first, succeeded=succeeded)
    again = restore(seen(state))
    for each in (state, again):
        assert running(each) == (["then"] if starts else [])
        if not starts:
            assert why(each, then) == DependencyNeverSatisfied(kind=kind, on="ns/first")


def test_an_unknown_job_is_waited_for_and_one_that_comes_again_counts() -> None:
    then = named("then", on("afterok", "first"))
    state = cluster(then)
    assert running(state) == []
    first = named("first", at=1)
    state.apply(WorkloadWaits(first))
    assert running(state) == ["first"]
    end(state, first, succeeded=False)
    assert isinstance(why(state, then), DependencyNeverSatisfied)
    second = named("first", at=2 * MINUTE)
    state.apply(WorkloadWaits(second))
    assert running(state, 2) == ["first"]
    assert isinstance(why(state, then), DependencyPending)
    end(state, second, succeeded=True)
    assert running(state, 3) == ["then"]


def test_all_of_them_or_any_of_them() -> None:
    a, b = named("a"), named("b")
    both = named("both", on("afterok", "a"), on("afterok", "b"))
    either = named("either", on("afterok", "a"), on("afterok", "b"), on_any=True)
    state = cluster(a, b, both, either)
    assert running(state) == ["a", "b"]
    end(state, a, succeeded=True)
    assert running(state) == ["b", "either"]
    end(state, b, succeeded=True)
    assert running(state) == ["both", "either"]


def test_after_counts_from_the_start() -> None:
    first = named("first")
    state = cluster(
        first, named("then", on("after", "first", 5)), named("soon", on("after", "first"))
    )
    assert running(state, 1) == ["first", "soon"]
    again = restore(seen(state))
    for each in (state, again):
        assert running(each, 5) == ["first", "soon"]
        assert running(each, 6) == ["first", "soon", "then"]


def test_the_first_dependent_finds_every_workload_that_was_there_before() -> None:
    first, second = named("first"), named("second", at=1)
    state = cluster(first, second)
    assert running(state, 1) == ["first", "second"]
    for late in (named("then", on("after", "first", 5)), named("last", on("afterany", "second"))):
        state.apply(WorkloadWaits(late))
    assert running(state, 5) == ["first", "second"]
    end(state, second, succeeded=None)
    assert running(state, 5) == ["first", "last"]
    assert running(state, 6) == ["first", "last", "then"]


def test_one_of_a_name_runs_at_a_time() -> None:
    single = Dependency(kind="singleton")
    jobs = [named(f"nightly-2026010{day}", single, at=day) for day in (1, 2, 3)]
    state = cluster(*jobs, named("weekly-20260101", single))
    assert running(state) == ["nightly-20260101", "weekly-20260101"]
    assert why(state, jobs[1]) == DependencyPending(kind="singleton", on=jobs[0].key)
    end(state, jobs[0], succeeded=False)
    assert running(state) == ["nightly-20260102", "weekly-20260101"]


def test_only_so_many_results_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependencies, "MOST_RESULTS", 2)
    state = cluster()
    for number in range(3):
        result = Result(job=f"ns/{number}", succeeded=True, ended_at=Instant(number))
        state.apply(ResultSet(result))
    assert [result.job for result in seen(state).results] == ["ns/1", "ns/2"]
