"""`unisono why` finds the root cause by itself where the scheduler has published none."""

from __future__ import annotations

import asyncio

import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.diagnosed import with_root_cause
from unisono.cli.why.read import gather
from unisono.cli.why.text import text
from unisono.control import names
from unisono.control.scheduler import root_causes


async def why(world: World, name: str) -> str:
    found = await gather(world.client, world.get(names.JOB, name))
    made = await with_root_cause(world.client, found, answer(found))
    return " ".join(text(made, world.clock.now()).split())


@pytest.mark.parametrize("seconds", [0, 60])
def test_finds_it_at_once_and_in_a_large_cluster(
    seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(root_causes, "MOST_OBJECTS", 0)

    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(gpus=16))
        await world.create(job("holder", pods=1, gpus=4, seconds=5000))
        await world.settle()
        await world.create(job("gang", pods=2, gpus=8), job("big", pods=1, gpus=16))
        await world.settle()
        await world.pass_time(seconds)
        told = await why(world, "gang")
        assert "starts once default/job/holder has ended (4 nvidia.com/gpu of " in told
        told = await why(world, "big")
        assert (
            "never, unless there is a node with 16 nvidia.com/gpu; the largest node has 8" in told
        )

    play(story)


def test_says_nothing_where_it_may_not_read_what_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_causes, "MOST_OBJECTS", 0)

    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(gpus=64))
        await world.create(job("big", pods=1, gpus=16))
        await world.settle()
        found = await gather(world.client, world.get(names.JOB, "big"))
        made = answer(found)
        await world.client.delete(names.NODE, "n1")  # as for a user without the right to nodes
        assert "rootCause" not in await with_root_cause(world.client, found, made)

    play(story)


def play(story: object) -> None:
    async def run() -> None:
        async with simulated_world().running() as world:
            await story(world)  # type: ignore[operator]

    asyncio.run(run())
