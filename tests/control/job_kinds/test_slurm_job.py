"""Slurm's jobs live: a script on the first pod of a gang, arrays, time limits, cancelling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.runner.simulated_world import node, simulated_world
from tests.slurm.fake_api import FakeApi, context
from tests.support.control_world import World
from unisono.control import names
from unisono.control.job_kinds import slurm
from unisono.engine.model.policy import Backfill, Policy
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.form import Json
from unisono.slurm.commands.sbatch import run
from unisono.slurm.jobs import Row
from unisono.slurm.site import MAP

Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story, nodes: int = 2, settings: Settings = DEFAULTS) -> None:
    """Run a story on a new cluster."""

    async def begin() -> None:
        async with simulated_world(settings=settings).running() as world:
            machines = [
                node(f"n{n}", cpu="8", **{"nvidia.com/gpu": "8"}) for n in range(1, nodes + 1)
            ]
            await world.create(*machines)
            await world.settle()
            await story(world)

    asyncio.run(begin())


async def submit(world: World, identity: int, *arguments: str, script: str = "sleep 60") -> Json:
    """Store a job as sbatch does."""
    stored = {
        "metadata": {
            "resourceVersion": "1",
            "annotations": {"unisono.dev/last-job-id": str(identity - 1)},
        }
    }
    machine = {"cpu": "8", "nvidia.com/gpu": "8", "memory": "64Gi"}
    listed = {"items": [{"metadata": {"name": "n1"}, "status": {"allocatable": machine}}]}
    api = FakeApi(objects={MAP: stored, "/api/v1/nodes": listed})
    run([*arguments, "job.sh"], context(api, {"job.sh": f"#!/bin/sh\n{script}\n"}))
    made: Json = api.written[1][2]
    await world.create(made)
    await world.settle()
    return made


def job(world: World, name: str) -> Json:
    return world.get(slurm.JOB, name)


def state(world: World, name: str) -> tuple[str, str]:
    status = job(world, name).get("status") or {}
    return status.get("state", ""), status.get("reason", "")


def pods(world: World, prefix: str) -> list[Json]:
    found = [pod for pod in world.every(names.POD) if pod["metadata"]["name"].startswith(prefix)]
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def variables(pod: Json) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}


def test_a_gang_starts_whole_and_ends_with_its_script() -> None:
    async def story(world: World) -> None:
        await submit(world, 7, "-N2", "--ntasks-per-node=2", "--gres=gpu:4", "-J", "train")
        assert state(world, "train-7") == ("RUNNING", "None")
        first, second = pods(world, "train-7")
        assert {first["spec"]["nodeName"], second["spec"]["nodeName"]} == {"n1", "n2"}
        env = variables(first)
        assert env["SLURM_JOB_NODELIST"] == "n[1-2]"
        assert (env["SLURM_TASKS_PER_NODE"], env["SLURM_NTASKS"]) == ("2(x2)", "4")
        assert env["SLURM_GPUS_ON_NODE"] == "4"
        assert variables(second)["SLURM_NODEID"] == "1"
        await world.pass_time(61)
        await world.settle()
        assert state(world, "train-7") == ("COMPLETED", "None")
        assert job(world, "train-7")["status"]["exitCode"] == "0:0"
        assert pods(world, "train-7") == []

    play(story)


def test_one_pod_on_each_node_even_if_one_node_has_room_for_all() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-N2", "-J", "small")
        assert len({pod["spec"]["nodeName"] for pod in pods(world, "small-1")}) == 2
        await submit(world, 2, "-N3", "-J", "large")
        assert state(world, "large-2")[0] == "PENDING"
        assert pods(world, "large-2") == []

    play(story)


def test_time_is_up_and_others_are_told_why_they_wait() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-N2", "--exclusive", "-t", "1", "-J", "long", script="sleep 600")
        await submit(world, 2, "-N2", "--exclusive", "-J", "next")
        assert state(world, "next-2") == ("PENDING", "Resources")
        await world.pass_time(61)
        await world.settle()
        assert state(world, "long-1") == ("TIMEOUT", "TimeLimit")
        assert state(world, "next-2")[0] == "RUNNING"

    play(story)


def test_an_open_limit_lasts_until_it_would_delay_another_job() -> None:
    """`--time-min`: planned with the least, raised at the start, open again when it is requeued."""

    async def story(world: World) -> None:
        whole = ("-N1", "--exclusive")
        await submit(world, 1, *whole, "-t", "5", "-J", "runs", script="sleep 280")
        await submit(world, 2, "-N2", "--exclusive", "-t", "10", "-J", "big", script="sleep 60")
        await submit(world, 3, *whole, "-t", "60", "-J", "fixed")
        await submit(
            world, 4, *whole, "-t", "60", "--time-min", "2", "-J", "open", script="sleep 3000"
        )
        assert state(world, "fixed-3")[0] == "PENDING"
        assert state(world, "open-4")[0] == "RUNNING"
        limit = Row(job(world, "open-4"), 0.0).limit_seconds
        assert limit is not None
        assert 120 <= limit <= 300
        await world.pass_time(290)
        await world.settle()
        assert state(world, "open-4") == ("TIMEOUT", "TimeLimit")
        await world.pass_time(20)
        await world.settle()
        assert state(world, "big-2")[0] in ("RUNNING", "COMPLETED")

    play(story, settings=Settings(policy=Policy(backfill=Backfill())))


def test_a_pending_job_shows_the_nodes_it_is_to_start_on() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-N2", "--gres=gpu:8", "-t10", "-J", "first", script="sleep 590")
        await submit(world, 2, "-N2", "--gres=gpu:8", "-t5", "-J", "next")
        await world.pass_time(61)  # estimates are made once a minute
        assert job(world, "next-2")["status"]["plannedNodes"] == ["n1", "n2"]
        await world.pass_time(600)
        assert state(world, "next-2")[0] in ("RUNNING", "COMPLETED")
        assert "plannedNodes" not in job(world, "next-2")["status"]

    for backfill in (None, Backfill(dates=1), Backfill()):
        play(story, settings=Settings(policy=Policy(backfill=backfill)))


def test_the_engine_knows_jobs_and_tasks_by_their_numbers() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-N1", "--gres=gpu:8", "-a", "5-7", "-t1", "-J", "many")
        await submit(world, 20, "-N1", "--gres=gpu:8", "-t1", "-J", "one")
        waiting = world.assembly.scheduler.state.waiting.values()
        turns = sorted(
            (one.workload.submit_options.number, one.workload.submit_options.task)
            for one in waiting
        )
        assert turns == [(1, 6), (1, 7), (20, 0)]  # the first task runs

    play(story, nodes=1)


def test_without_others_a_limit_that_is_left_open_is_all_that_was_asked_for() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-N1", "-t", "60", "--time-min", "2", "-J", "open")
        assert Row(job(world, "open-1"), 0.0).limit_seconds == 3600
        requeue = {"spec": {"stop": "requeue:admin"}}
        await world.client.patch(slurm.JOB, "open-1", "default", requeue)
        await world.settle()
        assert state(world, "open-1")[0] == "RUNNING"
        assert Row(job(world, "open-1"), 0.0).limit_seconds == 3600

    play(story)


def test_a_hold_holds_and_a_release_lets_go() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-H", "-J", "held")
        assert state(world, "held-1") == ("PENDING", "JobHeldUser")
        released = {"metadata": {"annotations": {"unisono.dev/hold": None}}}
        await world.client.patch(slurm.JOB, "held-1", "default", released)
        await world.settle()
        assert state(world, "held-1")[0] == "RUNNING"

    play(story)


def test_an_array_opens_as_many_tasks_as_may_run() -> None:
    async def story(world: World) -> None:
        await submit(world, 48, "--array=0-15%2", "-J", "arr", script="sleep 10")
        tasks = [one for one in world.every(slurm.JOB) if one["spec"].get("task")]
        assert [one["metadata"]["name"] for one in tasks] == ["arr-48-0", "arr-48-1"]
        assert [one["spec"]["jobId"] for one in tasks] == [49, 50]
        assert job(world, "arr-48")["status"]["opened"] == 2
        assert state(world, "arr-48") == ("PENDING", "JobArrayTaskLimit")
        env = variables(pods(world, "arr-48-1")[0])
        assert env["SLURM_ARRAY_TASK_COUNT"] == "16"
        assert (env["SLURM_ARRAY_JOB_ID"], env["SLURM_ARRAY_TASK_ID"]) == ("48", "1")
        for _ in range(9):
            await world.pass_time(11)
            await world.settle()
        assert state(world, "arr-48") == ("COMPLETED", "None")
        assert job(world, "arr-48-15")["spec"]["jobId"] == 48  # the last keeps the array's number

    play(story)


def test_a_hundred_thousand_tasks_are_one_record_until_they_start() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "--array=0-99999", "-c", "8", "-J", "sweep")
        objects = world.every(slurm.JOB)
        assert len(objects) <= 1 + 2 + 20  # itself, two that run, twenty in line
        assert len(pods(world, "sweep")) == 2
        told = {"spec": {"stop": "cancel:0"}}
        await world.client.patch(slurm.JOB, "sweep-1", "default", told)
        await world.settle()
        await world.pass_time(31)
        await world.settle()
        assert state(world, "sweep-1")[0] == "CANCELLED"
        assert pods(world, "sweep") == []

    play(story)


def test_a_requeued_job_begins_again() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-J", "again", script="sleep 600")
        (before,) = world.every(names.WORKLOAD)
        await world.pass_time(40)
        told = {"spec": {"stop": "requeue"}}
        await world.client.patch(slurm.JOB, "again-1", "default", told)
        await world.settle()
        await world.pass_time(31)
        await world.settle()
        assert state(world, "again-1")[0] == "RUNNING"
        assert job(world, "again-1")["status"]["restarts"] == 1
        (pod,) = pods(world, "again-1")
        assert variables(pod)["SLURM_RESTART_COUNT"] == "1"
        (after,) = world.every(names.WORKLOAD)  # the same: it costs no age
        assert after["metadata"]["uid"] == before["metadata"]["uid"]

    play(story)


def test_a_job_that_is_requeued_and_held_waits() -> None:
    async def story(world: World) -> None:
        await submit(world, 1, "-J", "again", script="sleep 600")
        told = {"spec": {"stop": "requeuehold"}}
        await world.client.patch(slurm.JOB, "again-1", "default", told)
        await world.settle()
        await world.pass_time(31)
        await world.settle()
        assert state(world, "again-1")[0] == "PENDING"
        assert job(world, "again-1")["status"]["restarts"] == 1
        freed = {"metadata": {"annotations": {"unisono.dev/hold": None}}}
        await world.client.patch(slurm.JOB, "again-1", "default", freed)
        (workload,) = world.every(names.WORKLOAD)
        name = workload["metadata"]["name"]
        await world.client.patch(names.WORKLOAD, name, "default", freed)  # as scontrol does
        await world.settle()
        assert state(world, "again-1")[0] == "RUNNING"

    play(story)


def test_tasks_of_an_array_follow_those_of_another() -> None:
    async def story(world: World) -> None:
        first = await submit(world, 1, "-J", "first", "-a", "0-1", script="sleep 60")
        made = await submit(world, 10, "-J", "second", "-a", "0-1", script="sleep 60")
        assert first["metadata"]["name"] == "first-1"
        depends = {"unisono.dev/depends-on": "aftercorr:first-1"}
        made["metadata"]["annotations"] |= depends
        made["metadata"]["name"] = "third-10"
        await world.create(made)
        await world.settle()
        for number in (0, 1):
            task = job(world, f"third-10-{number}")
            told = task["metadata"]["annotations"]["unisono.dev/depends-on"]
            assert told == f"afterok:first-1-{number}"

    play(story)
