"""A cluster without nodes: quota alone decides, until the first node joins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from tests.control.scheduler.test_read_again import runs
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.assembly import embedded
from unisono.control.conditions import is_true


def story(tell: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with World(assemble=partial(embedded, needs_nodes=False)).running() as world:
            await world.create(*queue(gpus=16))
            await tell(world)

    asyncio.run(main())


def placed(world: World) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in world.every(names.POD))


def test_quota_alone_admits_and_nodes_that_join_later_are_used() -> None:
    async def tell(world: World) -> None:
        await world.create(job("a", pods=2, gpus=8), job("b", pods=1, gpus=8))
        await world.settle()
        [admitted] = runs(world)
        workload = world.get(names.WORKLOAD, admitted)
        assert is_true(workload["status"]["conditions"], "Admitted")
        assert world.get(names.JOB, "a")["spec"]["suspend"] is False
        assert placed(world) == ["", ""]
        await world.create(node("n1"))
        await world.settle()
        assert placed(world) == ["", ""], "a gang is placed whole"
        await world.create(node("n2"))
        await world.settle()
        assert placed(world) == ["n1", "n2"]

    story(tell)
