"""One object that cannot be handled never stops the others, and its owner is told why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.control.test_bad_input import why
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.admission import record
from unisono.control.assembly import embedded
from unisono.control.conditions import find
from unisono.control.scheduler import loop, translate
from unisono.control.scheduler.quarantine import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    LONGEST_WRITE_PAUSE_S,
    Quarantine,
)
from unisono.control.scheduler.translate import Translator
from unisono.engine.audit import AuditCache
from unisono.engine.audit import audit as real_audit
from unisono.engine.cycle import Decides, plan
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import Admit, Plan
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.kueue.queue_rules import queue_of
from unisono.kube.form import Json, Key

Story = Callable[[World], Awaitable[None]]


def play(story: Story, decides: Decides = plan) -> list[tuple[str, Exception]]:
    """Run a story on two nodes with two queues; return the bugs that were reported."""
    reported: list[tuple[str, Exception]] = []

    def report(where: str, error: Exception) -> None:
        reported.append((where, error))

    async def run() -> None:
        assemble = partial(embedded, decides=decides, report=report)
        async with World(assemble=assemble).running() as world:
            await world.create(node("n1"), node("n2"), *queue(), *queue("other")[1:])
            await story(world)

    asyncio.run(run())
    return reported


def workload_of(world: World, name: str) -> Json:
    (found,) = (
        one for one in world.every(names.WORKLOAD) if f"job-{name}-" in one["metadata"]["name"]
    )
    return found


def reserved(world: World, name: str) -> Json:
    found = find(workload_of(world, name)["status"]["conditions"], "QuotaReserved")
    assert found is not None
    return found


def is_admitted(world: World, name: str) -> bool:
    return bool((workload_of(world, name).get("status") or {}).get("admission"))


def bad_ones(state: ClusterState) -> list[WorkloadKey]:
    return [key for key in state.waiting if "/job-bad" in key]


def failing(state: ClusterState, now: Instant) -> Plan:
    """Decide, but fail on bad workloads, as a bug in a rule would."""
    for key in bad_ones(state):
        state.evaluating = key
        raise ZeroDivisionError("a rule failed")
    return plan(state, now)


def failing_anywhere(state: ClusterState, now: Instant) -> Plan:
    """Decide, but fail where nothing says on which workload."""
    if bad_ones(state):
        raise ZeroDivisionError("something failed")
    return plan(state, now)


def misplacing(state: ClusterState, now: Instant) -> Plan:
    """Decide, but put bad workloads on a node that does not exist."""
    made = plan(state, now)
    return msgspec.structs.replace(
        made, admissions=tuple(_misplaced(one) for one in made.admissions)
    )


def _misplaced(admit: Admit) -> Admit:
    if "/job-bad" not in admit.workload:
        return admit
    nowhere = tuple(
        msgspec.structs.replace(one, nodes=((NodeName("nowhere"), one.count),))
        for one in admit.admission.pod_sets
    )
    elsewhere = msgspec.structs.replace(admit.admission, pod_sets=nowhere)
    return msgspec.structs.replace(admit, admission=elsewhere)


def overcommitting(state: ClusterState, now: Instant) -> Plan:
    """Decide, but say that bad workloads borrow quota."""
    made = plan(state, now)
    charged = [_oversized(state, one) for one in made.admissions]
    return msgspec.structs.replace(made, admissions=tuple(charged))


def _oversized(state: ClusterState, admit: Admit) -> Admit:
    if "/job-bad" in admit.workload:
        return msgspec.structs.replace(admit, borrow_level=7)
    return admit


@pytest.mark.parametrize(
    ("decides", "says"),
    [
        (failing, "the scheduler failed to decide about it: ZeroDivisionError: a rule failed"),
        (failing_anywhere, "the scheduler failed to decide about it: ZeroDivisionError"),
        (misplacing, "its planned admission broke a rule: node-closed"),
        (overcommitting, "its planned admission broke a rule: borrow-level"),
    ],
)
def test_others_start_beside_a_workload_that_cannot_be_decided(decides: Decides, says: str) -> None:
    async def story(world: World) -> None:
        await world.create(
            job("bad", pods=1),
            job("same-queue", pods=1),
            job("badly", pods=1, queue_name="lq-other"),
            job("other-queue", pods=1, queue_name="lq-other", gpus=4),
        )
        await world.settle()
        assert is_admitted(world, "same-queue")
        assert is_admitted(world, "other-queue")
        for name in ("bad", "badly"):
            assert not is_admitted(world, name)
            assert reserved(world, name)["reason"] == "Quarantined"
            assert says in reserved(world, name)["message"]
        _, told = await why(world, "bad")
        assert "is quarantined" in told
        assert "correct or delete the workload" in told
        about = [one for one in world.notes if one.reason == "Quarantined"]
        assert len(about) >= 2
        assert all("bad" in one.about.name for one in about)
        await world.create(job("later", pods=1, gpus=4, queue_name="lq-other"))
        await world.settle()
        assert is_admitted(world, "later")

    assert play(story, decides)


def test_a_cluster_without_bad_workloads_reports_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(job("good", pods=1))
        await world.settle()
        assert is_admitted(world, "good")
        assert not world.assembly.scheduler.quarantine.counts()

    assert play(story) == []


def _raises_for_bad(real: Callable[..., Any], of: Callable[..., str]) -> Callable[..., Any]:
    def wrapped(*given: Any, **more: Any) -> Any:
        if "job-bad" in of(*given, **more):
            raise OverflowError("too large")
        return real(*given, **more)

    return wrapped


@pytest.fixture(params=["read", "apply", "write"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let one step of a bad workload fail: reading it, telling the engine of it, or writing it."""
    if request.param == "read":
        real = Translator._own
        broken = _raises_for_bad(real, lambda _, obj: str(obj["metadata"]["name"]))
        monkeypatch.setattr(Translator, "_own", broken)
    elif request.param == "apply":
        wraps = _raises_for_bad(ClusterState.submit, lambda _, workload: str(workload.key))
        monkeypatch.setattr(ClusterState, "submit", wraps)
    else:
        writes = _raises_for_bad(record.admitted, lambda obj, *_, **__: obj["metadata"]["name"])
        monkeypatch.setattr(record, "admitted", writes)
    return str(request.param)


