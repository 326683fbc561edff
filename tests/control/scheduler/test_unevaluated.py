"""Workloads that no cycle evaluates have a reason all the same, and it costs few writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.cli.workload_state import condition, job_of
from unisono.control import names
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.views.objects import Conditions
from unisono.kube.form import Json

Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    """Run a story on a new cluster."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await story(world)

    asyncio.run(run())


def strict_queue() -> list[Json]:
    made = queue(gpus=16)
    for one in made:
        if one["kind"] == "ClusterQueue":
            one["spec"]["queueingStrategy"] = "StrictFIFO"
    return made


def told(world: World, name: str) -> str:
    """Return the message of the workload of a job."""
    (found,) = (one for one in world.every(names.WORKLOAD) if job_of(one) == f"job/{name}")
    return waiting_message(Conditions((found.get("status") or {}).get("conditions")))


def test_every_one_of_several_equal_pods_has_a_reason() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), job("free", pods=3, gpus=64, queue_name=""))
        await world.settle()
        pods = world.every(names.POD)
        reasons = [(condition(pod, "PodScheduled") or {}).get("message", "") for pod in pods]
        assert len(reasons) == 3
        assert all("the best node has 8 of 64 nvidia.com/gpu" in one for one in reasons), reasons

    play(story)


def test_every_one_of_several_equal_pods_that_can_never_start_says_so() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), job("free", pods=2, gpus=64, queue_name=""))
        await world.pass_time(5)
        never = "never, unless there is a node with 64 nvidia.com/gpu; the largest node has 8"
        for pod in world.every(names.POD):
            assert (condition(pod, "PodScheduled") or {})["message"].startswith(never)

    play(story)


def test_workloads_behind_a_strict_head_know_their_place() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *strict_queue())
        await world.create(job("holds", gpus=6, seconds=600))
        await world.settle()
        await world.create(job("head", pods=1, seconds=600))
        await world.settle()
        await world.create(job("second", pods=1), job("third", pods=1, gpus=1))
        await world.settle()
        assert told(world, "third") == "", "it may be admitted in the next moment"
        await world.pass_time(5)
        assert told(world, "second").startswith("is number 2 in queue cq, behind default/job-head-")
        assert told(world, "third").startswith("is number 3 in queue cq, behind default/job-head-")
        await world.client.delete(names.JOB, "head", "default")
        await world.pass_time(70)
        assert "(4 nvidia.com/gpu short)" in told(world, "second"), "the new head is evaluated"
        assert told(world, "third").startswith("is number 2 in queue cq, behind default/job-second")

    play(story)
