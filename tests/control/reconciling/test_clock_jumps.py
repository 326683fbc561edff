"""A wall clock that is set stops nothing: not decisions, not deadlines, not the order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from typing_extensions import override

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import Jumping, World
from unisono.control import names
from unisono.control.conditions import is_true
from unisono.control.reconciling.workers import last_written
from unisono.runtime.clock import SteadyTime

Story = Callable[[World], Awaitable[None]]
HOUR = 3600.0


class Settable(Jumping):
    """A clock as a process has it (`runtime.clock`), on a machine whose wall clock can be set."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by = 0.0
        self._steady = SteadyTime(lambda: self.time + self.set_by, lambda: self.time)

    @override
    def now(self) -> float:
        return self._steady.now()

    def restart(self, last: float) -> None:
        """Begin as the clock of a new process does, which finds what was written last."""
        self._steady = SteadyTime(lambda: self.time + self.set_by, lambda: self.time)
        self._steady.resume_from(last)


def play(story: Story, **more: Any) -> None:
    async def run() -> None:
        world = simulated_world(**more)
        world.clock = Settable()
        async with world.running():
            await world.create(node("n1"), *queue())
            await story(world)

    asyncio.run(run())


def set_clock(world: World, seconds: float) -> None:
    assert isinstance(world.clock, Settable)
    world.clock.set_by += seconds


def is_finished(world: World, name: str) -> bool:
    return is_true(world.get(names.JOB, name)["status"].get("conditions"), "Complete")


@pytest.mark.parametrize("jump", [-HOUR, -5.0, HOUR, 30 * 24 * HOUR])
def test_jobs_go_on_starting_after_a_jump(jump: float) -> None:
    async def story(world: World) -> None:
        await world.create(job("before", pods=1, seconds=60))
        await world.settle()
        set_clock(world, jump)
        await world.create(job("after", pods=1, seconds=60))
        await world.settle()
        await world.pass_time(400)
        assert is_finished(world, "before")
        assert is_finished(world, "after")

    play(story)


def test_the_order_of_arrival_survives_a_clock_that_is_set_back() -> None:
    async def story(world: World) -> None:
        await world.create(job("running", pods=1, seconds=100), job("first", pods=1, seconds=1000))
        await world.settle()
        set_clock(world, -HOUR)
        await world.create(job("second", pods=1, seconds=1000))
        await world.pass_time(400)
        waiting = [
            one["metadata"]["name"]
            for one in world.every(names.WORKLOAD)
            if not (one.get("status") or {}).get("admission")
        ]
        assert len(waiting) == 1
        assert "job-second" in waiting[0]

    play(story)


def test_a_time_limit_ends_a_job_although_the_clock_was_set_back() -> None:
    async def story(world: World) -> None:
        endless = job("endless", pods=1, seconds=100_000)
        endless["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "60"
        await world.create(endless)
        await world.settle()
        set_clock(world, -HOUR)
        await world.pass_time(400)
        (workload,) = world.every(names.WORKLOAD)
        assert not (workload.get("status") or {}).get("admission")

    play(story)


def test_a_time_limit_ends_a_job_although_we_restart_after_the_clock_was_ahead() -> None:
    async def story(world: World) -> None:
        set_clock(world, HOUR)
        endless = job("endless", pods=1, seconds=100_000)
        endless["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "60"
        await world.create(endless)
        await world.settle()
        set_clock(world, -HOUR)
        assert isinstance(world.clock, Settable)
        world.clock.restart(last_written(world.view))
        world.restart()
        await world.pass_time(400)
        (workload,) = world.every(names.WORKLOAD)
        assert not (workload.get("status") or {}).get("admission")

    play(story)