def test_others_start_beside_a_workload_that_cannot_be_handled(where: str) -> None:
    async def story(world: World) -> None:
        await world.create(job("first", pods=1), job("bad", pods=1), job("second", pods=1))
        await world.settle()
        assert is_admitted(world, "first")
        assert is_admitted(world, "second")
        assert not is_admitted(world, "bad")
        assert reserved(world, "bad")["reason"] == "Quarantined"
        assert "OverflowError: too large" in reserved(world, "bad")["message"]
        await world.client.delete(names.JOB, "bad", "default")
        await world.settle()
        assert len(world.assembly.scheduler.quarantine) == 0

    assert play(story)


def test_quota_of_a_workload_that_cannot_be_read_again_stays_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(world: World) -> None:
        await world.create(job("bad", pods=2))
        await world.settle()
        assert is_admitted(world, "bad")
        broken = _raises_for_bad(Translator._own, lambda _, obj: str(obj["metadata"]["name"]))
        monkeypatch.setattr(Translator, "_own", broken)
        name = workload_of(world, "bad")["metadata"]["name"]
        await world.client.patch(
            names.WORKLOAD, name, "default", {"metadata": {"labels": {"new": "label"}}}
        )
        await world.create(job("next", pods=1))
        await world.settle()
        assert not is_admitted(world, "next")

    play(story)


def _usage(world: World) -> str:
    (queue_,) = (one for one in world.every(names.CLUSTER_QUEUE) if one["metadata"]["name"] == "cq")
    (flavor,) = queue_["status"]["flavorsUsage"]
    (gpus,) = (one for one in flavor["resources"] if one["name"] == "nvidia.com/gpu")
    return str(gpus["total"])


def test_quota_of_a_workload_that_cannot_be_read_after_a_restart_stays_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(world: World) -> None:
        await world.create(job("bad", pods=2))
        await world.settle()
        assert is_admitted(world, "bad")
        used = _usage(world)
        broken = _raises_for_bad(Translator._own, lambda _, obj: str(obj["metadata"]["name"]))
        with monkeypatch.context() as bug:
            bug.setattr(Translator, "_own", broken)
            world.restart()
            await world.create(job("next", pods=1))
            await world.settle()
            assert not is_admitted(world, "next")
            assert _usage(world) == used
            (said,) = {one.message for one in world.notes if one.reason == "Quarantined"}
            assert "its quota in ClusterQueue cq stays reserved" in said
            # Rebuilding the state for another reason changes nothing about it.
            world.assembly.scheduler._begin_anew(world.view)
            await world.create(job("third", pods=1))
            await world.settle()
            assert not is_admitted(world, "third")
        changed = {"metadata": {"labels": {"new": "label"}}}
        await world.client.patch(names.WORKLOAD, _name_in(world), "default", changed)
        await world.settle()
        assert len(world.assembly.scheduler.quarantine) == 0
        assert _usage(world) == used

    play(story)


