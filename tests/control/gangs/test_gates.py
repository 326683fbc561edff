"""Gangs beside another scheduler: gated until whole, then bound by it to our nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.assembly import OPERATORS, Assembly, cluster
from unisono.control.conditions import find, is_true
from unisono.control.gangs.controller import is_unschedulable
from unisono.control.job_kinds.batch.operator import JobOperator
from unisono.control.nodes import ReadinessTaints
from unisono.control.view import View
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json
from unisono.kube.pods import bind


def assembled(view: View, settings: Settings, *, runs_jobs: bool = True) -> Assembly:
    """Return what a real cluster has: our controllers, and those of its Jobs and nodes."""
    ours = cluster(view, settings, epoch=1, operators=OPERATORS)
    theirs = (ReadinessTaints(), JobOperator()) if runs_jobs else (ReadinessTaints(),)
    return Assembly(ours.scheduler, (*ours.controllers, *theirs))


async def bound(world: World, pod: Json, to: str) -> None:
    metadata = pod["metadata"]
    await bind(world.client, metadata["name"], metadata["namespace"], node=to)


def story(tell: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with World(assemble=assembled).running() as world:
            await world.create(node("n1"), node("n2"), *queue())
            await tell(world)

    asyncio.run(main())


def phase(world: World) -> str:
    (workload,) = world.every(names.WORKLOAD)
    found = find(workload["status"]["conditions"], names.PLACEMENT)
    return str(found["reason"]) if found is not None else ""


def test_a_gang_is_released_as_a_whole_and_committed_when_all_are_bound() -> None:
    async def tell(world: World) -> None:
        await world.create(job("train", pods=2))
        await world.settle()
        pods = world.every(names.POD)
        assert sorted(pod["spec"]["nodeSelector"][names.HOSTNAME] for pod in pods) == ["n1", "n2"]
        for pod in pods:
            assert "schedulingGates" not in pod["spec"]
            assert "nodeName" not in pod["spec"]
            assert names.SLOT in pod["metadata"]["annotations"]
        assert phase(world) == "Committing"
        for number, pod in enumerate(pods, 1):
            selected = pod["spec"]["nodeSelector"][names.HOSTNAME]
            await bound(world, pod, selected)
            await world.pass_time(40)
            assert phase(world) == ("Committed" if number == len(pods) else "Committing")

    story(tell)


def test_pods_stay_behind_the_gate_until_all_of_them_exist() -> None:
    async def main() -> None:
        without_job_operator = World(assemble=lambda *seen: assembled(*seen, runs_jobs=False))
        async with without_job_operator.running() as world:
            await world.create(node("n1"), node("n2"), *queue(), job("train", pods=2))
            await world.settle()
            (found,) = world.every(names.JOB)
            assert found["spec"]["template"]["spec"]["schedulingGates"] == [{"name": names.GATE}]
            assert phase(world) == "Committing"

    asyncio.run(main())


def test_a_gang_that_the_other_scheduler_does_not_bind_goes_back() -> None:
    async def tell(world: World) -> None:
        await world.create(job("train", pods=2))
        await world.settle()
        first = world.every(names.POD)[0]
        await bound(world, first, first["spec"]["nodeSelector"][names.HOSTNAME])
        await world.settle()
        await world.pass_time(70)
        (workload,) = world.every(names.WORKLOAD)
        assert is_true(workload["status"]["conditions"], "Evicted")

    story(tell)


async def refused(world: World, pod: Json) -> None:
    """Have the other scheduler say that a pod has no room on its only node."""
    metadata = pod["metadata"]
    gated = "2023-11-14T00:00:00Z"  # as long as it was behind its gate; it stays what it was
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available: 1 Insufficient cpu",
        "lastTransitionTime": gated,
    }
    changes = {"status": {"conditions": [condition]}}
    await world.client.patch(
        names.POD, metadata["name"], metadata["namespace"], changes, subresource="status"
    )


def selected(pod: Json) -> str:
    return str(pod["spec"]["nodeSelector"][names.HOSTNAME])


def test_a_place_that_the_other_scheduler_finds_full_is_replaced() -> None:
    async def tell(world: World) -> None:
        await world.create(job("train", pods=2))
        await world.settle()
        first, second = world.every(names.POD)
        await bound(world, first, selected(first))
        await refused(world, second)
        await world.create(node("n3"))
        await world.settle()
        await world.pass_time(20)
        assert {pod["metadata"]["uid"] for pod in world.every(names.POD)} == {
            first["metadata"]["uid"],
            second["metadata"]["uid"],
        }
        await world.pass_time(11)
        now = {pod["metadata"]["uid"]: pod for pod in world.every(names.POD)}
        assert second["metadata"]["uid"] not in now
        assert now.pop(first["metadata"]["uid"])["spec"]["nodeName"] == selected(first)
        (another,) = now.values()
        assert selected(another) == "n3"
        await bound(world, another, "n3")
        await world.pass_time(40)
        assert phase(world) == "Committed"

    story(tell)


def test_a_pod_that_is_bound_after_all_keeps_its_place() -> None:
    async def tell(world: World) -> None:
        await world.create(node("n3"), job("train", pods=2))
        await world.settle()
        pods = world.every(names.POD)
        for pod in pods:
            await refused(world, pod)
        await world.settle()
        await world.pass_time(20)
        for pod in pods:
            await bound(world, pod, selected(pod))
        await world.pass_time(60)
        assert [pod["metadata"]["uid"] for pod in world.every(names.POD)] == [
            pod["metadata"]["uid"] for pod in pods
        ]
        assert phase(world) == "Committed"

    story(tell)


def test_a_pod_that_names_us_is_placed_and_others_are_not_our_business() -> None:
    async def tell(world: World) -> None:
        container = {"name": "main", "image": "busybox"}
        for name, scheduler in (("ours", "unisono"), ("theirs", "default-scheduler")):
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"schedulerName": scheduler, "containers": [container]},
            }
            await world.create(pod)
        await world.settle()
        assert "nodeName" in world.get(names.POD, "ours")["spec"]
        assert "nodeName" not in world.get(names.POD, "theirs")["spec"]

    story(tell)


def test_a_job_that_names_us_needs_no_gate() -> None:
    async def tell(world: World) -> None:
        ours = job("train", pods=2)
        ours["spec"]["template"]["spec"]["schedulerName"] = names.SCHEDULER
        await world.create(ours)
        await world.settle()
        pods = world.every(names.POD)
        assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["n1", "n2"]
        await world.pass_time(40)
        assert phase(world) == "Committed"

    story(tell)


def test_a_cluster_without_nodes_lets_jobs_go_by_quota_alone() -> None:
    async def main() -> None:
        async with World(assemble=assembled).running() as world:
            await world.create(*queue(), job("train", pods=2))
            await world.settle()
            assert phase(world) == ""
            pods = world.every(names.POD)
            assert len(pods) == 2
            assert not [pod for pod in pods if "schedulingGates" in pod["spec"]]
            await world.create(node("n1"))
            await world.create(job("more", pods=2))
            await world.settle()
            assert world.get(names.JOB, "more")["spec"]["suspend"] is True

    asyncio.run(main())


def test_a_condition_without_a_reason_says_nothing_of_room() -> None:
    silent = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}}
    assert not is_unschedulable(silent)
