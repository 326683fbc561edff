"""Jobs on a living control plane: they wait, start whole, run, are preempted, end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, is_true

Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story) -> None:
    """Run a story on a new cluster."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await story(world)

    asyncio.run(run())


def workload(world: World, job_name: str) -> dict[str, Any]:
    """Return the newest Workload of a job."""
    found = [
        one
        for one in world.every(names.WORKLOAD)
        if one["metadata"]["name"].startswith(f"job-{job_name}-")
    ]
    assert found, f"{job_name} has no Workload"
    return found[-1]


def phases(world: World, job_name: str) -> list[str]:
    """Return the phases of a job's pods, by name."""
    return [
        pod["status"]["phase"]
        for pod in world.every(names.POD)
        if pod["metadata"]["labels"].get("job-name") == job_name
    ]


def test_a_gang_waits_for_its_last_node_and_then_starts_whole() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("train"))
        await world.settle()
        assert world.get(names.JOB, "train")["spec"]["suspend"] is True
        assert phases(world, "train") == []
        reserved = find(workload(world, "train")["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert "1 of 2 pods fit" in reserved["message"]
        await world.create(node("n2"))
        await world.settle()
        assert phases(world, "train") == ["Running", "Running"]
        where = {pod["spec"]["nodeName"] for pod in world.every(names.POD)}
        assert where == {"n1", "n2"}

    play(story)


def test_a_cluster_without_nodes_admits_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), job("early", pods=1))
        await world.settle()
        assert world.get(names.JOB, "early")["spec"]["suspend"] is True
        await world.create(node("n1"))
        await world.settle()
        assert phases(world, "early") == ["Running"]

    play(story)


def test_a_job_runs_to_its_end_and_gives_its_quota_back() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("first"), job("second"))
        await world.settle()
        assert phases(world, "first") == ["Running", "Running"]
        assert phases(world, "second") == []
        await world.pass_time(40)
        assert is_true(world.get(names.JOB, "first")["status"]["conditions"], "Complete")
        assert is_true(workload(world, "first")["status"]["conditions"], "Finished")
        assert phases(world, "second") == ["Running", "Running"]

    play(story)


def test_the_important_job_makes_the_other_leave_and_that_one_comes_back() -> None:
    async def story(world: World) -> None:
        rules = {"withinClusterQueue": "LowerPriority"}
        await world.create(
            node("n1"),
            node("n2"),
            *queue(preemption=rules),
            priority("high", 100),
            job("low", seconds=500),
        )
        await world.settle()
        assert phases(world, "low") == ["Running", "Running"]
        await world.create(job("high", seconds=60, priority_class="high"))
        await world.settle()
        evicted = workload(world, "low")["status"]["conditions"]
        assert find(evicted, "Preempted") is not None
        await world.pass_time(40)  # the grace period of the old pods
        assert phases(world, "high") == ["Running", "Running"]
        assert world.get(names.JOB, "low")["spec"]["suspend"] is True
        assert world.get(names.JOB, "low")["status"].get("failed", 0) == 0
        await world.pass_time(120)
        assert is_true(world.get(names.JOB, "high")["status"]["conditions"], "Complete")
        assert phases(world, "low") == ["Running", "Running"]

    play(story)


def test_a_preemptor_without_a_place_looks_again_when_nodes_change() -> None:
    async def story(world: World) -> None:
        flavor, cluster_queue, door = queue(preemption={"withinClusterQueue": "LowerPriority"})
        flavor["spec"] = {"nodeLabels": {"fast": "yes"}}
        first, second = node("n1"), node("n2")
        first["metadata"]["labels"]["fast"] = "yes"
        await world.create(first, second, flavor, cluster_queue, door, priority("high", 100))
        await world.create(job("low", pods=1, seconds=900))
        await world.settle()
        assert phases(world, "low") == ["Running"]
        await world.create(job("high", seconds=600, priority_class="high"))
        await world.pass_time(60)
        assert phases(world, "low") == ["Running"]  # its eviction would help no workload
        labels = {"metadata": {"labels": {"fast": "yes"}}}
        await world.client.patch(names.NODE, "n2", "", labels)
        await world.pass_time(60)
        assert phases(world, "high") == ["Running", "Running"]

    play(story)


def test_two_gangs_that_would_each_get_half_run_one_after_the_other() -> None:
    async def story(world: World) -> None:
        nodes = [node(f"n{number}", gpus=4) for number in range(4)]
        jobs = [job(name, pods=4, gpus=4) for name in ("a", "b")]
        await world.create(*nodes, *queue(gpus=64), *jobs)
        await world.settle()
        assert sorted([phases(world, "a"), phases(world, "b")]) == [[], ["Running"] * 4]
        await world.pass_time(40)
        assert phases(world, "b") == ["Running"] * 4

    play(story)


def test_a_job_that_is_in_no_queue_simply_runs() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), job("free", pods=1, queue_name=""))
        await world.settle()
        assert phases(world, "free") == ["Running"]
        assert world.every(names.WORKLOAD) == []

    play(story)


def test_a_deleted_job_takes_everything_along() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("gone", seconds=500))
        await world.settle()
        await world.client.delete(names.JOB, "gone", "default")
        await world.pass_time(60)
        assert world.every(names.POD) == []
        assert world.every(names.WORKLOAD) == []
        await world.create(job("next"))
        await world.settle()
        assert phases(world, "next") == ["Running", "Running"]

    play(story)


def test_a_pod_whose_node_dies_waits_for_another_node_and_the_others_run_on() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue(), job("train", seconds=500))
        await world.settle()
        lost = {"conditions": [{**node("n2")["status"]["conditions"][0], "status": "False"}]}
        await world.set_status(names.NODE, "n2", lost)
        await world.pass_time(60)
        assert phases(world, "train").count("Running") == 1
        await world.create(node("n3"))
        await world.pass_time(10)
        assert phases(world, "train").count("Running") == 2
        assert not find(workload(world, "train")["status"]["conditions"], "Evicted")

    play(story)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_failed_pod_is_replaced_on_the_place_it_had(failures: int) -> None:
    async def story(world: World) -> None:
        says = {"fail-after": "5", "fail-times": str(failures), "fail-index": "1"}
        await world.create(node("n1"), node("n2"), *queue(), job("train", says=says, seconds=60))
        await world.settle()
        await world.pass_time(300)
        status = world.get(names.JOB, "train")["status"]
        assert is_true(status["conditions"], "Complete")
        assert status["failed"] == failures
        assert status["succeeded"] == 2

    play(story)
