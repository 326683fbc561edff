"""Workloads that grow by a slice which replaces them, and shrink in place, whatever made them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.control.scheduler.test_read_again import queue, reserved, runs, workload
from tests.support.control_objects import node
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.kinds.kueue.workload_rules import REPLACES
from unisono.kube.form import Json
from unisono.kube.mapping import Kind


def story(tell: Callable[[World], Awaitable[None]], *, nodes: bool = True) -> None:
    async def main() -> None:
        async with World().running() as world:
            await world.create(*([node("n1")] if nodes else []), *queue(cpu=10))
            await tell(world)

    asyncio.run(main())


def sets(workers: int, coordinators: int) -> list[Json]:
    def one(name: str, count: int, cpu: str) -> Json:
        template = workload("x", cpu=cpu)["spec"]["podSets"][0]["template"]
        return {"name": name, "count": count, "template": template}

    return [one("worker", workers, "1"), one("coordinator", coordinators, "2")]


def elastic(name: str, workers: int, coordinators: int, replaces: str = "") -> Json:
    made = workload(name)
    made["spec"]["podSets"] = sets(workers, coordinators)
    if replaces:
        made["metadata"]["annotations"] = {REPLACES: f"default/{replaces}"}
    return made


STATEFUL_SET = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        },
    },
}


async def total(world: World) -> str:
    await world.pass_time(30)
    return reserved(world)


@pytest.mark.parametrize("second", ["job-slice", "job-x7b2"])
@pytest.mark.parametrize("owned", [False, True], ids=["by hand", "StatefulSet"])
def test_a_slice_ends_what_it_replaces(second: str, owned: bool) -> None:
    async def tell(world: World) -> None:
        await world.create(STATEFUL_SET)
        made = await world.client.get(Kind("apps/v1", "StatefulSet"), "web", "default")
        uid = made["metadata"]["uid"]

        def own(obj: Json) -> Json:
            """Return a Workload, perhaps of a job of a kind that another controller knows."""
            owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": uid}
            if owned:
                obj["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
            return obj

        await world.create(own(elastic("job", 2, 1)))
        await world.settle()
        assert await total(world) == "4"
        await world.create(own(elastic(second, 2, 3, replaces="job")))
        await world.settle()
        assert await total(world) == "8"
        finished = find(
            world.get(names.WORKLOAD, "job", "default")["status"]["conditions"], "Finished"
        )
        assert finished is not None
        assert (finished["status"], finished["reason"]) == ("True", "WorkloadSliceReplaced")
        assert finished["message"].endswith("due to workload slice aggregation")
        assert any(
            note.reason == "WorkloadSliceReplaced" and note.about.name == "job"
            for note in world.notes
        )
        await world.create(workload("fills", cpu="2"), workload("waits", cpu="1"))
        await world.settle()
        assert runs(world) == sorted(["fills", "job", second])
        # and back, in place
        fewer = {"spec": {"podSets": sets(2, 2)}}
        await world.client.patch(names.WORKLOAD, second, "default", fewer)
        await world.settle()
        assert runs(world) == sorted(["fills", "job", second, "waits"])
        assert await total(world) == "9"
        world.restart()
        await world.settle()
        assert await total(world) == "9"
        third = own(elastic("job-third", 3, 2, replaces=second))
        await world.create(third)
        await world.settle()
        assert await total(world) == "10"
        await world.client.delete(names.WORKLOAD, second, "default")
        await world.settle()
        assert await total(world) == "10"

    story(tell)


def test_a_slice_without_room_leaves_the_first_as_it_is() -> None:
    async def tell(world: World) -> None:
        await world.create(elastic("job", 2, 1))
        await world.settle()
        await world.create(elastic("job-2", 2, 5, replaces="job"))
        await world.settle()
        assert runs(world) == ["job"]
        assert await total(world) == "4"
        first = world.get(names.WORKLOAD, "job", "default")["status"]["conditions"]
        assert find(first, "Finished") is None

    story(tell)


def test_fewer_pods_give_quota_and_nodes_back() -> None:
    async def tell(world: World) -> None:
        await world.create(elastic("job", 2, 4))
        await world.settle()
        await world.create(workload("waits", cpu="4"))
        await world.settle()
        assert runs(world) == ["job"]
        fewer = {"spec": {"podSets": sets(2, 2)}}
        await world.client.patch(names.WORKLOAD, "job", "default", fewer)
        await world.settle()
        assert runs(world) == ["job", "waits"]

    story(tell)
