"""What is written about a gang on its way to its nodes: as little as a crash allows."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from tests.control.gangs.test_gates import bound, phase, story
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.admission.placement import first_phase
from unisono.control.conditions import is_true
from unisono.kube.transport import Answer, Stream, Transport


class Counting:
    """A transport that counts writes by what they are about."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.writes: Counter[str] = Counter()
        self.names: Counter[str] = Counter()  # of workloads whose status was written

    async def request(self, method: str, path: str, **more: Any) -> Answer:
        if method != "GET":
            parts = path.split("/namespaces/", 1)[-1].split("/")[1:]
            what = " ".join([method, *parts[:1], *parts[2:]])
            self.writes[what] += 1
            if what.endswith("workloads status"):
                self.names[parts[1]] += 1
        return await self._inner.request(method, path, **more)

    def stream(self, *arguments: Any, **more: Any) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(*arguments, **more)


def test_a_gang_takes_two_writes_of_its_workload_and_one_of_each_pod() -> None:
    counted: list[Counting] = []

    def wrap(inner: Transport) -> Transport:
        counted.append(Counting(inner))
        return counted[0]

    async def main() -> None:
        async with simulated_world(wrap=wrap).running() as world:
            await world.create(node("n1"), node("n2"), *queue())
            await world.settle()
            before = Counter(counted[0].writes)
            await world.create(job("train", pods=2))
            await world.settle()
            assert phase(world) == "Committed"
            writes = counted[0].writes - before
            assert writes["POST workloads"] == 1
            assert writes["PATCH workloads status"] == 2
            assert writes["POST pods binding"] == 2
            assert writes["PATCH jobs"] == 1

    asyncio.run(main())


def test_an_unchanged_wait_is_not_written_again() -> None:
    counted: list[Counting] = []

    def wrap(inner: Transport) -> Transport:
        counted.append(Counting(inner))
        return counted[0]

    async def main() -> None:
        async with simulated_world(wrap=wrap).running() as world:
            await world.create(node("n1"), *queue())
            await world.create(job("large", pods=9))
            await world.settle()
            (large,) = [each["metadata"]["name"] for each in world.every(names.WORKLOAD)]
            await world.pass_time(10)
            assert counted[0].names[large] >= 1  # why it waits, and its root cause
            told = counted[0].names[large]
            for number in range(10):
                await world.create(job(f"small{number}", pods=1))
                await world.settle()
                await world.pass_time(61)
                await world.client.delete(names.JOB, f"small{number}", "default")
                await world.settle()
            assert len(counted[0].names) == 11  # the others were written to
            assert counted[0].names[large] == told

    asyncio.run(main())


def test_a_gang_that_was_whole_has_started_whatever_happens_before_that_is_written() -> None:
    async def tell(world: World) -> None:
        await world.create(job("train", pods=2))
        await world.settle()
        pods = world.every(names.POD)
        for pod in pods:
            await bound(world, pod, pod["spec"]["nodeSelector"][names.HOSTNAME])
        await world.settle()
        assert phase(world) == "Committing"
        first = pods[0]["metadata"]
        await world.client.delete(names.POD, first["name"], first["namespace"], grace_s=0)
        await world.settle()
        assert phase(world) == "Committed"
        await world.pass_time(300)
        (workload,) = world.every(names.WORKLOAD)
        assert not is_true(workload["status"]["conditions"], "Evicted")

    story(tell)


ADMITTED = [{"type": "Admitted", "status": "True"}]
JOB = {"kind": "Job", "name": "train", "controller": True}


@pytest.mark.parametrize(
    ("metadata", "conditions", "expected"),
    [
        pytest.param({"ownerReferences": [JOB]}, ADMITTED, "Committing", id="its pods come later"),
        pytest.param({"ownerReferences": [JOB]}, [], "Planned", id="it waits for machines"),
        pytest.param({}, ADMITTED, "Planned", id="no controller is known to make its pods"),
        pytest.param(
            {"ownerReferences": [JOB], "annotations": {names.GANG: "coscheduling:train"}},
            ADMITTED,
            "Planned",
            id="its pods are there",
        ),
    ],
)
def test_only_a_gang_whose_pods_come_later_is_released_by_its_admission(
    metadata: Mapping[str, Any], conditions: list[dict[str, Any]], expected: str
) -> None:
    assert first_phase({"metadata": metadata}, conditions) == expected
