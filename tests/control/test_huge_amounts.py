"""Amounts that no machine has: explained, never an overflow, and all other jobs run."""

from __future__ import annotations

import asyncio

import pytest

from tests.control.stories import queue_of
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.cli.why.text import text
from unisono.control import names
from unisono.kube.form import Json

LARGEST = 2**63 - 1
GPU = "nvidia.com/gpu"


def _job(pods: int, **asks: str) -> Json:
    made = job("j", pods=pods, gpus=0)
    del made["spec"]["completionMode"]
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"limits": {GPU if one == "gpu" else one: asks[one] for one in asks}}
    return made


async def _told(world: World, made: Json) -> str:
    await world.create(made)
    await world.settle()
    await world.create(job("innocent", pods=1, gpus=1))
    await world.settle()
    assert (world.get(names.JOB, "innocent").get("status") or {}).get("ready") == 1
    found = answer(await gather(world.client, world.get(names.JOB, "j")))
    return " ".join(text(found, world.clock.now()).split())


@pytest.mark.parametrize(
    ("pods", "asks", "says"),
    [
        (1_000_000, {"cpu": "9000000000000000"}, "asks for 9000000000000000 cpu; one pod can have"),
        (2**31 - 1, {"cpu": "1000000000"}, "asks for 2147483647 x 1000000000 cpu; no cluster has"),
        (2**31 - 1, {"memory": "255Ti"}, "asks for 2147483647 x 255Ti memory; no cluster has more"),
        (1, {"cpu": str(LARGEST)}, "more than can be counted"),
        (1, {"memory": "1e30"}, "more than can be counted"),
        (2**31 - 1, {"memory": "9999999Ei"}, "more than can be counted"),
        (1, {"gpu": str(LARGEST)}, "more than can be counted"),
        (3, {"gpu": "2000000"}, "asks for 2000000 nvidia.com/gpu; one pod can have"),
    ],
)
@pytest.mark.slow
def test_it_is_explained_and_harms_no_other_job(pods: int, asks: dict[str, str], says: str) -> None:
    async def run() -> str:
        async with simulated_world().running() as world:
            await world.create(node("n1"), *queue_of(16))
            return await _told(world, _job(pods, **asks))

    assert says in asyncio.run(run())
