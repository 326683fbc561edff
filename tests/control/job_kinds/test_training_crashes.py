"""A gang that crashes once and recovers, while the controllers die at their first, second … write.

Whenever they die, the incident is counted exactly once, the gang runs whole or not at all, and in
the end everything is complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.control.test_crash_sweep import Crash, Mortal, check
from tests.control.training_world import (
    Json,
    World,
    conditions,
    gpu_node,
    job_set,
    queues,
    replicated,
    status,
    train_job,
)
from tests.runner.simulated_world import simulated_world
from unisono.control import names
from unisono.kube.transport import Transport

FAILS_ONCE = {
    "unisono.dev/run-seconds": "20",
    "unisono.dev/fail-after": "5",
    "unisono.dev/fail-times": "1",
    "unisono.dev/fail-index": "1",
}

Story = Callable[[World], Awaitable[None]]


async def go_on(world: World, seconds: float) -> None:
    """Let time pass; whenever the controllers die, start them again."""
    end = world.clock.now() + seconds
    for _ in range(20):
        try:
            await world.pass_time(max(0.0, end - world.clock.now()))
        except Crash:
            check(world)
            world.restart()
        else:
            check(world)
            return
    raise AssertionError("they die more often than they were told to")


async def training(world: World) -> None:
    override: Json = {"targetJobs": [{"name": "node"}], "metadata": {"annotations": FAILS_ONCE}}
    await world.create(
        gpu_node("n1"),
        gpu_node("n2"),
        *queues(),
        train_job(podTemplateOverrides=[override]),
    )
    await go_on(world, 600)
    assert conditions(world, names.TRAIN_JOB, "t")["Complete"] == ("True", "AllJobsCompleted")
    found = status(world, names.JOB_SET, "t")
    assert (found["restarts"], found["restartsCountTowardsMax"]) == (1, 1)
    annotations = world.get(names.TRAIN_JOB, "t")["metadata"]["annotations"]
    assert annotations["unisono.dev/attempt"] == "1"


async def stages(world: World) -> None:
    await world.create(
        gpu_node("n1"),
        *queues(gpus=8),
        job_set(
            replicated("fetch", pods=1, gpus=2, command=["sleep", "3"]),
            replicated(
                "train",
                pods=2,
                gpus=3,
                says=FAILS_ONCE,
                dependsOn=[{"name": "fetch", "status": "Complete"}],
            ),
            queue="lq",
        ),
    )
    await go_on(world, 600)
    assert conditions(world, names.JOB_SET, "js")["Completed"] == ("True", "AllJobsCompleted")
    assert status(world, names.JOB_SET, "js")["restarts"] == 1


def play(story: Story, at: int, *, after: bool) -> int:
    """Tell a story with one crash; return how many writes it took."""
    mortals: list[Mortal] = []

    def wrap(inner: Transport) -> Transport:
        mortals.append(Mortal(inner, at, after=after))
        return mortals[0]

    async def run() -> None:
        async with simulated_world(wrap=wrap).running() as world:
            await story(world)
            for workload in world.every(names.WORKLOAD):
                found = conditions(world, names.WORKLOAD, workload["metadata"]["name"])
                assert found["Finished"] == ("True", "Succeeded")

    asyncio.run(run())
    return mortals[0].writes


@pytest.mark.parametrize("story", [training, stages])
def test_the_stories_end_well_without_a_crash(story: Story) -> None:
    assert play(story, 0, after=False) > 40


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 90, 7))
@pytest.mark.parametrize("story", [training, stages])
def test_a_crash_is_one_incident_and_no_more(story: Story, at: int, after: bool) -> None:
    play(story, at, after=after)
