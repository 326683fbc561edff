"""Root causes are looked for after some seconds, within a budget, and again when things change."""

from __future__ import annotations

import pytest

from tests.support.quota_builders import job, queue
from tests.support.quota_builders import snapshot as world
from unisono.control.scheduler import root_causes
from unisono.control.scheduler.root_causes import PATIENCE_MS, PAUSE_MS, RootCauses
from unisono.engine.cluster import restore
from unisono.engine.diagnosis import diagnose as engine_diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.dry_run import dry_run
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.diagnosis import Diagnosis, Holder
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.changes import QueueSet, WorkloadGone
from unisono.engine.state.cluster import ClusterState

NOW = Instant(1_000_000)


def cluster(pending: int = 2) -> ClusterState:
    names = ["first", *(f"late-{number}" for number in range(pending))]
    state = restore(world(queue("q"), now=NOW, waiting=tuple(job(one, "q", 4) for one in names)))
    dry_run(state, state.now)
    return state


def told(state: ClusterState) -> dict[WorkloadKey, Explanation]:
    return {one.workload: one for one in explanations(state)}


def test_waits_some_seconds_before_it_looks() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    assert causes.refresh(NOW, told(state)) == []
    assert causes.next_due() == NOW + PATIENCE_MS
    assert causes.refresh(Instant(NOW + PATIENCE_MS), told(state)) == ["ns/late-0", "ns/late-1"]
    found = causes.of(WorkloadKey("ns/late-0"))
    assert found is not None
    assert [one.workload for one in found.in_the_way if isinstance(one, Holder)] == ["ns/first"]
    assert causes.next_due() is None


def test_looks_again_soon_when_what_it_named_has_ended() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    causes.refresh(NOW, told(state))
    at = Instant(NOW + PATIENCE_MS)
    causes.refresh(at, told(state))
    state.apply(WorkloadGone(WorkloadKey("ns/first")))
    dry_run(state, state.now)
    assert causes.refresh(Instant(at + 1_000), told(state)) == []
    assert causes.of(WorkloadKey("ns/late-0")) is None, "it runs now"
    due = causes.next_due()
    assert due is not None
    assert at < due < at + PAUSE_MS
    assert causes.refresh(due, told(state)) == ["ns/late-1"]
    found = causes.of(WorkloadKey("ns/late-1"))
    assert found is not None
    assert [one.workload for one in found.in_the_way if isinstance(one, Holder)] == ["ns/late-0"]


def test_looks_again_once_a_minute_after_another_change() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    causes.refresh(NOW, told(state))
    at = Instant(NOW + PATIENCE_MS)
    causes.refresh(at, told(state))
    state.apply(QueueSet(queue("other")))
    assert causes.refresh(Instant(at + 1_000), told(state)) == []
    assert causes.next_due() == at + PAUSE_MS
    assert causes.refresh(Instant(at + PAUSE_MS), told(state)) == [], "it is as it was"


def test_a_step_makes_only_some_and_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_causes, "STEP_OBJECTS", 1)
    state, causes = cluster(pending=3), RootCauses()
    causes.use(state)
    causes.refresh(NOW, told(state))
    at = Instant(NOW + PATIENCE_MS)
    assert causes.refresh(at, told(state)) == ["ns/late-0"]
    due = causes.next_due()
    assert due is not None
    assert due > at
    assert causes.refresh(Instant(due - 1), told(state)) == []
    assert causes.refresh(due, told(state)) == ["ns/late-1"]


def test_withdraws_all_of_them_in_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    causes.refresh(NOW, told(state))
    causes.refresh(Instant(NOW + PATIENCE_MS), told(state))
    monkeypatch.setattr(root_causes, "MOST_OBJECTS", 1)
    assert causes.refresh(Instant(NOW + PATIENCE_MS), told(state)) == []
    found = causes.of(WorkloadKey("ns/late-0"))
    assert found is not None
    assert found.verdict == "unknown"


def test_a_diagnosis_that_raises_rests_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def diagnose(
        world: Snapshot, key: WorkloadKey, now: Instant, *, budget: Budget
    ) -> Diagnosis | None:
        tried.append(key)
        if key == "ns/late-0":
            raise ValueError("a mistake of ours")
        return engine_diagnose(world, key, now, budget=budget)

    monkeypatch.setattr(root_causes, "diagnose", diagnose)
    state, causes = cluster(), RootCauses()
    causes.use(state)
    causes.refresh(NOW, told(state))
    at = Instant(NOW + PATIENCE_MS)
    with pytest.raises(ValueError, match="mistake"):
        causes.refresh(at, told(state))
    assert causes.set_aside(at, told(state)) == []
    due = causes.next_due()
    assert due is not None
    assert causes.refresh(due, told(state)) == ["ns/late-1"]
    state.apply(QueueSet(queue("other")))
    causes.refresh(Instant(due + PAUSE_MS), told(state))
    assert tried == ["ns/late-0", "ns/late-1", "ns/late-1"]
