"""What an eviction writes beside its condition, and what becomes of that: Kueue's requeues.

The owners here are of a kind that we do not know, so the test plays their controller, which gives
the quota back later, or never.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.control.scheduler.test_read_again import queue, runs, workload
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import KUEUE, job, node
from tests.support.control_objects import queue as gpu_queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, is_true, with_condition
from unisono.kinds.policy.settings import Settings, settings_from
from unisono.kube.form import Json

_TIMEOUT_S = 10


def patient(**strategy: Any) -> Settings:
    """Return settings by which pods have ten seconds to become ready."""
    return settings_from(
        {
            "apiVersion": "unisono.dev/v1alpha1",
            "kind": "Policy",
            "metadata": {"name": "policy"},
            "waitForPodsReady": {
                "timeout": f"{_TIMEOUT_S}s",
                "blockAdmission": False,
                "requeuingStrategy": {"backoffBaseSeconds": 4, **strategy},
            },
        }
    )


def story(tell: Callable[[World], Awaitable[None]], settings: Settings | None = None) -> None:
    async def main() -> None:
        world = World(settings=settings) if settings is not None else World()
        async with world.running():
            await world.create(node("n1"))
            await tell(world)

    asyncio.run(main())


def owned(world: World, name: str, cpu: str = "1") -> Json:
    """Return a Workload whose job is of a kind that is not ours."""
    made = workload(name, cpu=cpu)
    owner = world.get(names.NAMESPACE, "default", "")
    made["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "name": "default",
            "uid": owner["metadata"]["uid"],
            "controller": True,
        }
    ]
    return made


def checked(*checks: str, cpu: int = 5) -> list[Json]:
    """Return a queue with checks of controllers that are not ours."""
    made = queue(cpu=cpu)
    made[1]["spec"]["admissionChecksStrategy"] = {
        "admissionChecks": [{"name": name} for name in checks]
    }
    return made


async def with_checks(world: World, *checks: str) -> None:
    """Create the checks, each active, and their queue."""
    for name in checks:
        check = {"apiVersion": KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}}
        await world.create({**check, "spec": {"controllerName": "example.com/other"}})
        active = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
        active["lastTransitionTime"] = "2023-11-14T00:00:00Z"
        await world.set_status(names.ADMISSION_CHECK, name, {"conditions": [active]}, "")
    await world.create(*checked(*checks))
    await world.settle()


def status(world: World, name: str) -> Json:
    return dict(world.get(names.WORKLOAD, name).get("status") or {})


def checks(world: World, name: str) -> dict[str, Json]:
    return {one["name"]: one for one in status(world, name).get("admissionChecks") or ()}


async def say(world: World, name: str, **states: Json) -> None:
    """Have controllers of checks say something, as they do: with everything that was there."""
    said = [{**one, **states.get(one["name"], {})} for one in checks(world, name).values()]
    await world.set_status(names.WORKLOAD, name, {"admissionChecks": said})
    await world.settle()


async def give_back(world: World, name: str, *, leaves_admission: bool = False) -> None:
    """Release the quota, as the controller of a foreign job does.

    One that applies with a manager of its own cannot remove what we wrote: `admission` stays.
    """
    conditions = [
        {**one, "status": "False", "reason": "Pending"} if one["type"] == "QuotaReserved" else one
        for one in status(world, name)["conditions"]
    ]
    changes: Json = {"conditions": conditions}
    if not leaves_admission:
        changes["admission"] = None
    await world.set_status(names.WORKLOAD, name, changes)
    await world.settle()


def test_an_eviction_resets_the_checks_at_once() -> None:
    async def tell(world: World) -> None:
        await with_checks(world, "a", "b", "c")
        await world.create(owned(world, "one"))
        await world.settle()
        await say(world, "one", a={"state": "Ready", "message": "yes"})
        retry = {"state": "Retry", "message": "later", "requeueAfterSeconds": 30}
        await say(world, "one", b=retry)
        assert is_true(status(world, "one")["conditions"], "Evicted")
        assert status(world, "one")["admission"], "its owner has not given the quota back"
        found = checks(world, "one")
        assert {name: one["state"] for name, one in found.items()} == dict.fromkeys(
            "abc", "Pending"
        )
        assert found["b"]["retryCount"] == 1
        assert found["b"]["requeueAfterSeconds"] == 30
        assert found["b"]["message"] == "Reset to Pending after eviction. Previously: Retry"
        assert found["a"]["message"] == "Reset to Pending after eviction. Previously: Ready"
        assert "retryCount" not in found["a"]
        assert found["c"]["message"] == "", "it was Pending already"
        assert status(world, "one")["requeueState"] == {"requeueAt": "2023-11-14T22:14:00Z"} or (
            "count" not in status(world, "one")["requeueState"]
        )

    story(tell)


def test_retries_are_counted_over_admissions_and_the_pause_is_kept() -> None:
    async def tell(world: World) -> None:
        await with_checks(world, "a")
        await world.create(owned(world, "one"))
        await world.settle()
        await say(world, "one", a={"state": "Retry", "message": "once more"})
        await give_back(world, "one")
        await world.pass_time(1)
        assert runs(world) == ["one"]
        assert status(world, "one").get("requeueState") is None
        assert checks(world, "one")["a"]["retryCount"] == 1
        await say(world, "one", a={"state": "Retry", "requeueAfterSeconds": 20})
        await give_back(world, "one")
        assert checks(world, "one")["a"]["retryCount"] == 2
        assert "requeueAt" in status(world, "one")["requeueState"]
        await world.pass_time(15)
        assert runs(world) == []
        await world.pass_time(10)
        assert runs(world) == ["one"]
        assert not (status(world, "one").get("requeueState") or {}).get("requeueAt")
        await say(world, "one", a={"state": "Ready", "message": "now"})
        assert is_true(status(world, "one")["conditions"], "Admitted")
        assert checks(world, "one")["a"]["retryCount"] == 2

    story(tell)


def test_a_backoff_that_is_over_is_written_so_and_the_count_stays() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=1), owned(world, "one"))
        await world.settle()
        await world.pass_time(_TIMEOUT_S + 1)
        evicted = status(world, "one")
        assert evicted["requeueState"]["count"] == 1
        assert "requeueAt" in evicted["requeueState"]
        await give_back(world, "one")
        await world.create(owned(world, "two"))
        await world.settle()
        assert runs(world) == ["two"], "the first one has to wait"
        await world.pass_time(6)
        assert runs(world) == ["two"]
        assert status(world, "one")["requeueState"] == {"count": 1}, "its backoff is over"

    story(tell, patient())


def test_with_a_job_of_ours_requeued_tells_when_the_backoff_is_over() -> None:
    async def main() -> None:
        world = simulated_world(settings=patient(backoffBaseSeconds=40))
        async with world.running():
            slow = job("train", pods=1, gpus=1, seconds=600)
            template = slow["spec"]["template"].setdefault("metadata", {})
            template.setdefault("annotations", {})["unisono.dev/ready-seconds"] = "500"
            await world.create(node("n1"), *gpu_queue(gpus=1), slow)
            await world.pass_time(_TIMEOUT_S + 35)

            def requeued() -> tuple[str, str]:
                [made] = world.every(names.WORKLOAD)
                found = find(made["status"]["conditions"], "Requeued")
                return ("", "") if found is None else (found["status"], found["reason"])

            assert requeued() == ("False", "PodsReadyTimeout")
            [made] = world.every(names.WORKLOAD)
            assert made["status"]["requeueState"]["count"] == 1
            assert not is_true(made["status"]["conditions"], "QuotaReserved")
            await world.pass_time(10)
            assert requeued() == ("True", "BackoffFinished")
            [made] = world.every(names.WORKLOAD)
            assert made["status"]["requeueState"] == {"count": 1}
            assert is_true(made["status"]["conditions"], "QuotaReserved")

    asyncio.run(main())


def test_an_admission_that_a_foreign_controller_could_not_remove_is_taken_off() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=1), owned(world, "one"))
        await world.settle()
        await world.pass_time(_TIMEOUT_S + 1)
        await give_back(world, "one", leaves_admission=True)
        assert status(world, "one").get("admission") is None
        await world.create(owned(world, "two"))
        await world.settle()
        assert runs(world) == ["two"]
        await world.pass_time(6)
        assert status(world, "one")["requeueState"] == {"count": 1}

    story(tell, patient())


@pytest.mark.parametrize("is_on_hold", [False, True])
def test_a_backoff_ends_while_quota_is_held_only_with_a_hold(is_on_hold: bool) -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=1), owned(world, "one"))
        await world.settle()
        await world.pass_time(_TIMEOUT_S + 1)
        if is_on_hold:  # its controller said so, and has not given the quota back yet
            conditions = with_condition(
                status(world, "one")["conditions"],
                "Requeued",
                "False",
                "PodsReadyTimeout",
                "",
                now=world.clock.time,
            )
            await world.set_status(names.WORKLOAD, "one", {"conditions": conditions})
        await world.pass_time(6)
        assert status(world, "one")["admission"]
        assert ("requeueAt" in status(world, "one")["requeueState"]) is not is_on_hold
        assert status(world, "one")["requeueState"]["count"] == 1

    story(tell, patient())


@pytest.mark.parametrize("is_pending", [False, True])
def test_a_deactivated_workload_forgets_its_requeues(is_pending: bool) -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=1), owned(world, "one"))
        await world.settle()
        await world.pass_time(_TIMEOUT_S + 1)
        if is_pending:
            await give_back(world, "one")
        assert status(world, "one")["requeueState"]["count"] == 1
        await world.client.patch(names.WORKLOAD, "one", "default", {"spec": {"active": False}})
        await world.settle()
        assert status(world, "one").get("requeueState") is None

    story(tell, patient())


def test_one_too_many_timeouts_say_so_in_kueue_s_words() -> None:
    async def tell(world: World) -> None:
        await world.create(*queue(cpu=1), owned(world, "one"))
        await world.settle()
        await world.pass_time(_TIMEOUT_S + 1)
        evicted = find(status(world, "one")["conditions"], "Evicted")
        assert evicted is not None
        assert evicted["reason"] == "DeactivatedDueToRequeuingLimitExceeded"
        assert status(world, "one").get("requeueState") is None
        assert status(world, "one")["schedulingStats"]["evictions"] == [
            {"reason": "Deactivated", "underlyingCause": "RequeuingLimitExceeded", "count": 1}
        ]
        assert world.get(names.WORKLOAD, "one")["spec"]["active"] is False
        await give_back(world, "one")
        await world.client.patch(names.WORKLOAD, "one", "default", {"spec": {"active": True}})
        await world.settle()
        assert runs(world) == ["one"]

    story(tell, patient(backoffLimitCount=0))


def test_a_rejection_and_a_time_limit_name_their_cause() -> None:
    async def tell(world: World) -> None:
        await with_checks(world, "a")
        limited = owned(world, "limited")
        limited["spec"]["maximumExecutionTimeSeconds"] = 30
        await world.create(owned(world, "rejected"), limited)
        await world.settle()
        await say(world, "rejected", a={"state": "Rejected", "message": "never"})
        await say(world, "limited", a={"state": "Ready", "message": ""})
        await world.pass_time(31)
        for name, cause in (
            ("rejected", "AdmissionCheck"),
            ("limited", "MaximumExecutionTimeExceeded"),
        ):
            evicted = find(status(world, name)["conditions"], "Evicted")
            assert evicted is not None
            assert evicted["reason"] == f"DeactivatedDueTo{cause}"
            [counted] = status(world, name)["schedulingStats"]["evictions"]
            assert counted == {"reason": "Deactivated", "underlyingCause": cause, "count": 1}
            assert "retryCount" not in checks(world, name)["a"]

    story(tell)
