"""The scheduler sleeps through what queues write about themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.actions import Breathe, Json
from unisono.control.conditions import is_true
from unisono.control.scheduler.relevant_changes import RelevantChanges
from unisono.control.view import KindStore, View
from unisono.engine.state.changes import Change
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

CONDITION = {
    "type": "QuotaReserved",
    "status": "False",
    "reason": "Pending",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def test_counts_do_not_wake_the_scheduler_and_quota_does() -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.create(node("n1"), *queue(), job("train"))
            await world.pass_time(3)
            cycles = world.assembly.scheduler.cycles
            for kind, name, space in (
                (names.CLUSTER_QUEUE, "cq", ""),
                (names.LOCAL_QUEUE, "lq-cq", "default"),
            ):
                await world.set_status(kind, name, {"pendingWorkloads": 7}, space)
            await world.pass_time(3)
            assert world.assembly.scheduler.cycles == cycles
            assert world.get(names.CLUSTER_QUEUE, "cq")["status"]["pendingWorkloads"] == 1
            stop = {"spec": {"stopPolicy": "Hold"}}
            await world.client.patch(names.CLUSTER_QUEUE, "cq", "", stop)
            await world.settle()
            assert world.assembly.scheduler.cycles > cycles

    asyncio.run(story())


def test_the_scheduler_sleeps_while_a_gang_goes_to_its_nodes() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=60))
            heard: list[tuple[Kind, Key]] = []
            scheduler = world.assembly.scheduler
            translate = scheduler._translator.translate

            def told(kind: Kind, key: Key) -> Iterable[Change]:
                heard.append((kind, key))
                return translate(kind, key)

            scheduler._translator.translate = told  # type: ignore[method-assign,assignment]
            await world.pass_time(30)
            workload = world.every(names.WORKLOAD)[0]
            conditions = workload["status"]["conditions"]
            assert is_true(conditions, names.PLACEMENT)
            assert is_true(conditions, "PodsReady")
            # Once when it came, once when it was admitted.
            assert [kind for kind, _ in heard].count(names.WORKLOAD) <= 3
            cycles = scheduler.cycles
            await world.pass_time(60)
            assert is_true(world.every(names.WORKLOAD)[0]["status"]["conditions"], "Finished")
            assert scheduler.cycles > cycles  # its place is free

    asyncio.run(story())


@pytest.mark.parametrize(
    ("change", "is_relevant"),
    [
        ({"status": {"conditions": [CONDITION | {"message": "because"}]}}, False),
        ({"status": {"conditions": [CONDITION | {"reason": "Inadmissible"}]}}, False),
        ({"status": {"conditions": [CONDITION | {"type": names.PLACEMENT}, CONDITION]}}, False),
        ({"status": {"conditions": [CONDITION | {"status": "True"}]}}, True),
        ({"status": {"conditions": [CONDITION, CONDITION | {"type": "Evicted"}]}}, True),
        ({"status": {"conditions": [CONDITION], "requeueState": {"count": 1}}}, True),
        ({"metadata": {"name": "w", "namespace": "n", "generation": 2}}, True),
        ({"metadata": {"name": "w", "namespace": "n", "labels": {"a": "b"}}}, True),
    ],
)
def test_words_about_a_workload_are_no_news(change: Json, is_relevant: bool) -> None:
    view = View({names.WORKLOAD: KindStore.of(names.WORKLOAD, {})})
    news = RelevantChanges()

    def show(obj: Json, version: str) -> Json:
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}
        list(view.upsert(names.WORKLOAD, obj))
        return obj

    workload: Json = {
        "apiVersion": names.WORKLOAD.api_version,
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "n"},
        "status": {"conditions": [CONDITION]},
    }
    assert news.is_relevant(names.WORKLOAD, show(workload, "1"), view)
    assert not news.is_relevant(names.WORKLOAD, show(workload, "2"), view)
    changed = show({**workload, **change}, "3")
    assert news.is_relevant(names.WORKLOAD, changed, view) is is_relevant


def test_a_pod_behind_a_gate_is_nothing_until_the_gate_is_lifted() -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.create(node("n1"))
            await world.settle()
            cycles = world.assembly.scheduler.cycles
            held: Json = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "held", "namespace": "default"},
                "spec": {
                    "schedulingGates": [{"name": "example.org/hold"}],
                    "containers": [{"name": "main", "image": "busybox"}],
                },
            }
            await world.create(held)
            await world.settle()
            assert world.assembly.scheduler.cycles == cycles
            lifted: Json = {"spec": {"schedulingGates": []}}
            await world.client.patch(names.POD, "held", "default", lifted)
            await world.settle()
            assert world.get(names.POD, "held")["spec"]["nodeName"] == "n1"
            heard = world.assembly.scheduler._relevant_changes._seen
            assert (names.POD, Key("default", "held")) in heard
            await world.client.delete(names.POD, "held", "default", grace_s=0)
            await world.settle()
            assert (names.POD, Key("default", "held")) not in heard

    asyncio.run(story())


def test_what_a_local_queue_used_lately_is_relevant() -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.create(*queue())
            await world.settle()
            news = RelevantChanges()
            obj = world.get(names.LOCAL_QUEUE, "lq-cq")
            assert news.is_relevant(names.LOCAL_QUEUE, obj, world.view)
            assert not news.is_relevant(names.LOCAL_QUEUE, obj, world.view)
            used = {"consumedResources": {"cpu": "1"}, "lastUpdate": "2026-01-01T00:00:00Z"}
            share = {"weightedShare": 0, "admissionFairSharingStatus": used}
            await world.set_status(names.LOCAL_QUEUE, "lq-cq", {"fairSharing": share})
            await world.settle()
            assert news.is_relevant(names.LOCAL_QUEUE, obj, world.view)

    asyncio.run(story())


def test_many_changes_are_heard_in_several_goes_and_all_before_a_decision() -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.create(node("n1"), *queue(), *(job(f"j{number}") for number in range(70)))
            await world.settle()
            world.restart()
            scheduler = world.assembly.scheduler
            steps = scheduler.reconcile(Key("", "cycle"), world.view, world.clock.now())
            breaths = 0
            for action in steps:
                if not isinstance(action, Breathe):
                    break
                assert scheduler.cycles == 0
                breaths += 1
            assert breaths >= 1
            assert len(scheduler.state.waiting) == 70

    asyncio.run(story())
