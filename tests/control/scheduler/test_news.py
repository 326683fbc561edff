"""The scheduler sleeps through what queues write about themselves."""

from __future__ import annotations

import asyncio

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.scheduler.news import News


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


def test_what_a_local_queue_used_lately_is_news() -> None:
    async def story() -> None:
        async with World().running() as world:
            await world.create(*queue())
            await world.settle()
            news = News()
            obj = world.get(names.LOCAL_QUEUE, "lq-cq")
            assert news.is_news(names.LOCAL_QUEUE, obj, world.view)
            assert not news.is_news(names.LOCAL_QUEUE, obj, world.view)
            used = {"consumedResources": {"cpu": "1"}, "lastUpdate": "2026-01-01T00:00:00Z"}
            share = {"weightedShare": 0, "admissionFairSharingStatus": used}
            await world.set_status(names.LOCAL_QUEUE, "lq-cq", {"fairSharing": share})
            await world.settle()
            assert news.is_news(names.LOCAL_QUEUE, obj, world.view)

    asyncio.run(story())
