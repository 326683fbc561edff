"""Gangs leave a GPU that broke (monitoring §10, 6; jobs §9, 21)."""

from __future__ import annotations

from tests.control.training_world import (
    World,
    conditions,
    events,
    gpu_node,
    places,
    play,
    queues,
    status,
    train_job,
)
from unisono.control import names
from unisono.control.conditions import timestamp


async def breaks(world: World, node: str, reason: str) -> None:
    problem = {
        "type": "GPUProblem",
        "status": "True",
        "reason": reason,
        "message": "",
        "lastTransitionTime": timestamp(world.clock.now()),
    }
    old = world.get(names.NODE, node)["status"]["conditions"]
    await world.set_status(names.NODE, node, {"conditions": [*old, problem]})
    await world.settle()


async def started(world: World, nodes: int, gpus: int = 8) -> dict[str, str]:
    made = [gpu_node(f"n{number}") for number in range(1, nodes + 1)]
    await world.create(*made, *queues(gpus=64), train_job(nodes=4, gpus=gpus))
    await world.settle()
    return places(world)


def test_a_gang_with_all_gpus_of_a_broken_node_starts_again_without_it() -> None:
    async def story(world: World) -> None:
        before = await started(world, nodes=5)
        (spare,) = {f"n{number}" for number in range(1, 6)} - set(before.values())
        host = next(name for name, node in before.items() if node == "n2")
        await breaks(world, "n2", "Xid79")
        await world.pass_time(5)
        assert places(world) == before  # it may end by itself, and say more
        await world.pass_time(60)
        assert places(world) == {**before, host: spare}
        counted = status(world, names.JOB_SET, "t")
        assert (counted["restarts"], counted["restartsCountTowardsMax"]) == (1, 0)
        (told,) = events(world, "GangMoves")
        assert "a GPU of node n2 is broken (Xid79)" in told
        (workload,) = world.every(names.WORKLOAD)
        assert "Evicted" not in conditions(world, names.WORKLOAD, workload["metadata"]["name"])

    play(story)


def test_an_application_error_moves_no_gang() -> None:
    async def story(world: World) -> None:
        before = await started(world, nodes=5)
        await breaks(world, "n2", "Xid31")
        await world.pass_time(300)
        assert places(world) == before
        assert not world.get(names.NODE, "n2")["spec"].get("taints")

    play(story)


def test_it_stays_while_there_is_no_other_node() -> None:
    async def story(world: World) -> None:
        before = await started(world, nodes=4)
        await breaks(world, "n2", "Xid79")
        await world.pass_time(600)
        assert places(world) == before
        await world.create(gpu_node("n5"))
        await world.pass_time(120)
        assert "n2" not in places(world).values()
        assert len(places(world)) == 4

    play(story)


def test_a_pod_with_some_gpus_of_a_node_may_use_healthy_ones() -> None:
    async def story(world: World) -> None:
        before = await started(world, nodes=5, gpus=4)
        await breaks(world, next(iter(before.values())), "Xid79")
        await world.pass_time(300)
        assert places(world) == before

    play(story)
