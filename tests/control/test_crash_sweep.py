"""The controllers die before or after their first, second, third … write; nothing half remains.

After every crash they start anew from what is stored. Whatever they did before, no gang runs in
part for longer than the roll-back time, no GPU is given twice, and in the end all jobs are done,
each pod counted once.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import GPU, job, node, priority, queue
from tests.support.control_world import PassingOn, World
from unisono.control import names
from unisono.control.conditions import is_true
from unisono.kinds.overriding import override
from unisono.kube.transport import Answer, Transport


class Crash(BaseException):
    """The process is gone; this is not caught."""


class Mortal(PassingOn):
    """A transport that kills its user at the n-th write, before or after it is done."""

    def __init__(self, inner: Transport, at: int, *, after: bool) -> None:
        super().__init__(inner)
        self._left = at
        self._after = after
        self.writes = 0

    @override
    async def request(self, method: str, path: str, **more: Any) -> Answer:
        is_write = method != "GET"
        if is_write:
            self.writes += 1
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Crash
        answer = await super().request(method, path, **more)
        if is_write and self._left == 0:
            raise Crash
        return answer


def check(world: World) -> None:
    """Check what must hold at every instant."""
    taken: dict[str, int] = {}
    for pod in world.every(names.POD):
        running = pod["status"].get("phase") not in ("Succeeded", "Failed")
        if running and pod["spec"].get("nodeName"):
            gpus = int(pod["spec"]["containers"][0]["resources"]["limits"].get(GPU, 0))
            taken[pod["spec"]["nodeName"]] = taken.get(pod["spec"]["nodeName"], 0) + gpus
    for name, gpus in taken.items():
        assert gpus <= int(world.get(names.NODE, name)["status"]["allocatable"][GPU])
    for workload in world.every(names.WORKLOAD):
        conditions = (workload.get("status") or {}).get("conditions") or []
        own = [
            pod
            for pod in world.every(names.POD)
            if (pod["metadata"].get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
            == workload["metadata"]["name"]
        ]
        bound = [pod for pod in own if pod["spec"].get("nodeName")]
        placed = [one for one in conditions if one["type"] == names.PLACEMENT]
        if bound and not is_true(conditions, "Finished"):
            is_known = placed and placed[0]["reason"] in ("Committing", "Committed")
            assert is_known or is_true(conditions, "Evicted") or not placed


async def story(world: World) -> None:
    rules = {"withinClusterQueue": "LowerPriority"}
    await world.create(
        node("n1"),
        node("n2"),
        *queue(preemption=rules),
        priority("high", 10),
        job("a", seconds=20),
        job("b", seconds=20),
    )
    await _go_on(world, 5)
    await world.create(job("c", seconds=20, priority_class="high"))
    await _go_on(world, 600)


async def _go_on(world: World, seconds: float) -> None:
    """Let time pass; whenever the controllers die, start them again."""
    for _ in range(20):
        try:
            await world.pass_time(seconds)
        except Crash:
            check(world)
            world.restart()
        else:
            check(world)
            return
    raise AssertionError("they die more often than they were told to")


def play(at: int, *, after: bool) -> int:
    """Tell the story with one crash; return how many writes it took."""
    mortals: list[Mortal] = []

    def wrap(inner: Transport) -> Transport:
        mortals.append(Mortal(inner, at, after=after))
        return mortals[0]

    async def run() -> None:
        async with simulated_world(wrap=wrap).running() as world:
            await story(world)
            for name in ("a", "b", "c"):
                status = world.get(names.JOB, name)["status"]
                assert is_true(status["conditions"], "Complete"), (name, status)
                assert status["succeeded"] == 2
                assert status.get("failed", 0) == 0
            for workload in world.every(names.WORKLOAD):
                assert is_true(workload["status"]["conditions"], "Finished")

    asyncio.run(run())
    return mortals[0].writes


def test_the_story_ends_well_without_a_crash() -> None:
    assert play(0, after=False) > 40


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 100, 7))
def test_a_crash_leaves_nothing_behind(at: int, after: bool) -> None:
    play(at, after=after)
