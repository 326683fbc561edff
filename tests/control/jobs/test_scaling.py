"""Running jobs that are made larger or smaller keep running (quota §15)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.control.stories import nodes_of, phases
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import GPU, job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.control.names import JOB, WORKLOAD


def play(story: Callable[[World], Awaitable[None]], *, nodes: int = 3, gpus: int = 24) -> None:
    """Run a story with a job of two pods on nodes of eight GPUs."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await world.create(*queue(gpus=gpus), *(node(f"n{one + 1}") for one in range(nodes)))
            spec: dict[str, Any] = {"completionMode": "NonIndexed", "completions": None}
            await world.create(job("train", seconds=5000, **spec))
            await world.pass_time(5)
            assert list(nodes_of(world).values()) == ["n1", "n2"]
            await story(world)

    asyncio.run(run())


async def resize(world: World, pods: int) -> None:
    await world.client.patch(JOB, "train", "default", {"spec": {"parallelism": pods}})
    await world.pass_time(5)


def used(world: World) -> str:
    (flavor,) = world.get(names.CLUSTER_QUEUE, "cq")["status"]["flavorsUsage"]
    return str(next(one["total"] for one in flavor["resources"] if one["name"] == GPU))


def running(world: World) -> list[str]:
    states = phases(world)
    return sorted(on for name, on in nodes_of(world).items() if states[name] == "Running")


def test_more_pods_start_beside_those_that_run() -> None:
    async def story(world: World) -> None:
        before = set(nodes_of(world))
        await resize(world, 3)
        assert running(world) == ["n1", "n2", "n3"]
        assert before <= set(nodes_of(world))  # no pod restarted
        (workload,) = world.every(WORKLOAD)
        assert workload["spec"]["podSets"][0]["count"] == 3
        assert find(workload["status"]["conditions"], "Evicted") is None
        assert used(world) == "24"

    play(story)


@pytest.mark.parametrize(("nodes", "gpus"), [(2, 24), (3, 16)])
def test_more_pods_wait_for_nodes_or_quota_while_the_others_run(nodes: int, gpus: int) -> None:
    async def story(world: World) -> None:
        await resize(world, 3)
        assert running(world) == ["n1", "n2"]
        first, slice_ = sorted(world.every(WORKLOAD), key=lambda one: len(one["metadata"]["name"]))
        ready = find(first["status"]["conditions"], "PodsReady")
        assert ready is not None
        assert ready["status"] == "True"
        reserved = find(slice_["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert reserved["status"] == "False"
        if nodes == 2:
            await world.create(node("n3"))
        else:
            quota = queue(gpus=24)[1]["spec"]["resourceGroups"]
            changes = {"spec": {"resourceGroups": quota}}
            await world.client.patch(names.CLUSTER_QUEUE, "cq", "", changes)
        await world.pass_time(5)
        assert running(world) == ["n1", "n2", "n3"]
        assert len(world.every(WORKLOAD)) == 1

    play(story, nodes=nodes, gpus=gpus)


def test_quota_of_removed_pods_goes_to_another_workload() -> None:
    async def story(world: World) -> None:
        await world.create(job("other", seconds=5000, pods=1))
        await world.pass_time(5)
        assert used(world) == "16"
        await resize(world, 1)
        await world.pass_time(40)
        assert used(world) == "16"
        assert running(world) == ["n1", "n2"]
        assert all(one["status"].get("admission") for one in world.every(WORKLOAD))

    play(story, nodes=2, gpus=16)


def test_a_change_of_mind_leaves_nothing_behind() -> None:
    async def story(world: World) -> None:
        await resize(world, 5)
        await resize(world, 3)
        assert running(world) == ["n1", "n2", "n3"]
        await resize(world, 2)
        await world.pass_time(40)
        assert (len(running(world)), used(world)) == (2, "16")
        assert len(world.every(WORKLOAD)) == 1

    play(story)


@pytest.mark.parametrize("at", range(4))
def test_a_crash_in_between_changes_nothing(at: int) -> None:
    async def story(world: World) -> None:
        await world.client.patch(JOB, "train", "default", {"spec": {"parallelism": 3}})
        for step in range(12):
            await world.store.committed()
            world.pump()
            for _ in range(step % (at + 2) + 1):
                await world.driver.step()
            world.restart()
        await world.pass_time(10)
        assert running(world) == ["n1", "n2", "n3"]
        assert (len(world.every(WORKLOAD)), used(world)) == (1, "24")

    play(story)
