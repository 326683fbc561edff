"""Stories of orphaned NodeClaims: machines that boot for a gang that is gone, taken by the next."""

from __future__ import annotations

from tests.provision.stories import SEOUL, ready, started
from tests.support.control_objects import job, priority, queue
from tests.support.control_world import World
from tests.support.provisioning_world import bound, claims, cloud, condition, pool, told
from unisono.control import names
from unisono.kube.form import Json
from unisono.provision import keys


def machines_on_their_way_are_handed_over() -> None:
    """A gang of higher priority takes machines that boot for the first; none is bought again."""

    async def story(world: World) -> None:
        rules = {"withinClusterQueue": "LowerPriority"}
        await world.create(*queue(gpus=16, preemption=rules), priority("high", 10))
        # As many machines as there is quota: the second has none without those of the first.
        await world.create(pool(zones=SEOUL, limits={"nodes": "2"}))
        await world.create(job("first", pods=2, gpus=8, seconds=120))
        await world.pass_time(40)
        before = {one["metadata"]["name"] for one in claims(world)}
        assert len(before) == 2
        assert ready(world) == 0
        await world.create(job("second", pods=2, gpus=8, seconds=120, priority_class="high"))
        await world.pass_time(20)
        assert {one["metadata"]["name"] for one in claims(world)} == before
        assert all(holder_in(one).startswith("default/job-second") for one in claims(world))
        await world.pass_time(40)
        assert started(world, "second"), "as soon as the machines of the first are there"
        assert set(bound(world).values()) == before
        assert not started(world, "first")
        await world.pass_time(600)
        assert condition(world.get(names.JOB, "first"), "Complete")["status"] == "True"

    told(story)


def holder_in(claim: Json) -> str:
    """Return the workload that a machine is bought for."""
    return str(claim["metadata"]["annotations"].get(keys.HELD_FOR, ""))


def a_cancelled_purchase_leaves_its_machines_to_the_next() -> None:
    """A job is deleted while its machines boot, and sent again: it gets the same machines.

    What is not taken over goes after a minute.
    """

    async def story(world: World) -> None:
        await world.create(*queue(gpus=32), pool(zones=SEOUL))
        await world.create(job("typo", pods=3, gpus=8, seconds=60))
        await world.pass_time(20)
        before = {one["metadata"]["name"] for one in claims(world)}
        await world.client.delete(names.JOB, "typo", "default")
        await world.pass_time(10)
        assert {one["metadata"]["name"] for one in claims(world)} == before
        await world.create(job("right", pods=2, gpus=8, seconds=600))
        await world.pass_time(10)
        taken = {one["metadata"]["name"] for one in claims(world) if "job-right" in holder_in(one)}
        assert len(taken) == 2
        assert taken < before
        (workload,) = [one for one in world.every(names.WORKLOAD) if "right" in str(one)]
        assert "already being provisioned" in condition(workload, "CapacityPlanned")["message"]
        await world.pass_time(60)
        assert started(world, "right")
        assert {one["metadata"]["name"] for one in claims(world)} == taken
        assert condition(workload, "CapacityPlanned")["status"] == "True"

    told(story)


def what_was_launched_counts_when_the_rest_is_refused() -> None:
    """Two of three machines are launched; the rest comes as smaller ones, beside them."""

    async def story(world: World) -> None:
        types = ("g6e.48xlarge", "g6e.24xlarge")
        await world.create(*queue(gpus=24), pool(types=types, zones=SEOUL))
        await world.create(cloud(atomic=False, stock={"g6e.48xlarge": 2}))
        wishes = {"unisono.dev/packing": "FewestNodes"}
        made = job("train", pods=6, gpus=4, seconds=600)
        made["metadata"].setdefault("annotations", {}).update(wishes)
        await world.create(made)
        await world.settle()
        before = {one["metadata"]["name"] for one in claims(world)}
        assert len(before) == 3
        await world.pass_time(20)
        after = claims(world)
        assert len(after) == 4, "two large ones that were launched, and two small ones"
        assert len(before & {one["metadata"]["name"] for one in after}) == 2
        assert bound(world) == {}
        await world.pass_time(120)
        assert started(world, "train")

    told(story)
