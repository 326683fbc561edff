"""Root causes are looked for after some seconds, within a budget, and again when things change.

They are looked for on a snapshot, in steps: whatever happens meanwhile goes on.
"""

from __future__ import annotations

from typing import cast

import pytest

from tests.support.quota_builders import job, queue
from tests.support.quota_builders import snapshot as world
from unisono.control.actions import Breathe, Steps, Wake
from unisono.control.scheduler import root_causes
from unisono.control.scheduler.root_causes import KEY, PATIENCE_MS, PAUSE_MS, RootCauses
from unisono.control.view import View
from unisono.engine.cluster import restore
from unisono.engine.diagnosis import diagnosed as engine_diagnosed
from unisono.engine.diagnosis.in_steps import InSteps
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
LATER = Instant(NOW + PATIENCE_MS)


def cluster(pending: int = 2) -> ClusterState:
    names = ["first", *(f"late-{number}" for number in range(pending))]
    state = restore(world(queue("q"), now=NOW, waiting=tuple(job(one, "q", 4) for one in names)))
    dry_run(state, state.now)
    return state


def told(state: ClusterState) -> dict[WorkloadKey, Explanation]:
    return {one.workload: one for one in explanations(state)}


def begun(causes: RootCauses) -> Steps:
    """Return the work of a round; it reads nothing but its snapshot."""
    return causes.reconcile(KEY, cast("View", None), 0.0)


def news(steps: Steps) -> list[str]:
    """Go through the rest of a round; return the workloads with another root cause than before."""
    woken = [one for one in steps if isinstance(one, Wake)]
    return [f"{one.namespace}/{one.name}" for one in woken if one.controller == "explainer"]


def looked(causes: RootCauses, state: ClusterState, now: Instant) -> list[str]:
    """Look at what is due, and diagnose it; return the workloads with another root cause."""
    return news(begun(causes)) if causes.refresh(now, told(state)) else []


def holders(causes: RootCauses, key: str) -> list[str]:
    found = causes.of(WorkloadKey(key))
    assert found is not None
    return [one.workload for one in found.in_the_way if isinstance(one, Holder)]


def test_waits_some_seconds_before_it_looks() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    assert looked(causes, state, NOW) == []
    assert causes.next_due() == LATER
    assert looked(causes, state, LATER) == ["ns/late-0", "ns/late-1"]
    assert holders(causes, "ns/late-0") == ["ns/first"]
    assert looked(causes, state, LATER) == []
    assert causes.next_due() is None


def test_looks_again_soon_when_what_it_named_has_ended() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    looked(causes, state, LATER)
    state.apply(WorkloadGone(WorkloadKey("ns/first")))
    dry_run(state, state.now)
    assert looked(causes, state, Instant(LATER + 1_000)) == []
    assert causes.of(WorkloadKey("ns/late-0")) is None, "it runs now"
    due = causes.next_due()
    assert due is not None
    assert LATER < due < LATER + PAUSE_MS
    assert looked(causes, state, due) == ["ns/late-1"]
    assert holders(causes, "ns/late-1") == ["ns/late-0"]


def test_looks_again_once_a_minute_after_another_change() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    looked(causes, state, LATER)
    state.apply(QueueSet(queue("other")))
    assert looked(causes, state, Instant(LATER + 1_000)) == []
    assert causes.next_due() == LATER + PAUSE_MS
    assert looked(causes, state, Instant(LATER + PAUSE_MS)) == [], "it is as it was"


def test_a_round_makes_only_some_and_goes_on_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_causes, "ROUND_OBJECTS", 1)
    state, causes = cluster(pending=3), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    assert looked(causes, state, LATER) == ["ns/late-0"]
    causes.refresh(LATER, told(state))
    due = causes.next_due()
    assert due is not None
    assert due > LATER
    assert looked(causes, state, Instant(due - 1)) == []
    assert looked(causes, state, due) == ["ns/late-1"]


def test_withdraws_all_of_them_in_a_large_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    looked(causes, state, LATER)
    monkeypatch.setattr(root_causes, "MOST_OBJECTS", 1)
    assert looked(causes, state, LATER) == []
    found = causes.of(WorkloadKey("ns/late-0"))
    assert found is not None
    assert found.verdict == "unknown"


def test_a_diagnosis_that_raises_rests_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def diagnosed(
        world: Snapshot, key: WorkloadKey, now: Instant, *, budget: Budget
    ) -> InSteps[Diagnosis | None]:
        tried.append(key)
        if key == "ns/late-0":
            raise ValueError("a mistake of ours")
        return engine_diagnosed(world, key, now, budget=budget)

    def later(*found: object, **more: object) -> InSteps[Diagnosis | None]:
        yield
        return (yield from diagnosed(*found, **more))  # type: ignore[arg-type]  # handed through

    monkeypatch.setattr(root_causes, "diagnosed", later)
    reported: list[str] = []
    state = cluster()
    causes = RootCauses(lambda where, error: reported.append(f"{where}: {error}"))
    causes.use(state)
    looked(causes, state, NOW)
    assert looked(causes, state, LATER) == ["ns/late-1"]
    assert reported == ["root causes: a mistake of ours"]
    state.apply(QueueSet(queue("other")))
    looked(causes, state, Instant(LATER + 2 * PAUSE_MS))
    assert tried == ["ns/late-0", "ns/late-1", "ns/late-1"]


# ---- what happens meanwhile ----------------------------------------------------------------------


def test_pauses_after_every_trial() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    assert causes.refresh(LATER, told(state))
    steps = [*begun(causes)]
    assert sum(isinstance(one, Breathe) for one in steps) > 4
    assert [one for one in steps if isinstance(one, Wake)][-1].controller == "scheduler"


def test_the_state_may_change_while_it_looks() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    causes.refresh(LATER, told(state))
    steps = begun(causes)
    next(steps)
    # What it would find is what runs now, and what it is about runs, too.
    state.apply(WorkloadGone(WorkloadKey("ns/first")))
    dry_run(state, state.now)
    assert causes.refresh(LATER, told(state)), "one is under way"
    assert causes.next_due() is None
    assert news(steps) == []
    assert causes.of(WorkloadKey("ns/late-0")) is None, "it runs"
    assert causes.of(WorkloadKey("ns/late-1")) is None, "what was in its way is gone"
    assert not causes.refresh(Instant(LATER + 1_000), told(state))
    due = causes.next_due()
    assert due is not None
    assert due <= LATER + PATIENCE_MS
    assert looked(causes, state, due) == ["ns/late-1"]
    assert holders(causes, "ns/late-1") == ["ns/late-0"]


def test_another_state_ends_what_is_under_way() -> None:
    state, causes = cluster(), RootCauses()
    causes.use(state)
    looked(causes, state, NOW)
    causes.refresh(LATER, told(state))
    steps = begun(causes)
    next(steps)
    anew = cluster()
    causes.use(anew)
    assert causes.refresh(LATER, told(anew)), "it begins with the new one"
    assert news(steps) == []
    assert causes.of(WorkloadKey("ns/late-0")) is None
    assert news(begun(causes)) == ["ns/late-0", "ns/late-1"]
