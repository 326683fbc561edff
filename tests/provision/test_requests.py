"""Autoscalers that are asked for nodes, played here by the test, as their documentation says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.provision.request_stories import (
    answer,
    asking,
    assigned,
    checked_queue,
    join,
    requests,
    said,
)
from tests.support.control_objects import job, node
from tests.support.control_world import World
from tests.support.provisioning_world import ALL_INDEXES, ALL_KINDS, condition, only_workload
from unisono.control import names


def _told(story: Callable[[World], Awaitable[None]]) -> None:
    world = World(assemble=asking, kinds=ALL_KINDS, indexes=ALL_INDEXES)

    async def run() -> None:
        async with world.running():
            await story(world)

    asyncio.run(run())


def test_a_gang_gets_its_nodes_when_they_are_there_even_if_provisioned_was_said_early() -> None:
    async def story(world: World) -> None:
        await world.create(*checked_queue(), node("old-1", gpus=4))
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        workload = only_workload(world)
        assert condition(workload, "QuotaReserved")["status"] == "True"
        assert assigned(world) == []
        (request,) = requests(world)
        await answer(world, request, "Provisioned", "found", provisioningClassDetails={"zone": "a"})
        assert said(world)["state"] == "Ready"
        assert condition(only_workload(world), "Admitted")["status"] != "True"
        await join(world, node("new-1"))
        assert assigned(world) == []
        await join(world, node("new-2"))
        assert sorted(assigned(world)) == ["new-1", "new-2"]
        assert condition(only_workload(world), "Admitted")["status"] == "True"
        started = world.get(names.JOB, "train")
        assert started["spec"]["suspend"] is False
        annotations = started["spec"]["template"]["metadata"]["annotations"]
        assert annotations["autoscaling.x-k8s.io/consume-provisioning-request"].endswith("-1")

    _told(story)


def test_a_request_that_failed_is_tried_again_after_a_pause_under_another_name() -> None:
    async def story(world: World) -> None:
        await world.create(*checked_queue(), node("old-1", gpus=4))
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        (request,) = requests(world)
        await answer(world, request, "Failed", "no node group")
        assert requests(world) == []
        assert not only_workload(world)["status"].get("admission")
        assert said(world)["retryCount"] == 1
        await world.pass_time(55)
        assert requests(world) == []
        await world.pass_time(10)
        (request,) = requests(world)
        assert request["metadata"]["name"].endswith("-sample-prov-2")

    _told(story)


def test_nodes_that_are_taken_back_end_the_workload() -> None:
    async def story(world: World) -> None:
        await world.create(*checked_queue())
        await join(world, node("new-1"), node("new-2"))
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        (request,) = requests(world)
        await answer(world, request, "Provisioned", "found")
        assert condition(only_workload(world), "Admitted")["status"] == "True"
        await answer(world, request, "CapacityRevoked", "a week is over")
        assert only_workload(world)["spec"]["active"] is False

    _told(story)


def test_an_autoscaler_that_never_answers_is_given_up_after_the_time_of_a_gang() -> None:
    async def story(world: World) -> None:
        await world.create(*checked_queue(), node("old-1", gpus=4))
        await world.create(job("train", pods=2, gpus=8))
        await world.pass_time(1190)
        assert len(requests(world)) == 1
        await world.pass_time(20)
        assert requests(world) == []
        assert said(world)["retryCount"] == 1

    _told(story)
