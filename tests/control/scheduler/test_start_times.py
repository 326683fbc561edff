"""Dates on a living cluster: kept, told where people look, and not told more often than needed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.control.jobs.test_live_jobs import workload
from tests.control.scheduler.test_time_limits import saying
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, seconds
from unisono.engine.model.policy import Backfill, Policy
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.policy.settings import Settings
from unisono.kinds.views.objects import Conditions
from unisono.kube.form import Json

Story = Callable[[World], Coroutine[Any, Any, None]]
CONSERVATIVE = Settings(policy=Policy(backfill=Backfill()))


def play(story: Story, settings: Settings = CONSERVATIVE) -> None:
    """Run a story on a new cluster with sixteen GPUs."""

    async def run() -> None:
        async with simulated_world(settings=settings).running() as world:
            await world.create(node("n1"), node("n2"), *queue())
            await story(world)

    asyncio.run(run())


def limited(name: str, gpus: int, runs: int, limit: int, **more: Any) -> Json:
    """Return a job of one pod that says how long it runs."""
    made = job(name, pods=1, gpus=gpus, seconds=runs, **more)
    return saying(made, time_limit=f"{limit}s")


def start_of(world: World, name: str, fact: str) -> float | None:
    """Return the date or the estimate that a job's Workload has, in seconds."""
    told = find(workload(world, name).get("status", {}).get("conditions"), names.EXPLANATION)
    for one in json.loads(told["message"])["facts"] if told is not None else ():
        if one["fact"] == fact:
            return float(one["start"] / 1000)
    return None


def admitted_at(world: World, name: str) -> float:
    """Return when a job was admitted."""
    found = find(workload(world, name)["status"]["conditions"], "Admitted")
    assert found is not None
    assert found["status"] == "True"
    return seconds(found["lastTransitionTime"])


@pytest.mark.parametrize("seed", range(3))
def test_no_job_starts_later_than_any_reservation_it_had(seed: int) -> None:
    async def story(world: World) -> None:
        dice = random.Random(seed)
        dates: dict[str, float] = {}
        for place in range(14):
            runs = dice.randrange(20, 300)
            margin = dice.choice([15, 15, 200])  # pods take a moment to start and to end
            size = dice.choice([1, 2, 4, 8])
            await world.create(limited(f"j{place}", size, runs, runs + margin))
            await world.pass_time(dice.randrange(0, 30))
            for other in range(place + 1):
                date = start_of(world, f"j{other}", "Planned")
                if date is not None:
                    dates[f"j{other}"] = min(date, dates.get(f"j{other}", date))
        await world.pass_time(4000)
        assert dates, "no job had to wait"
        for name, date in dates.items():
            assert admitted_at(world, name) <= date, name

    play(story)


def test_a_date_is_told_with_limit_and_place_and_others_go_first_beside_it() -> None:
    async def story(world: World) -> None:
        await world.create(limited("first", 8, 500, 600))
        await world.settle()
        begun = admitted_at(world, "first")
        large = saying(job("large", pods=2, gpus=8), time_limit="10:00")
        await world.create(large, limited("long", 8, 900, 900), limited("short", 8, 100, 120))
        await world.settle()
        assert start_of(world, "large", "Planned") == begun + 600
        facts = json.loads(
            find(workload(world, "large")["status"]["conditions"], names.EXPLANATION)["message"]  # type: ignore[index]
        )["facts"]
        assert facts[0] | {"limit_ms": 600_000, "limit_from": "request"} == facts[0]
        reserved = find(workload(world, "large")["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert "starts by " in reserved["message"]
        assert admitted_at(world, "short") < begun + 60
        assert start_of(world, "long", "Planned") == begun + 1200

    play(story)


def test_dates_that_move_are_written_once_a_minute() -> None:
    async def story(world: World) -> None:
        await world.create(limited("first", 8, 2000, 3000), limited("second", 8, 2000, 3600))
        await world.create(priority("high", 10))
        await world.create(limited("waits", 8, 100, 120))
        await world.settle()

        def version() -> str:
            return str(workload(world, "waits")["metadata"]["resourceVersion"])

        before = version()
        for place in range(5):  # each of them moves its date
            await world.create(limited(f"urgent{place}", 8, 10, 120 + place, priority_class="high"))
            await world.pass_time(5)
        assert version() == before
        await world.pass_time(60)
        assert version() != before
        assert start_of(world, "waits", "Planned") is not None

    play(story)


def test_a_delayed_start_is_announced_before_it() -> None:
    """Two of one size, one date: the first is overtaken by one of higher priority."""

    async def story(world: World) -> None:
        await world.create(limited("first", 8, 35, 40), limited("second", 8, 2000, 3600))
        await world.create(priority("high", 10))
        await world.create(limited("waits", 8, 100, 120))
        await world.settle()
        told = start_of(world, "waits", "Planned")
        assert told is not None
        await world.create(limited("urgent", 8, 100, 200, priority_class="high"))
        await world.pass_time(20)
        assert start_of(world, "urgent", "Planned") == told
        assert start_of(world, "waits", "Planned") in (None, told + 200)

    play(story)
    play(story, Settings(policy=Policy(backfill=Backfill(dates=1))))


def test_without_backfill_there_are_estimates() -> None:
    async def story(world: World) -> None:
        await world.create(limited("first", 8, 500, 600), limited("second", 8, 500, 900))
        await world.settle()
        begun = admitted_at(world, "first")
        await world.create(limited("third", 8, 50, 100), job("silent", pods=1, gpus=8))
        await world.create(limited("fourth", 8, 50, 100))
        await world.pass_time(61)
        assert start_of(world, "third", "Planned") is None
        assert start_of(world, "third", "Expected") == begun + 600
        assert start_of(world, "silent", "Expected") == begun + 700
        conditions = workload(world, "third")["status"]["conditions"]
        reserved = find(conditions, "QuotaReserved")
        assert reserved is not None
        assert "(estimate)" in waiting_message(Conditions(conditions))
        assert reserved["reason"] == "WaitingForQuota"

    play(story, Settings())


def test_the_policy_is_changed_while_the_cluster_runs() -> None:
    async def story(world: World) -> None:
        await world.create(limited("first", 8, 500, 600))
        await world.settle()
        await world.create(saying(job("large", pods=2, gpus=8), time_limit="600s"))
        await world.settle()
        assert start_of(world, "large", "Planned") is None
        policy = {"apiVersion": "unisono.dev/v1", "kind": "Policy", "metadata": {"name": "unisono"}}
        await world.create({**policy, "backfill": {"dates": 1}})
        await world.pass_time(61)
        assert world.assembly.scheduler.state.policy.backfill == Backfill(dates=1)
        assert start_of(world, "large", "Planned") is not None
        await world.client.patch(names.POLICY, "unisono", "", {"backfill": {"dates": 0}})
        await world.settle()
        assert world.assembly.scheduler.state.policy.backfill == Backfill()
        await world.client.delete(names.POLICY, "unisono", "")
        await world.settle()
        assert world.assembly.scheduler.state.policy.backfill is None

    play(story, Settings())
