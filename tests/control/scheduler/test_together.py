"""Gangs that are admitted one after the other are written down together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.actions import Action, Patch, Together
from unisono.control.conditions import find, is_true
from unisono.control.reconciling.event_routing import Task
from unisono.control.scheduler import plan_writes
from unisono.control.scheduler.explainer import Explainer
from unisono.kube.errors import Conflict, Status

PREEMPTS = {"withinClusterQueue": "LowerPriority"}


def _seen(world: World) -> list[list[str]]:
    """Note which workloads the scheduler writes at once, from now on."""
    batches: list[list[str]] = []
    act = world.driver._act

    async def noting(action: Action, task: Task) -> Any:
        if task.controller == "scheduler" and isinstance(action, Together):
            batches.append([one.ref.name for one in action.actions if isinstance(one, Patch)])
        return await act(action, task)

    world.driver._act = noting  # type: ignore[method-assign]
    return batches


async def _waiting(world: World, *names_: str, **more: Any) -> None:
    """Have jobs whose Workloads are there, and a scheduler that has not looked yet."""
    await world.create(node("n1"), node("n2"), *queue(gpus=0, preemption=PREEMPTS))
    await world.create(*(job(name, pods=1, gpus=4, seconds=600, **more) for name in names_))
    await world.settle()


async def _give_quota(world: World, gpus: int) -> None:
    quota = [{"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}]}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": quota}]
    await world.client.patch(names.CLUSTER_QUEUE, "cq", "", {"spec": {"resourceGroups": groups}})


def test_while_admissions_are_stored_the_cluster_counts_as_busy() -> None:
    """A step that began long ago admits still; sentences about others would slow it down."""

    async def story() -> None:
        async with simulated_world().running() as world:
            await _waiting(world, "a", "b")
            explainer = world.driver.controllers["explainer"]
            assert isinstance(explainer, Explainer)
            meanwhile: list[float] = []
            act = world.driver._act

            async def noting(action: Action, task: Task) -> Any:
                if task.controller == "scheduler" and isinstance(action, Together):
                    meanwhile.append(explainer._last_admitted(later))
                return await act(action, task)

            world.driver._act = noting  # type: ignore[method-assign]
            later = world.clock.now() + 3600
            await _give_quota(world, 8)
            await world.settle()
            assert set(meanwhile) == {later}
            assert explainer._last_admitted(later) < later

    asyncio.run(story())


def _phases(world: World) -> list[str]:
    found = (
        find(one["status"].get("conditions"), names.PLACEMENT)
        for one in world.every(names.WORKLOAD)
    )
    return [one["reason"] for one in found if one is not None]


def test_admissions_share_a_write() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await _waiting(world, "a", "b", "c")
            batches = _seen(world)
            await _give_quota(world, 12)
            await world.settle()
            assert [len(batch) for batch in batches] == [3]
            assert _phases(world) == ["Committed"] * 3

    asyncio.run(story())


def test_so_many_share_a_write_that_the_next_is_decided_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan_writes, "MOST_ADMISSIONS", 2)

    async def story() -> None:
        async with simulated_world().running() as world:
            await _waiting(world, "a", "b", "c")
            batches = _seen(world)
            await _give_quota(world, 12)
            await world.settle()
            assert [len(batch) for batch in batches] == [2, 1]
            assert _phases(world) == ["Committed"] * 3

    asyncio.run(story())


def test_a_failed_write_holds_up_no_other_and_is_retried() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await _waiting(world, "a", "b", "c")
            batches, write = _seen(world), world._controllers.write
            spoilt: list[str] = []

            async def write_but_one(orders: Any) -> Any:
                chosen = orders[:1] + orders[2:] if len(orders) == 3 else orders
                results = list(await write(chosen))
                if len(orders) == 3 and not spoilt:
                    spoilt.append(orders[1].name)
                    status = Status(code=409, reason="Conflict", message="another write came first")
                    results.insert(1, Conflict(status))
                return results

            world._controllers.write = write_but_one  # type: ignore[method-assign,assignment]
            await _give_quota(world, 12)
            await world.pass_time(5)
            assert spoilt
            assert batches[0][1] == spoilt[0]
            assert batches[1] == spoilt
            assert _phases(world) == ["Committed"] * 3

    asyncio.run(story())


def test_what_takes_from_others_waits_until_those_are_written() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await _waiting(world, "low")
            await world.create(priority("high", 100))
            batches = _seen(world)
            await _give_quota(world, 4)
            await world.create(job("big", pods=1, gpus=4, seconds=600, priority_class="high"))
            await world.pass_time(120)
            states = {
                one["metadata"]["name"].split("-")[1]: is_true(
                    one["status"]["conditions"], "Admitted"
                )
                for one in world.every(names.WORKLOAD)
            }
            assert states == {"low": False, "big": True}
            assert all(len(set(batch)) == len(batch) for batch in batches)

    asyncio.run(story())
