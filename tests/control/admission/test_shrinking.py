"""A running job gives up pods for a higher priority, and the others do not notice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.kube.form import Json

WITHIN = {"withinClusterQueue": "LowerPriority"}


def play(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a story on a new cluster."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await story(world)

    asyncio.run(run())


def elastic(pods: int = 5, least: int = 2) -> Json:
    """A long job that can do with fewer pods."""
    made = job("elastic", pods=pods, gpus=2, seconds=5000)
    made["metadata"]["annotations"] = {
        "kueue.x-k8s.io/job-min-parallelism": str(least),
        "unisono.dev/can-shrink": "true",
    }
    return made


def pods(world: World, name: str) -> dict[str, Json]:
    """Return the living pods of a job, by index."""
    return {
        pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: pod
        for pod in world.every(names.POD)
        if pod["metadata"]["labels"].get("job-name") == name
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") == "Running"
    }


def workload(world: World, name: str) -> Json:
    """Return the Workload of a job."""
    return next(
        one
        for one in world.every(names.WORKLOAD)
        if one["metadata"]["name"].startswith(f"job-{name}-")
    )


def test_the_highest_ranks_go_and_the_others_run_on() -> None:
    async def story(world: World) -> None:
        await world.create(
            node("n1", 10), *queue(preemption=WITHIN), priority("high", 100), elastic()
        )
        await world.settle()
        before = pods(world, "elastic")
        assert len(before) == 5
        high = job("high", pods=1, gpus=4, seconds=60, priority_class="high")
        await world.create(high)
        await world.settle()
        assert len(pods(world, "high")) == 1
        after = pods(world, "elastic")
        assert {pod["metadata"]["uid"] for pod in after.values()} == {
            before[index]["metadata"]["uid"] for index in ("0", "1", "2")
        }
        status = workload(world, "elastic")["status"]
        [assigned] = status["admission"]["podSetAssignments"]
        assert assigned["count"] == 3
        assert assigned["resourceUsage"] == {"nvidia.com/gpu": "6"}
        assert find(status["conditions"], "Evicted") is None
        done = find(status["conditions"], names.SHRINKING)
        assert done is not None
        assert done["reason"] == "GaveUpPods"
        assert world.get(names.JOB, "elastic")["spec"]["parallelism"] == 3
        assert world.get(names.JOB, "elastic")["status"].get("failed", 0) == 0

    play(story)


def test_a_gang_that_cannot_shrink_is_evicted_and_resumed_whole() -> None:
    async def story(world: World) -> None:
        rigid = elastic()
        del rigid["metadata"]["annotations"]["unisono.dev/can-shrink"]
        await world.create(node("n1", 10), *queue(preemption=WITHIN), priority("high", 100), rigid)
        await world.settle()
        await world.create(job("high", pods=1, gpus=4, seconds=60, priority_class="high"))
        await world.settle()
        assert find(workload(world, "elastic")["status"]["conditions"], "Preempted") is not None
        await world.pass_time(40)
        assert len(pods(world, "high")) == 1

    play(story)


def test_a_job_that_shrank_and_left_asks_for_all_of_its_pods_again() -> None:
    async def story(world: World) -> None:
        await world.create(
            node("n1"), *queue(preemption=WITHIN), priority("high", 100), elastic(pods=4)
        )
        await world.settle()
        await world.create(job("first", pods=1, gpus=4, seconds=600, priority_class="high"))
        await world.pass_time(40)
        assert len(pods(world, "elastic")) == 2
        await world.create(job("second", pods=1, gpus=4, seconds=600, priority_class="high"))
        await world.pass_time(40)
        assert pods(world, "elastic") == {}
        assert world.get(names.JOB, "elastic")["spec"]["parallelism"] == 4
        assert workload(world, "elastic")["spec"]["podSets"][0]["count"] == 4

    play(story)
