"""What queues say about themselves while jobs wait, run and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from tests.support.control_objects import GPU, KUEUE, job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.engine.model.policy import FairSharing, Policy
from unisono.kinds.policy.settings import DEFAULTS
from unisono.kube.form import Json

Story = Callable[[World], Coroutine[Any, Any, None]]


def play(story: Story, world: World | None = None) -> None:
    """Run a story on a new cluster in which pods stay where they are put."""

    async def run() -> None:
        async with (world or World()).running() as running:
            await story(running)

    asyncio.run(run())


def counts(obj: Json) -> tuple[int, int, int]:
    """Return how many wait, reserve and are admitted."""
    status = obj["status"]
    return tuple(status[f"{word}Workloads"] for word in ("pending", "reserving", "admitted"))


def gpus(obj: Json, field: str = "flavorsUsage") -> Json:
    """Return what the status says about GPUs of the only flavor."""
    (flavor,) = obj["status"][field]
    return next(one for one in flavor["resources"] if one["name"] == GPU)


def active(obj: Json) -> tuple[str, str]:
    """Return status and reason of the condition Active."""
    found = find(obj["status"]["conditions"], "Active")
    assert found is not None
    return found["status"], found["reason"]


def test_counts_and_usage_follow_the_workloads() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), node("n2"), *queue())
        await world.pass_time(2)
        assert counts(world.get(names.CLUSTER_QUEUE, "cq")) == (0, 0, 0)
        assert gpus(world.get(names.CLUSTER_QUEUE, "cq")) == {
            "name": GPU,
            "total": "0",
            "borrowed": "0",
        }
        await world.create(job("first", pods=1), job("second"))
        await world.pass_time(2)
        for kind, name in ((names.CLUSTER_QUEUE, "cq"), (names.LOCAL_QUEUE, "lq-cq")):
            found = world.get(kind, name)
            assert counts(found) == (1, 1, 1)
            assert gpus(found)["total"] == gpus(found, "flavorsReservation")["total"] == "8"
            assert active(found) == ("True", "Ready")
        await world.client.delete(names.JOB, "second", "default")
        await world.pass_time(2)
        assert counts(world.get(names.CLUSTER_QUEUE, "cq")) == (0, 1, 1)

    play(story)


def test_a_restart_finds_the_same_numbers_and_writes_nothing() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("first", pods=1), job("second"))
        await world.pass_time(2)
        before = [world.get(names.CLUSTER_QUEUE, "cq"), world.get(names.LOCAL_QUEUE, "lq-cq")]
        world.restart()
        await world.pass_time(2)
        after = [world.get(names.CLUSTER_QUEUE, "cq"), world.get(names.LOCAL_QUEUE, "lq-cq")]
        assert before == after
        assert counts(after[0]) == (1, 1, 1)

    play(story)


def test_a_burst_of_changes_is_one_write_a_second() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1", gpus=1), *queue())
        await world.pass_time(2)
        first = int(world.get(names.LOCAL_QUEUE, "lq-cq")["metadata"]["resourceVersion"])
        versions = set()
        for number in range(20):
            await world.client.create(job(f"j{number}"))
            await world.settle()
            versions.add(int(world.get(names.LOCAL_QUEUE, "lq-cq")["metadata"]["resourceVersion"]))
        assert len(versions) == 1, "time stood still, so there was one write"
        assert versions.pop() > first
        await world.pass_time(2)
        assert counts(world.get(names.LOCAL_QUEUE, "lq-cq")) == (20, 0, 0)

    play(story)


def test_a_queue_says_what_it_lacks_and_opens_when_it_comes() -> None:
    async def story(world: World) -> None:
        flavor, cluster_queue, local_queue = queue()
        await world.create(local_queue)
        await world.pass_time(2)
        assert active(world.get(names.LOCAL_QUEUE, "lq-cq")) == (
            "False",
            "ClusterQueueDoesNotExist",
        )
        await world.create(cluster_queue)
        await world.pass_time(2)
        found = world.get(names.CLUSTER_QUEUE, "cq")
        assert active(found) == ("False", "FlavorNotFound")
        message = "Can't admit new workloads: references missing ResourceFlavor(s): f."
        assert found["status"]["conditions"][0]["message"] == message
        assert active(world.get(names.LOCAL_QUEUE, "lq-cq")) == ("False", "ClusterQueueIsInactive")
        await world.create(flavor)
        await world.pass_time(3)
        assert active(world.get(names.CLUSTER_QUEUE, "cq")) == ("True", "Ready")
        assert active(world.get(names.LOCAL_QUEUE, "lq-cq")) == ("True", "Ready")

    play(story)


@pytest.mark.parametrize(
    ("kind", "name"), [(names.CLUSTER_QUEUE, "cq"), (names.LOCAL_QUEUE, "lq-cq")]
)
def test_a_stopped_queue_says_so(kind: Any, name: str) -> None:
    async def story(world: World) -> None:
        await world.create(*queue())
        await world.settle()
        space = "default" if kind == names.LOCAL_QUEUE else ""
        await world.client.patch(kind, name, space, {"spec": {"stopPolicy": "Hold"}})
        await world.pass_time(3)
        assert active(world.get(kind, name)) == ("False", "Stopped")
        await world.client.patch(kind, name, space, {"spec": {"stopPolicy": "None"}})
        await world.pass_time(3)
        assert active(world.get(kind, name)) == ("True", "Ready")

    play(story)


def test_workloads_that_came_before_their_local_queue_count_when_it_comes() -> None:
    async def story(world: World) -> None:
        flavor, cluster_queue, local_queue = queue()
        await world.create(node("n1", gpus=1), flavor, cluster_queue, job("early"))
        await world.pass_time(2)
        assert counts(world.get(names.CLUSTER_QUEUE, "cq")) == (0, 0, 0)
        await world.create(local_queue)
        await world.pass_time(2)
        assert counts(world.get(names.CLUSTER_QUEUE, "cq")) == (1, 0, 0)
        await world.client.delete(names.LOCAL_QUEUE, "lq-cq", "default")
        await world.pass_time(2)
        assert counts(world.get(names.CLUSTER_QUEUE, "cq")) == (0, 0, 0)

    play(story)


def test_shares_are_written_when_shares_are_fair() -> None:
    async def story(world: World) -> None:
        lender, borrower = queue("lender", 8), queue("borrower", 8)
        cohort = {"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": "all"}, "spec": {}}
        for one in (lender[1], borrower[1]):
            one["spec"]["cohortName"] = "all"
        await world.create(cohort, node("n1"), node("n2"), *lender, *borrower[1:])
        await world.create(job("big", queue_name="lq-borrower"))
        await world.pass_time(3)
        found = world.get(names.CLUSTER_QUEUE, "borrower")
        assert gpus(found)["borrowed"] == "8"
        assert found["status"]["fairSharing"]["weightedShare"] == 500, "8 of 16 that can be lent"
        other = world.get(names.CLUSTER_QUEUE, "lender")["status"]
        assert other["fairSharing"]["weightedShare"] == 0
        assert world.get(names.COHORT, "all")["status"]["fairSharing"]["weightedShare"] == 0

    policy = Policy(fair_sharing=FairSharing())
    play(story, World(settings=msgspec.structs.replace(DEFAULTS, policy=policy)))
