"""Time limits of living jobs: from the job, its kind, its queue and its earlier runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.control.jobs.test_live_jobs import workload
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.kube.form import Json

Story = Callable[[World], Coroutine[Any, Any, None]]
HOUR = 3_600_000


def play(story: Story) -> None:
    """Run a story on a new cluster with one node that is taken."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), *queue(), job("first", pods=1, seconds=900))
            await world.settle()
            await story(world)

    asyncio.run(run())


def saying(made: Json, **says: str) -> Json:
    """Return a job with annotations of ours."""
    annotations = {f"unisono.dev/{key.replace('_', '-')}": value for key, value in says.items()}
    made["metadata"]["annotations"] = annotations
    return made


def known(world: World, name: str) -> Workload:
    """Return what the engine knows about a job that waits."""
    key = WorkloadKey(f"default/{workload(world, name)['metadata']['name']}")
    return world.assembly.scheduler.state.waiting[key].workload


async def edit(world: World, kind: Any, name: str, annotations: Json) -> None:
    namespace = "" if kind == names.CLUSTER_QUEUE else "default"
    await world.client.patch(kind, name, namespace, {"metadata": {"annotations": annotations}})
    await world.settle()


def test_a_job_says_how_long_it_runs_and_may_change_its_mind() -> None:
    async def story(world: World) -> None:
        await world.create(saying(job("second", pods=1), time_limit="1:00:00", deadline="now+5h"))
        await world.create(job("third", pods=1, activeDeadlineSeconds=60))
        await world.settle()
        second = known(world, "second")
        assert (second.time_limit_ms, second.limit_from) == (HOUR, "request")
        assert second.deadline == second.created_at + 5 * HOUR
        third = known(world, "third")
        assert (third.time_limit_ms, third.limit_from) == (60_000, "job")
        await edit(
            world,
            names.JOB,
            "second",
            {"unisono.dev/time-limit": "2h", "unisono.dev/deadline": None},
        )
        assert (known(world, "second").time_limit_ms, known(world, "second").deadline) == (
            2 * HOUR,
            None,
        )

    play(story)


def test_what_cannot_be_read_holds_the_job_and_names_the_field() -> None:
    async def story(world: World) -> None:
        await world.create(saying(job("second", pods=1, gpus=1), begin="tomorrow"))
        await world.settle()
        reserved = find(workload(world, "second")["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert reserved["reason"] == "Misconfigured"
        assert 'metadata.annotations[unisono.dev/begin]: "tomorrow"' in reserved["message"]
        await edit(world, names.JOB, "second", {"unisono.dev/begin": "now+1h"})
        reserved = find(workload(world, "second")["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert "must not start before" in reserved["message"]

    play(story)


def test_a_queue_may_set_the_default_limit_of_its_workloads() -> None:
    async def story(world: World) -> None:
        await world.create(job("second", pods=1))
        await world.settle()
        assert known(world, "second").time_limit_ms is None
        await edit(world, names.CLUSTER_QUEUE, "cq", {"unisono.dev/default-time-limit": "2h"})
        assert known(world, "second").time_limit_ms == 2 * HOUR
        await edit(world, names.LOCAL_QUEUE, "lq-cq", {"unisono.dev/default-time-limit": "60"})
        assert known(world, "second").time_limit_ms == HOUR
        assert known(world, "second").limit_from == "queue"
        await edit(world, names.LOCAL_QUEUE, "lq-cq", {"unisono.dev/default-time-limit": None})
        assert known(world, "second").time_limit_ms == 2 * HOUR

    play(story)


def test_earlier_runs_teach_also_a_new_process() -> None:
    async def story(world: World) -> None:
        for number in range(3):
            await world.create(job(f"eval-{number}", pods=1, seconds=100 + number))
        await world.pass_time(2000)
        await world.create(job("again", pods=1, seconds=900))
        await world.settle()
        for _ in range(2):
            await world.create(job("eval-7", pods=1))
            await world.settle()
            found = known(world, "eval-7")
            assert found.limit_from == "history"
            assert found.time_limit_ms is not None
            assert 100_000 <= found.time_limit_ms <= 110_000
            await world.client.delete(names.JOB, "eval-7", "default")
            await world.settle()
            world.restart()
            await world.settle()

    play(story)
