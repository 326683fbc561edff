"""Machines that are bought for gangs, on a living cluster in virtual time."""

from __future__ import annotations

from tests.support.control_objects import job, queue
from tests.support.control_world import World
from tests.support.provisioning_world import (
    bound,
    claims,
    cloud,
    condition,
    nodes,
    only_workload,
    pool,
    told,
)
from unisono.control import names


def test_a_gang_starts_when_the_last_machine_is_ready_and_machines_go_afterwards() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), pool(disruption={"consolidateAfter": "60s"}))
        await world.create(job("train", pods=2, gpus=8, seconds=30))
        await world.settle()
        workload = only_workload(world)
        assert condition(workload, "QuotaReserved")["status"] == "True"
        assert condition(workload, "Admitted")["status"] == "False"
        assert (
            "2 × g6e.48xlarge on-demand in ap-northeast-2a for $74.09/h"
            in (condition(workload, names.CAPACITY_PLANNED)["message"])
        )
        assert len(claims(world)) == 2
        assert bound(world) == {}
        await world.pass_time(70)
        assert len(nodes(world)) == 2
        assert bound(world) == {}, "their GPUs are not there yet"
        await world.pass_time(30)
        assert len(set(bound(world).values())) == 2
        assert sorted(bound(world).values()) == sorted(nodes(world))
        await world.pass_time(60)
        assert condition(world.get(names.JOB, "train"), "Complete")["status"] == "True"
        assert len(claims(world)) == 2
        await world.pass_time(300)
        assert claims(world) == []
        assert nodes(world) == []

    told(story)


def test_out_of_stock_everywhere_nothing_starts_and_nothing_stays() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), pool(zones=("ap-northeast-2a",)))
        await world.create(cloud(stock={"g6e.48xlarge:ap-northeast-2a": 1}))
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        assert len(claims(world)) == 2
        await world.pass_time(20)
        assert claims(world) == []
        assert nodes(world) == []
        workload = only_workload(world)
        assert condition(workload, "QuotaReserved")["status"] == "False"
        told_why = condition(workload, "QuotaReserved")["message"]
        assert "StockOut" in told_why
        assert "$74.09/h" in told_why

    told(story)


def test_a_gang_that_runs_is_protected_by_its_pods_and_not_by_its_claims() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool())
        movable = job("movable", pods=2, gpus=8, seconds=600)
        movable["metadata"]["annotations"] = {"unisono.dev/disruptable": "true"}
        await world.create(job("train", pods=2, gpus=8, seconds=600), movable)
        await world.settle()
        assert all(names.DO_NOT_DISRUPT in one["metadata"]["annotations"] for one in claims(world))
        await world.pass_time(120)
        assert len(bound(world)) == 4
        assert not any(
            names.DO_NOT_DISRUPT in one["metadata"]["annotations"] for one in claims(world)
        )
        protected = {
            pod["metadata"]["name"].partition("-")[0]
            for pod in world.every(names.POD)
            if names.DO_NOT_DISRUPT in pod["metadata"]["annotations"]
        }
        assert protected == {"train"}

    told(story)


def test_late_machines_are_called_late_and_no_past_time_is_promised() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), pool(), cloud(failures={"register": 1}))
        await world.create(job("train", pods=2, gpus=8))
        await world.settle()
        message = condition(only_workload(world), names.CAPACITY_PLANNED)["message"]
        assert "0/2 machines ready, about 20" in message
        await world.pass_time(240)
        message = condition(only_workload(world), names.CAPACITY_PLANNED)["message"]
        assert "0/2 machines ready; late, expected at 20" in message
        assert ", given up at 20" in message

    told(story)
