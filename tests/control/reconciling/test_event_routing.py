"""Controllers are woken by what they read, and by nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pytest
from typing_extensions import override

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import Jumping
from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps, and_again
from unisono.control.controller import Reads, own_key
from unisono.control.reconciling.driver import Driver, Outcome
from unisono.control.reconciling.event_routing import EventRouter, Task
from unisono.control.reconciling.workers import Crashes
from unisono.control.view import Difference, KindStore, View
from unisono.kube.client import Client
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

EMPTY_VIEW: View = View({})
API_OF_CLAIMS = dict(zip(("apiVersion", "kind"), names.NODE_CLAIM, strict=True))


class Listener:
    """Hears of pods, each for itself."""

    watches: Sequence[Kind] = (names.POD,)

    def __init__(self, name: str, reads: Reads | None = None, **says: Any) -> None:
        self.name = name
        self.reads: Mapping[Kind, Reads] = {names.POD: reads} if reads is not None else {}
        self.asked = 0
        for attribute, value in says.items():
            setattr(self, attribute, value)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        self.asked += 1
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        yield from ()


def pod(phase: str, version: int = 1, owner: str = "") -> Json:
    metadata: Json = {"name": "p", "namespace": "default", "resourceVersion": str(version)}
    if owner:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"metadata": metadata, "status": {"phase": phase}}


def phase(obj: Json) -> object:
    return obj["status"]["phase"]


def woken(*listeners: Listener, of: Difference, by: Task | None = None) -> list[Task]:
    return list(EventRouter(listeners).tasks_for(names.POD, of, EMPTY_VIEW, by))


def test_a_change_elsewhere_in_an_object_is_not_heard() -> None:
    everything, phases = Listener("everything"), Listener("phases", phase)
    echo = Difference(pod("Running"), pod("Running", 2))
    end = Difference(pod("Running"), pod("Failed", 2))
    key = Key("default", "p")
    assert woken(everything, phases, of=echo) == [Task("everything", key)]
    assert woken(everything, phases, of=end) == [Task("everything", key), Task("phases", key)]


def test_what_comes_and_what_goes_is_always_heard() -> None:
    task = [Task("phases", Key("default", "p"))]
    assert woken(Listener("phases", phase), of=Difference(None, pod("Running"))) == task
    assert woken(Listener("phases", phase), of=Difference(pod("Running"), None)) == task


def test_a_controller_of_an_absent_kind_is_not_woken() -> None:
    claims = KindStore.of(names.NODE_CLAIM, {})
    view = View({names.NODE_CLAIM: claims})
    cloud = Listener("cloud", idle_without=names.NODE_CLAIM)
    cloud.watches = (names.POD, names.NODE_CLAIM)
    router, ends = EventRouter([cloud]), Difference(pod("Running"), pod("Failed", 2))
    key = Key("default", "p")
    assert not list(router.tasks_for(names.POD, ends, view))
    first = Difference(None, pod("", 1))
    assert list(router.tasks_for(names.NODE_CLAIM, first, view)) == [Task("cloud", key)]
    list(view.upsert(names.NODE_CLAIM, {**pod("", 1), **API_OF_CLAIMS}))
    assert list(router.tasks_for(names.POD, ends, view)) == [Task("cloud", key)]


def test_some_kinds_may_be_heard_of_for_their_owners_and_others_for_themselves() -> None:
    jobs = Listener("jobs", owner_kind=names.JOB, dependent_kinds=(names.POD,))
    jobs.watches = (names.JOB, names.POD, names.NODE)
    router, of_a_job = EventRouter([jobs]), Difference(None, pod("Running", owner="j"))
    assert list(router.tasks_for(names.POD, of_a_job, EMPTY_VIEW)) == [
        Task("jobs", Key("default", "j"))
    ]
    assert list(router.tasks_for(names.NODE, of_a_job, EMPTY_VIEW)) == [
        Task("jobs", Key("default", "p"))
    ]


def test_a_controller_that_routes_by_name_is_asked_once() -> None:
    by_name, by_content = Listener("a", routes_by_name=True), Listener("b")
    woken(by_name, by_content, of=Difference(pod("Pending"), pod("Running", 2)))
    assert (by_name.asked, by_content.asked) == (1, 2)


def test_followers_look_at_owners_old_and_new() -> None:
    follower = Listener("jobs", phase, owner_kind=names.JOB)
    moved = Difference(pod("Pending", owner="old"), pod("Running", 2, owner="new"))
    assert woken(follower, of=moved) == [
        Task("jobs", Key("default", "new")),
        Task("jobs", Key("default", "old")),
    ]
    same = Difference(pod("Pending", owner="old"), pod("Pending", 2, owner="old"))
    assert woken(follower, of=same) == []


def test_the_thorough_are_not_woken_by_themselves() -> None:
    thorough, other = Listener("thorough", ignores_own_writes=True), Listener("other")
    difference = Difference(None, pod("Running"))
    own = Task("thorough", Key("default", "p"))
    assert woken(thorough, other, of=difference, by=own) == [Task("other", own.key)]
    assert own in woken(thorough, other, of=difference, by=Task("thorough", Key("default", "q")))
    follower = Listener("job", owner_kind=names.JOB, ignores_own_writes=True)
    theirs = Task("job", Key("default", "train"))
    assert woken(follower, of=Difference(None, pod("Pending", owner="train")), by=theirs) == []


def test_steps_that_do_something_are_followed_by_another_look() -> None:
    def steps() -> Steps:
        told = yield Note(Ref(names.JOB, "default", "a"), "Said", "something")
        assert told == "heard"

    both = and_again(steps(), 5.0)
    assert isinstance(next(both), Note)
    assert both.send("heard") == Again(5.0)
    assert list(and_again(iter(()), 5.0)) == []
    patch = Patch(Ref(names.JOB, "default", "a"), {})
    assert list(and_again(iter([patch]), 5.0)) == [patch, Again(5.0)]


def test_a_gang_starts_with_few_looks_at_it() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue())
            await world.settle()
            looks: Counter[str] = Counter()

            def count(outcome: Outcome) -> None:
                looks[outcome.task.controller] += 1

            world.driver.on_outcome = count
            await world.create(job("train", seconds=600))
            await world.settle()
            (workload,) = world.every(names.WORKLOAD)
            assert any(one["type"] == "PodsReady" for one in workload["status"]["conditions"])
            assert looks["gangs"] <= 3, looks  # it has a place, its pods are there
            assert looks["simulated-kubelet"] == 2, looks  # once for each pod
            assert looks["queued-job.batch"] <= 5, looks
            assert looks["job"] <= 4, looks

    asyncio.run(story())


def test_listeners_of_the_driver_get_every_change() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            first: list[Kind] = []
            second: list[Kind] = []
            world.driver.listeners.append(lambda kind, _: first.append(kind))
            world.driver.listeners.append(lambda kind, _: second.append(kind))
            await world.create(node("n1"))
            await world.settle()
            assert names.NODE in first
            assert first == second

    asyncio.run(story())


# ---- controllers that fail ---------------------------------------------------------------------


class Failing(Listener):
    """Fails on every change."""

    @override
    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        raise TypeError("labels are no map")


def test_others_hear_of_a_change_on_which_one_controller_fails() -> None:
    reported: list[tuple[Task, Exception]] = []
    router = EventRouter(
        (Failing("first"), Listener("second")), lambda task, error: reported.append((task, error))
    )
    tasks = [*router.tasks_for(names.POD, Difference(None, pod("Pending")), EMPTY_VIEW)]
    assert tasks == [Task("second", Key("default", "p"))]
    ((task, error),) = reported
    assert task == Task("first", Key("default", "p"))
    assert isinstance(error, TypeError)


def test_a_failure_is_raised_where_it_cannot_be_reported() -> None:
    with pytest.raises(TypeError):
        woken(Failing("first"), of=Difference(None, pod("Pending")))


def test_a_key_that_fails_waits_longer_each_time_and_its_owner_is_told() -> None:
    crashes = Crashes()
    notes: list[Note] = []
    view = View({names.POD: KindStore.of(names.POD, {})})
    whole = pod("Pending") | dict(zip(("apiVersion", "kind"), names.POD, strict=True))
    view.upsert(names.POD, whole)
    driver = Driver(
        (Failing("first"),),
        view,
        cast(Client, None),
        clock=Jumping(),
        notes=notes.append,
        report=lambda task, error: None,
    )
    task = Task("first", Key("default", "p"))
    pauses = [crashes.add(task) for _ in range(12)]
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == 300.0
    assert len(crashes) == 1
    driver.tell_of_crash(task, TypeError("labels are no map"), 8.0)
    (note,) = notes
    assert note.reason == "Quarantined"
    assert "first failed on it: TypeError: labels are no map" in note.message
    crashes.forget(task)
    assert len(crashes) == 0
