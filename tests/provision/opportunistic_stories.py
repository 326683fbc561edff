"""Stories of nodes held while a gang's machines come, and of opportunistic jobs on them."""

from __future__ import annotations

from tests.provision.stories import SEOUL, ZONE, started
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from tests.support.provisioning_world import bound, claims, cloud, condition, pool, told
from unisono.control import names
from unisono.kube.form import Json


def short_job(name: str, *, gpus: int = 8, seconds: int, minutes: int) -> Json:
    """Return a job of one pod that says how long it runs."""
    made = job(name, pods=1, gpus=gpus, seconds=seconds)
    made["metadata"]["annotations"] = {"unisono.dev/time-limit": str(minutes)}
    return made


async def a_gang_of_four(world: World) -> None:
    """Two nodes are there, and two machines are bought: they are expected after 150 seconds."""
    await world.create(
        *queue(gpus=48), pool(zones=SEOUL, types=("g6e.48xlarge",), limits={"nodes": 2})
    )
    await world.create(cloud(latency={"boot": "115s"}))
    for name in ("mine-1", "mine-2"):
        mine = node(name)
        mine["metadata"]["labels"] |= {ZONE: SEOUL[0], "nvidia.com/gpu.product": "NVIDIA-L40S"}
        await world.create(mine)
    await world.create(job("gang", pods=4, gpus=8, seconds=600))
    await world.pass_time(5)
    assert len(claims(world)) == 2
    assert bound(world) == {}


def short_jobs_use_nodes_that_are_kept() -> None:
    """One that is over in time runs on a node that is kept; one that is not does not."""

    async def story(world: World) -> None:
        await a_gang_of_four(world)
        await world.create(short_job("long", seconds=250, minutes=5))
        await world.create(job("unsaid", pods=1, gpus=8, seconds=10))
        await world.create(short_job("short", seconds=100, minutes=2))
        await world.pass_time(5)
        assert started(world, "short")
        assert not started(world, "long")
        assert not started(world, "unsaid")
        assert not started(world, "gang")
        (waits,) = [one for one in world.every(names.WORKLOAD) if "long" in one["metadata"]["name"]]
        told_why = condition(waits, "QuotaReserved")["message"]
        assert "would delay default/job-gang" in told_why, told_why
        await world.pass_time(125)
        assert condition(world.get(names.JOB, "short"), "Complete")["status"] == "True"
        await world.pass_time(40)
        assert started(world, "gang"), "it starts as if the nodes had been free"

    told(story)


def opportunistic_jobs_are_evicted_when_the_gang_can_start() -> None:
    """Machines come sooner than expected: the short job leaves, and runs again later."""

    async def story(world: World) -> None:
        await a_gang_of_four(world)
        await world.create(short_job("short", seconds=115, minutes=2))
        await world.pass_time(10)
        assert started(world, "short")
        sooner = {"data": cloud(latency={"boot": "20s"})["data"]}
        await world.client.patch(names.CONFIG_MAP, "unisono-cloud", "kube-system", sooner)
        for _ in range(12):
            await world.pass_time(10)
            on = list(bound(world).values())
            assert len(on) == len(set(on)), "no two share a node, not for a moment"
            if started(world, "gang"):
                break
        assert started(world, "gang")
        (guest,) = [
            one for one in world.every(names.WORKLOAD) if "short" in one["metadata"]["name"]
        ]
        assert condition(guest, "Preempted")["status"] == ""
        await world.pass_time(900)
        assert condition(world.get(names.JOB, "short"), "Complete")["status"] == "True"

    told(story)


def a_gang_that_gets_no_machines_leaves_its_nodes_to_its_guests() -> None:
    """A purchase fails while a job is on the nodes that were kept: it stays there."""

    async def story(world: World) -> None:
        await a_gang_of_four(world)
        await world.create(short_job("short", seconds=100, minutes=2))
        await world.pass_time(10)
        assert started(world, "short")
        await world.client.delete(names.NODE_CLAIM, claims(world)[0]["metadata"]["name"], "")
        await world.pass_time(20)
        assert started(world, "short")
        assert not started(world, "gang")
        await world.pass_time(400)
        assert condition(world.get(names.JOB, "short"), "Complete")["status"] == "True"
        assert started(world, "gang")

    told(story)
