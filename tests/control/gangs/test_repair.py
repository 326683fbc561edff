"""A running gang that loses nodes gets others, and keeps everything else (jobs §9, 19 and 20)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.control.training_world import (
    Json,
    World,
    conditions,
    events,
    gpu_node,
    places,
    play,
    queues,
    state,
    status,
    train_job,
)
from tests.support.control_objects import job
from unisono.control import names
from unisono.control.conditions import find, timestamp

NODES = [gpu_node(f"n{number}") for number in range(1, 4)]
WHOLE = {"t-node-0-0": "n1", "t-node-0-1": "n2", "t-node-0-2": "n3"}


async def started(world: World, **more: Any) -> None:
    await world.create(*NODES, *queues(gpus=24), train_job(nodes=3, **more))
    await world.settle()
    assert places(world) == WHOLE


async def lose(world: World, *nodes: str, comes_back: bool = False) -> None:
    condition = {
        "type": "Ready",
        "status": "True" if comes_back else "Unknown",
        "reason": "KubeletReady" if comes_back else "NodeStatusUnknown",
        "message": "",
        "lastTransitionTime": timestamp(world.clock.now()),
    }
    for name in nodes:
        await world.set_status(names.NODE, name, {"conditions": [condition]})
    await world.settle()


def the_workload(world: World) -> Json:
    return next(
        one
        for one in world.every(names.WORKLOAD)
        if one["metadata"]["name"].startswith("trainjob-t-")
    )


def record(world: World) -> tuple[str, str]:
    found = find(the_workload(world)["status"]["conditions"], names.PLACEMENT)
    assert found is not None
    return found["reason"], found["message"].split()[0]


def test_a_lost_node_is_replaced_and_all_start_again_at_once() -> None:
    async def story(world: World) -> None:
        await started(world)
        await world.create(gpu_node("n4"))
        await lose(world, "n2")
        await world.pass_time(30)
        assert places(world) == {**WHOLE, "t-node-0-1": "n4"}
        counted = status(world, names.JOB_SET, "t")
        assert (counted["restarts"], counted["restartsCountTowardsMax"]) == (1, 0)
        said = conditions(world, names.WORKLOAD, the_workload(world)["metadata"]["name"])
        assert said["QuotaReserved"][0] == "True"
        assert "Evicted" not in said
        assert record(world) == ("Committed", "gen=2")
        assert events(world, "GangRepaired") == ["n2 replaced by n4"]
        assert not the_workload(world)["status"].get("unhealthyNodes")

    play(story)


def test_several_lost_nodes_are_one_incident() -> None:
    async def story(world: World) -> None:
        await started(world)
        await world.create(gpu_node("n4"), gpu_node("n5"))
        await lose(world, "n1", "n3")
        await world.pass_time(30)
        assert places(world) == {"t-node-0-0": "n4", "t-node-0-1": "n2", "t-node-0-2": "n5"}
        assert status(world, names.JOB_SET, "t")["restarts"] == 1

    play(story)


def test_without_a_spare_node_it_keeps_what_it_has_until_one_joins() -> None:
    async def story(world: World) -> None:
        await started(world)
        await lose(world, "n2")
        await world.pass_time(60)
        assert record(world)[0] == "Repairing"
        assert the_workload(world)["status"]["unhealthyNodes"] == [{"name": "n2"}]
        assert places(world) == {}  # half a gang is worth nothing
        await world.create(train_job("small", nodes=1))  # it must not take what is kept
        await world.pass_time(300)
        assert places(world) == {}
        await world.create(gpu_node("n4"))
        await world.pass_time(30)
        assert places(world) == {**WHOLE, "t-node-0-1": "n4"}

    play(story)


@pytest.mark.parametrize(("says", "seconds"), [({}, 600), ({"recovery-timeout": "2m"}, 120)])
def test_in_the_end_it_queues_again_at_its_old_place(says: dict[str, str], seconds: int) -> None:
    async def story(world: World) -> None:
        annotations = {f"unisono.dev/{key}": text for key, text in says.items()}
        await started(world, annotations=annotations)
        await world.create(train_job("later", nodes=3))
        await lose(world, "n2")
        await world.pass_time(seconds - 30)
        assert record(world)[0] == "Repairing"
        await world.pass_time(60)
        evicted = find(the_workload(world)["status"]["conditions"], "Evicted")
        assert evicted is not None
        assert evicted["reason"] == "NodeFailures"
        await world.create(gpu_node("n4"))
        await world.pass_time(30)
        assert sorted(places(world)) == sorted(WHOLE)
        assert state(world, "t") == "Running"

    play(story)


def test_a_node_that_comes_back_is_taken_again_when_it_has_stayed_for_a_minute() -> None:
    async def story(world: World) -> None:
        await started(world)
        await lose(world, "n2")
        await world.pass_time(60)
        await lose(world, "n2", comes_back=True)
        await world.pass_time(30)
        assert places(world) == {}
        await world.pass_time(31)
        assert places(world) == WHOLE

    play(story)


def test_a_gang_that_restarts_does_not_go_back_to_a_cordoned_node() -> None:
    async def story(world: World) -> None:
        await started(world)
        await world.create(gpu_node("n4"))
        await world.client.patch(names.NODE, "n1", "", {"spec": {"unschedulable": True}})
        await world.settle()
        assert places(world) == WHOLE  # running pods stay
        first = next(
            one for one in world.every(names.POD) if one["spec"]["hostname"] == "t-node-0-0"
        )
        await world.client.delete(names.POD, first["metadata"]["name"], "default")
        await world.pass_time(60)
        assert places(world) == {**WHOLE, "t-node-0-0": "n4"}

    play(story)


@pytest.mark.parametrize("at", [0, 3])
def test_a_crash_in_between_changes_nothing(at: int) -> None:
    async def story(world: World) -> None:
        await started(world)
        await world.create(gpu_node("n4"))
        await lose(world, "n2")
        for step in range(30):
            if step % 6 == at:
                world.restart()
            await world.pass_time(1)
        assert places(world) == {**WHOLE, "t-node-0-1": "n4"}
        assert status(world, names.JOB_SET, "t")["restarts"] == 1

    play(story)


@pytest.mark.parametrize("stops", [0, 1000], ids=["stops at once", "stops after the timeout"])
def test_a_job_that_fails_meanwhile_is_over_and_does_not_queue_again(stops: int) -> None:
    """Its last pod may still be terminating when no other node is looked for any more."""

    async def story(world: World) -> None:
        says = {"stop-seconds": str(stops)}
        fails = job("j", queue_name="lq", seconds=10_000, says=says, backoffLimit=0)
        fails["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 3600
        await world.create(*NODES[:2], *queues(gpus=16), fails)
        await world.settle()
        await lose(world, "n2")
        await world.pass_time(1500)
        said = conditions(world, names.JOB, "j")
        assert said["Failed"] == ("True", "BackoffLimitExceeded")
        workload = world.every(names.WORKLOAD)[0]
        said = conditions(world, names.WORKLOAD, workload["metadata"]["name"])
        assert said["Finished"] == ("True", "Failed")
        assert ("Evicted" in said) == (stops > 0)  # never after its end
        assert world.assembly.scheduler.state.running == {}

    play(story)
