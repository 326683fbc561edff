"""A simulated cloud that is described wrongly, and one that takes machines away."""

from __future__ import annotations

import pytest

from tests.provision.stories import SEOUL, started
from tests.support.control_objects import job, queue
from tests.support.control_world import World
from tests.support.provisioning_world import cloud, pool, told
from unisono.provision.simulated_cloud import Cloud, read_cloud


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"stok": {"p5.48xlarge": 1}}, 'unknown field "stok"; did you mean "stock"?'),
        ({"stock": 3}, "cannot be read"),
        ({"latency": {"boot": "soon"}}, "cannot be read"),
        ({"stock": {"p5.48xlarge": 1}}, ""),
    ],
)
def test_reports_unreadable_configuration(said: dict[str, object], problem: str) -> None:
    made, complaint = read_cloud(cloud(**said))
    assert problem in complaint
    assert bool(problem) == bool(complaint)
    if "cannot" in problem:
        assert made == Cloud()


def test_unreadable_configuration_is_an_event() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), pool(zones=SEOUL), cloud(atomc=False))
        await world.create(job("train", pods=1, gpus=8))
        await world.settle()
        (note,) = [one for one in world.notes if one.reason == "CloudNotUnderstood"]
        assert "atomic" in note.message

    told(story)


def test_a_spot_interruption_is_an_event_of_every_workload_on_it() -> None:
    async def story(world: World) -> None:
        await world.create(*queue(), pool(zones=SEOUL), cloud(interruptionsPerHour=3.0))
        made = job("train", pods=2, gpus=8, seconds=7200)
        made["metadata"].setdefault("annotations", {})["unisono.dev/allow-spot"] = "true"
        await world.create(made)
        await world.pass_time(120)
        assert started(world, "train")
        for _ in range(200):
            await world.pass_time(20)
            if any(one.reason == "SpotInterrupted" for one in world.notes):
                break
        notes = [one for one in world.notes if one.reason == "SpotInterrupted"]
        assert {"NodeClaim", "Workload"} <= {one.about.kind.kind for one in notes}

    told(story)