@pytest.mark.parametrize(
    "admission",
    [
        {},
        {"clusterQueue": 5},
        {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "count": -1}]},
        {
            "clusterQueue": "cq",
            "podSetAssignments": [
                {"name": "main", "count": 2, "resourceUsage": {"nvidia.com/gpu": "-8"}}
            ],
        },
        {"clusterQueue": "nobodys", "podSetAssignments": [{"name": "main", "count": 2}]},
        {
            "clusterQueue": "cq",
            "podSetAssignments": [
                {
                    "name": "main",
                    "count": 2**31 - 1,
                    "flavors": {"nvidia.com/gpu": "nobodys"},
                    "resourceUsage": {"nvidia.com/gpu": "8E", "a": "1"},
                }
            ],
        },
    ],
    ids=["empty", "queue", "count", "amount", "gone", "huge"],
)
def test_a_record_that_cannot_be_counted_stops_no_other(
    admission: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(world: World) -> None:
        await world.create(job("bad", pods=1))
        await world.settle()
        record_ = world.store.get(("kueue.x-k8s.io/workloads", "default", _name_in(world)))
        assert record_ is not None
        broken = _raises_for_bad(Translator._own, lambda _, obj: str(obj["metadata"]["name"]))
        monkeypatch.setattr(Translator, "_own", broken)
        obj = record_.load()
        obj["status"]["admission"] = admission
        world.store.put(record_.key, obj)
        await world.store.committed()
        world.restart()
        await world.create(job("other", pods=1, queue_name="lq-other", gpus=0))
        await world.settle()
        assert is_admitted(world, "other")

    play(story)


def _name_in(world: World) -> str:
    return str(workload_of(world, "bad")["metadata"]["name"])


def test_a_record_that_the_engine_cannot_take_is_left_out_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(world: World) -> None:
        await world.create(job("bad", pods=1))
        await world.settle()
        assert is_admitted(world, "bad")
        for where in ("_own", "recorded"):
            broken = _raises_for_bad(
                getattr(Translator, where), lambda _, obj: str(obj["metadata"]["name"])
            )
            monkeypatch.setattr(Translator, where, broken)
        world.restart()
        await world.create(job("other", pods=1, queue_name="lq-other", gpus=0))
        await world.settle()
        assert is_admitted(world, "other")
        (said,) = {one.message for one in world.notes if one.reason == "Quarantined"}
        assert "ClusterQueue cq does not count what it uses" in said

    play(story)


def test_a_queue_that_cannot_be_read_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        await world.create(job("before", pods=1))
        await world.settle()
        real = queue_of

        def broken(made: Any, **more: Any) -> Any:
            if made.metadata.name == "cq":
                raise OverflowError("too large")
            return real(made, **more)

        monkeypatch.setattr(translate, "queue_of", broken)
        changed = {"spec": {"stopPolicy": "HoldAndDrain"}}
        await world.client.patch(names.CLUSTER_QUEUE, "cq", "", changed)
        await world.create(
            job("after", pods=1), job("other", pods=1, queue_name="lq-other", gpus=0)
        )
        await world.settle()
        assert is_admitted(world, "before")
        assert is_admitted(world, "after")
        assert is_admitted(world, "other")
        (told,) = {one.about for one in world.notes if one.reason == "Quarantined"}
        assert told.kind == names.CLUSTER_QUEUE

    play(story)


def test_a_workload_is_tried_again_when_it_changes_and_when_time_is_up() -> None:
    broken = True
    tries: list[float] = []

    def decides(state: ClusterState, now: Instant) -> Plan:
        for key in bad_ones(state) if broken else ():
            tries.append(now / 1000)
            state.evaluating = key
            raise ZeroDivisionError("a rule failed")
        return plan(state, now)

    async def story(world: World) -> None:
        nonlocal broken
        await world.create(job("bad", pods=1))
        await world.settle()
        assert len(tries) == 1
        name = workload_of(world, "bad")["metadata"]["name"]
        labels = {"metadata": {"labels": {"new": "label"}}}
        await world.client.patch(names.WORKLOAD, name, "default", labels)
        await world.settle()
        assert len(tries) == 2, "a change is reason to try again"
        await world.pass_time(FIRST_PAUSE_S - 5)
        assert len(tries) == 2, "and nothing else, for a while"
        await world.pass_time(10)
        assert len(tries) == 3
        await world.pass_time(FIRST_PAUSE_S + 10)
        assert len(tries) == 3, "each time after twice the pause"
        broken = False
        await world.pass_time(FIRST_PAUSE_S)
        assert is_admitted(world, "bad")
        assert len(world.assembly.scheduler.quarantine) == 0

    play(story, decides)


def test_a_plan_on_which_the_auditor_fails_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def audit(snapshot: Snapshot, made: Plan, cache: AuditCache | None = None) -> Any:
        if any("/job-bad" in one.workload for one in made.admissions):
            raise KeyError("bad")
        return real_audit(snapshot, made, cache)

    monkeypatch.setattr(loop, "audit", audit)

    async def story(world: World) -> None:
        await world.create(job("bad", pods=1), job("good", pods=1, queue_name="lq-other"))
        await world.settle()
        assert is_admitted(world, "good")
        assert not is_admitted(world, "bad")
        assert "auditor: KeyError: 'bad'" in reserved(world, "bad")["message"]

    assert play(story)


def test_a_refused_plan_is_kept() -> None:
    kept: list[Plan] = []

    async def run() -> None:
        def keep(state: ClusterState, made: Plan) -> None:
            kept.append(made)
            raise OSError("the disk is full")  # which is no reason to stop

        assemble = partial(embedded, decides=misplacing, keep_refusal=keep)
        async with World(assemble=assemble).running() as world:
            await world.create(node("n1"), *queue(), job("bad", pods=1), job("good", pods=1))
            await world.settle()
            assert is_admitted(world, "good")
            assert world.assembly.scheduler.refused == 1

    asyncio.run(run())
    (made,) = kept
    assert [one.workload for one in made.admissions if "bad" in one.workload]


# ---- the register itself -----------------------------------------------------------------------

NAME = (names.WORKLOAD, Key("default", "w"))


def thing(**spec: Any) -> Json:
    return {"metadata": {"name": "w", "uid": "1"}, "spec": spec}


def test_pauses_grow_up_to_a_bound() -> None:
    register, now, pauses = Quarantine(), 0.0, []
    for _ in range(12):
        entry = register.add(NAME, thing(), "decide", "it failed", now)
        pauses.append(entry.retry_at - now)
        now = entry.retry_at
        assert register.trials(now) == [NAME]
    assert pauses[:3] == [FIRST_PAUSE_S, 2 * FIRST_PAUSE_S, 4 * FIRST_PAUSE_S]
    assert pauses[-1] == LONGEST_PAUSE_S


def test_a_refused_write_is_tried_again_soon() -> None:
    """An operator gives the right back, or mends the webhook; the object itself does not change."""
    register, now, pauses = Quarantine(), 0.0, []
    for _ in range(8):
        entry = register.add(NAME, thing(), "write", "forbidden", now)
        pauses.append(entry.retry_at - now)
        now = entry.retry_at
        assert register.trials(now) == [NAME]
    assert pauses[:3] == [15.0, 30.0, 60.0]
    assert pauses[-1] == LONGEST_WRITE_PAUSE_S


def test_what_we_write_ourselves_is_no_change() -> None:
    register = Quarantine()
    register.add(NAME, thing(), "decide", "it failed", 0.0)
    told = thing() | {"status": {"conditions": [{"type": "QuotaReserved"}]}}
    told["metadata"] = told["metadata"] | {"annotations": {"unisono.dev/progress": "1"}}
    assert register.left_out(NAME, told) is not None
    assert register.left_out(NAME, thing(active=False)) is None


@pytest.mark.parametrize("broken", [{"metadata": None}, {"metadata": {"annotations": [1]}}, {}])
def test_objects_of_any_form_can_be_left_out(broken: Json) -> None:
    register = Quarantine()
    register.add(NAME, broken, "read", "it cannot be read" * 100, 0.0)
    assert register.left_out(NAME, broken) is not None
    assert register.counts() == {("Workload", "read"): 1}


def test_suspects_are_tried_one_at_a_time() -> None:
    register = Quarantine()
    others = [(names.WORKLOAD, Key("default", f"w{number}")) for number in range(3)]
    assert register.suspect(((name, thing()) for name in others), "it failed", 0.0) == 3
    for name in others:
        assert register.has_suspects
        assert register.trials(0.0) == [name]
        assert register.trials(0.0) == []
        assert register.acquit() == [name]
    assert not register.has_suspects
