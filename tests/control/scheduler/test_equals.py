"""A workload that waits like another is told why, also if that one was refused after it came."""

from __future__ import annotations

import asyncio
import copy

import pytest

from tests.control.scheduler.test_read_again import queue, runs, workload
from tests.support.control_objects import node
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.kube.form import Json


def of_queue(name: str, cpu: str, lq: str, priority: int = 0) -> Json:
    made = workload(name, cpu=cpu)
    made["spec"] |= {"queueName": lq, "priority": priority}
    return made


def reason(world: World, name: str) -> str:
    status = world.get(names.WORKLOAD, name).get("status") or {}
    found = find(status.get("conditions"), "QuotaReserved")
    return "" if found is None else str(found["reason"])


@pytest.mark.parametrize("seconds", [0, 10])
def test_the_second_of_two_equals_is_told_when_the_first_is_refused_later(seconds: int) -> None:
    async def story() -> None:
        async with World().running() as world:
            flavor, first, lq = queue(cpu=2)
            first["spec"] |= {
                "cohortName": "all",
                "queueingStrategy": "StrictFIFO",
                "preemption": {"reclaimWithinCohort": "LowerPriority"},
            }
            second, other = copy.deepcopy(first), copy.deepcopy(lq)
            second["metadata"]["name"] = "best-effort"
            second["spec"] |= {"queueingStrategy": "BestEffortFIFO", "preemption": {}}
            quota = second["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]
            quota["nominalQuota"] = 0
            other["metadata"]["name"] = "lq-best-effort"
            other["spec"]["clusterQueue"] = "best-effort"
            await world.create(node("n1"), flavor, first, lq, second, other)
            for name, cpu in (("runs", "1"), ("next", "2")):
                await world.create(of_queue(name, cpu, "lq", 9))
                await world.settle()
            for name in ("one", "two"):  # what "next" waits for is kept from them, for this cycle
                await world.create(of_queue(name, "1", "lq-best-effort"))
                await world.settle()
            assert runs(world) == ["runs"]
            assert reason(world, "one") == "WaitingForQuota"
            await world.pass_time(seconds)  # long enough to be told its place, or not
            await world.client.delete(names.WORKLOAD, "runs", "default")
            await world.settle()
            assert runs(world) == ["next"]
            await world.pass_time(5)
            assert reason(world, "one") == "WaitingForQuota"
            assert reason(world, "two") == "WaitingForQuota"

    asyncio.run(story())
