"""Operators die before or after any of their writes, and what is stored still leads to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from tests.control.job_kinds.test_kubeflow import kubeflow_job, replica, torch
from tests.control.job_kinds.test_ray_clusters import dev, prod, row, surroundings
from tests.control.job_kinds.test_ray_jobs import ray_job
from tests.control.job_kinds.test_volcano_policies import on, task, vcjob
from tests.control.pod_gangs.test_pod_gangs import member, podgroup
from tests.control.stories import gpu_node, phases
from tests.control.test_crash_sweep import Crash, Mortal, check
from tests.runner.simulated_world import simulated_world
from tests.support.control_world import World
from unisono.control.job_kinds import ray, volcano
from unisono.control.job_kinds.kubeflow import MPI, PYTORCH
from unisono.control.names import POD
from unisono.control.pod_gangs.membership import COSCHEDULING
from unisono.kube.transport import Transport

Pass = Callable[[float], Awaitable[None]]


async def a_volcano_job_restarts_and_completes(world: World, go_on: Pass) -> None:
    """One worker fails once, the job starts over, its master ends it."""
    job = vcjob(
        task("m", 1, run_seconds="20", policies=[on("TaskCompleted", "CompleteJob")]),
        task("w", 2, fail_after="5", fail_times="1", fail_index="1"),
        policies=[on("PodFailed", "RestartJob")],
        plugins={"svc": [], "ssh": [], "env": []},
    )
    await world.create(gpu_node("n1", 3), job)
    await go_on(120)
    status = world.get(volcano.JOB, "j")["status"]
    assert (status["state"]["phase"], status["retryCount"]) == ("Completed", 1)
    assert phases(world) == {"j-m-0": "Succeeded"}


async def a_ray_cluster_makes_room(world: World, go_on: Pass) -> None:
    """The story of seed 003."""
    await world.create(*surroundings(), dev())
    await go_on(5)
    await world.create(prod())
    await go_on(60)
    assert row(world, "raycluster-prod", "team-a") == (2, 2, "10", "24G", "4", "ready")
    assert row(world, "raycluster-dev", "team-b") == (2, "", "6", "16G", "0", "suspended")


async def a_ray_job_runs_through(world: World, go_on: Pass) -> None:
    """A cluster comes, a program runs, the cluster goes."""
    await world.create(gpu_node("n1", 4), ray_job("sleep 10"))
    await go_on(120)
    status = world.get(ray.JOB, "train")["status"]
    assert (status["jobStatus"], status["jobDeploymentStatus"]) == ("SUCCEEDED", "Complete")
    assert world.every(ray.CLUSTER) == []


async def a_training_job_restarts_and_succeeds(world: World, go_on: Pass) -> None:
    """A worker fails once; all start over, once."""
    worker = replica(2, fail_after="5", fail_times="1", fail_index="1")
    await world.create(gpu_node("n1", 3), torch(replica(run_seconds="20"), worker))
    await go_on(120)
    job = world.get(PYTORCH.kind, "j")
    assert job["status"]["conditions"][-1]["type"] == "Succeeded"
    assert job["metadata"]["annotations"]["unisono.dev/attempt"] == "1"
    assert job["metadata"]["annotations"]["unisono.dev/restarts-counted"] == "1"
    assert phases(world) == {"j-master-0": "Succeeded"}


async def a_launcher_waits_for_its_workers(world: World, go_on: Pass) -> None:
    """The launcher comes when the workers are ready, and ends the job."""
    replicas = {"Launcher": replica(run_seconds="10"), "Worker": replica(2, ready_seconds="5")}
    job = kubeflow_job(MPI, replicas, launcherCreationPolicy="WaitForWorkersReady")
    await world.create(gpu_node("n1", 3), job)
    await go_on(120)
    assert world.get(MPI.kind, "j")["status"]["conditions"][-1]["type"] == "Succeeded"


async def bare_pods_make_a_gang(world: World, go_on: Pass) -> None:
    """Two pods of a PodGroup start, end, and one comes after them."""
    await world.create(gpu_node("n1", 2), podgroup("coscheduling"))
    for name in ("a", "b"):
        await world.create(member("coscheduling", name, run_seconds="10"))
    await go_on(60)
    assert phases(world) == {"a": "Succeeded", "b": "Succeeded"}
    assert world.get(COSCHEDULING, "g")["status"]["phase"] == "Finished"


Story = Callable[[World, Pass], Awaitable[None]]
STORIES: Mapping[str, Story] = {
    "vcjob": a_volcano_job_restarts_and_completes,
    "raycluster": a_ray_cluster_makes_room,
    "rayjob": a_ray_job_runs_through,
    "pytorchjob": a_training_job_restarts_and_succeeds,
    "mpijob": a_launcher_waits_for_its_workers,
    "podgroup": bare_pods_make_a_gang,
}


def play(story: Story, at: int, *, after: bool) -> int:
    """Tell a story with one crash; return how many writes it took."""
    mortals: list[Mortal] = []

    def wrap(inner: Transport) -> Transport:
        mortals.append(Mortal(inner, at, after=after))
        return mortals[0]

    async def run() -> None:
        async with simulated_world(wrap=wrap).running() as world:

            async def go_on(seconds: float) -> None:
                end = world.clock.time + seconds
                while True:
                    try:
                        await world.pass_time(max(0.0, end - world.clock.time))
                    except Crash:
                        world.restart()
                    else:
                        break
                check_places(world)

            await story(world, go_on)

    asyncio.run(run())
    return mortals[0].writes


def check_places(world: World) -> None:
    """Check that no GPU is given twice, if all pods want some."""
    if all("resources" in pod["spec"]["containers"][0] for pod in world.every(POD)):
        check(world)


@pytest.mark.parametrize("name", STORIES)
def test_without_a_crash(name: str) -> None:
    assert play(STORIES[name], 0, after=False) > 10


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", STORIES)
def test_a_crash_at_every_write(name: str, after: bool) -> None:
    writes = play(STORIES[name], 0, after=False)
    for at in range(1, writes + 1):
        play(STORIES[name], at, after=after)
