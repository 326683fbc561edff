"""What a local queue used lately outlives a restart."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import GPU, job, node, queue
from tests.support.control_world import World
from unisono.control.names import LOCAL_QUEUE
from unisono.engine.model.names import LocalQueueKey, ResourceName
from unisono.engine.model.policy import AdmissionFairSharing, Policy
from unisono.kinds.policy.settings import DEFAULTS
from unisono.kinds.quantity import Quantity

RULES = AdmissionFairSharing(half_life_ms=600_000, sampling_ms=60_000)
SETTINGS = msgspec.structs.replace(DEFAULTS, policy=Policy(admission_fair_sharing=RULES))


def written(world: World) -> dict[str, Any]:
    sharing = (world.get(LOCAL_QUEUE, "lq-cq").get("status") or {}).get("fairSharing") or {}
    found: dict[str, Any] = sharing.get("admissionFairSharingStatus") or {}
    return found


def known(world: World) -> int:
    usage = world.assembly.scheduler.state.local_queue_usage.decayed
    assert usage is not None
    return usage.consumed[LocalQueueKey("default/lq-cq")].micro.get(ResourceName(GPU), 0)


def test_it_is_written_as_often_as_it_is_sampled_and_read_again() -> None:
    async def story() -> None:
        async with simulated_world(settings=SETTINGS).running() as world:
            made = queue()
            made[1]["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
            await world.create(node("n1"), node("n2"), *made, job("train", seconds=5000))
            await world.pass_time(300)
            before, used = written(world), known(world)
            # What is written is one sample old at most.
            assert 0 < Quantity.from_raw(before["consumedResources"][GPU]).nano <= used * 1000
            world.restart()
            await world.settle()
            assert abs(known(world) - used) <= 2  # rounded in other places on the way
            await world.pass_time(120)
            assert written(world)["lastUpdate"] > before["lastUpdate"]
            assert known(world) > used

    asyncio.run(story())


def test_without_the_policy_nothing_is_written() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=5000))
            await world.pass_time(300)
            assert written(world) == {}

    asyncio.run(story())


def test_what_is_covered_and_not_used_is_written_as_zero() -> None:
    async def story() -> None:
        async with simulated_world(settings=SETTINGS).running() as world:
            made = queue()
            made[1]["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
            group = made[1]["spec"]["resourceGroups"][0]
            group["coveredResources"].append("cpu")
            group["flavors"][0]["resources"].append({"name": "cpu", "nominalQuota": "8"})
            await world.create(node("n1"), node("n2"), *made, job("train", seconds=5000))
            await world.pass_time(300)
            used = written(world)["consumedResources"]
            assert used["cpu"] == "0"
            assert Quantity.from_raw(used[GPU]).nano > 0

    asyncio.run(story())
