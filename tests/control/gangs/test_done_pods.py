"""Pods of a running gang that are done, one after the other: others may have their places."""

from __future__ import annotations

import pytest

from tests.control.stories import delete, gpu_node, nodes_of, phases, queue_of, told
from tests.control.test_faults_found import stop
from tests.support.control_objects import job
from tests.support.control_world import World
from unisono.control.names import JOB, POD, SLOT, WORKLOAD
from unisono.kinds.kueue.topology_assignment import pods_per_host


def running(world: World) -> list[str]:
    return sorted(name[:5] for name, phase in phases(world).items() if phase == "Running")


def places(world: World, name: str) -> dict[str, int]:
    """Return the places that a job still has."""
    (found,) = [one for one in world.every(WORKLOAD) if name in one["metadata"]["name"]]
    (one,) = found["status"]["admission"]["podSetAssignments"]
    assert one["count"] == 2  # as Kueue has it: what was granted is history
    return dict(pods_per_host(one["topologyAssignment"]))


def test_the_place_of_a_pod_after_which_none_comes_is_free() -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 1), gpu_node("n2", 1))
        await world.create(job("three", gpus=1, seconds=10, completions=3))
        await world.settle()
        await world.create(job("other", pods=1, gpus=1, seconds=60))
        await world.settle()
        assert running(world) == ["three", "three"]
        await world.pass_time(11)  # the third one runs now, and has no successor
        assert running(world) == ["other", "three"]
        assert list(places(world, "three").values()) == [1]
        await world.pass_time(11)
        assert running(world) == ["other"]

    told(story)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_pod_that_fails_later_finds_its_own_place(crashes: bool) -> None:
    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 1), gpu_node("n2", 1))
        await world.create(job("pair", gpus=1, seconds=100))
        await world.settle()
        first, second = sorted(nodes_of(world))
        await world.set_status(POD, first, {"phase": "Succeeded"}, "default")
        await world.settle()
        assert places(world, "pair") == {nodes_of(world)[second]: 1}
        await world.create(job("other", pods=1, gpus=1, seconds=1000))
        await world.settle()
        if crashes:
            world.restart()
        await world.set_status(POD, second, {"phase": "Failed"}, "default")
        await world.pass_time(40)
        assert running(world) == ["other", "pair-"]
        assert len(set(nodes_of(world).values())) == 2
        assert world.get(JOB, "pair")["status"]["failed"] == 1

    told(story)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_gang_that_starts_again_does_not_wait_for_pods_that_are_done(crashes: bool) -> None:
    """Their pods were deleted meanwhile, and the Job makes none for an index that has succeeded."""

    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 1), gpu_node("n2", 1))
        await world.create(job("pair", gpus=1, seconds=100))
        await world.settle()
        first, _ = sorted(nodes_of(world))
        await world.set_status(POD, first, {"phase": "Succeeded"}, "default")
        await world.settle()
        await stop(world, "HoldAndDrain")
        await delete(world, POD, first)
        if crashes:
            world.restart()
        await stop(world, "None")
        assert running(world) == ["pair-"]
        await world.pass_time(101)
        assert world.get(JOB, "pair")["status"]["succeeded"] == 2

    told(story)


def test_of_two_pods_of_an_index_one_goes() -> None:
    """The only pod of another index went, and the two did the same work."""

    async def story(world: World) -> None:
        await world.create(*queue_of(4), gpu_node("n1", 1), gpu_node("n2", 1))
        await world.create(job("pair", gpus=1, seconds=100))
        await world.settle()
        before = nodes_of(world)
        for name in before:
            unready = {"type": "Ready", "status": "False", "lastTransitionTime": None}
            await world.set_status(POD, name, {"conditions": [unready]})
        late = world.get(POD, min(before))
        kept = {key: late["metadata"][key] for key in ("labels", "annotations", "ownerReferences")}
        del kept["annotations"][SLOT]  # it was never bound
        late["metadata"] = {"name": "pair-late", "namespace": "default", **kept}
        del late["spec"]["nodeName"], late["status"]
        await world.client.create(late)
        await world.settle()
        assert nodes_of(world) == before

    told(story)
