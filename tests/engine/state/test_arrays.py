"""Arrays: no more of one run at a time than it says."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.quota_builders import job, queue, snapshot
from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.explanation import ArrayLimit, Deactivated
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.policy import Backfill, Policy
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import WorkloadGone, WorkloadWaits
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot as seen

WAYS = [None, Backfill(dates=1), Backfill()]


def task(number: int, limit: int = 2, **options: int) -> Workload:
    made = job(f"t{number}", "q", created_at=Instant(number), **options)
    return msgspec.structs.replace(made, array="ns/sweep", array_limit=limit)


def cluster(way: Backfill | None) -> ClusterState:
    return restore(snapshot(queue("q", "99"), policy=Policy(backfill=way)))


def running(state: ClusterState) -> list[str]:
    dry_run(state, state.now)
    return sorted(key.partition("/")[2] for key in state.running)


def why(state: ClusterState, workload: Workload) -> object:
    found = explanation(state, workload.key)
    assert found is not None
    return found.blockers[0]


def gone(state: ClusterState, workload: Workload) -> None:
    state.apply(WorkloadGone(WorkloadKey(workload.key)))


@pytest.mark.parametrize("way", WAYS)
def test_as_many_run_as_may_and_the_next_follow(way: Backfill | None) -> None:
    state = cluster(way)
    for number in range(5):
        state.apply(WorkloadWaits(task(number)))
    assert running(state) == ["t0", "t1"]
    assert why(state, task(2)) == ArrayLimit(array="ns/sweep", limit=2)
    gone(state, task(0))
    assert running(state) == ["t1", "t2"]
    for number in (1, 2, 3):
        gone(state, task(number))
    assert running(state) == ["t4"]


def test_other_arrays_and_others_are_not_concerned() -> None:
    state = cluster(None)
    another = msgspec.structs.replace(task(7), array="ns/other", array_limit=1)
    for each in (task(0, 1), task(1, 1), another, job("free", "q")):
        state.apply(WorkloadWaits(each))
    assert running(state) == ["free", "t0", "t7"]


def test_a_higher_priority_goes_first() -> None:
    state = cluster(None)
    for each in (task(0, 1), task(1, 1, priority=5)):
        state.apply(WorkloadWaits(each))
    assert running(state) == ["t1"]


def test_a_task_that_cannot_start_anyway_takes_no_place() -> None:
    state = cluster(None)
    off = msgspec.structs.replace(task(0, 1), active=False)
    for each in (off, task(1, 1)):
        state.apply(WorkloadWaits(each))
    assert why(state, off) == Deactivated()
    assert running(state) == ["t1"]
    state.apply(WorkloadWaits(task(0, 1)))
    assert isinstance(why(state, task(0, 1)), ArrayLimit)
    gone(state, task(1))
    assert running(state) == ["t0"]


def test_another_limit_counts_from_the_next_start_on() -> None:
    state = cluster(None)
    for number in range(3):
        state.apply(WorkloadWaits(task(number, 1)))
    assert running(state) == ["t0"]
    for number in (1, 2):
        state.apply(WorkloadWaits(task(number, 3)))
    assert running(state) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("way", WAYS)
def test_a_restored_state_decides_alike(way: Backfill | None) -> None:
    state = cluster(way)
    for number in range(5):
        state.apply(WorkloadWaits(task(number)))
    assert running(state) == ["t0", "t1"]
    again = restore(seen(state))
    assert running(again) == ["t0", "t1"]
    for each in (state, again):
        gone(each, task(1))
    assert running(state) == running(again) == ["t0", "t2"]
