"""Gangs that report progress: they restart when they hang, and move when that costs nothing."""

from __future__ import annotations

import pytest

from tests.control.training_world import (
    World,
    events,
    gpu_node,
    places,
    play,
    pods,
    queues,
    status,
    train_job,
)
from unisono.control import names
from unisono.control.conditions import timestamp
from unisono.control.gangs.recovery import Record
from unisono.control.health.progress import PROGRESS, Progress, after, furthest, progress_of, read

NOW = 1_700_000_000.0


def at(step: int, seconds: float, saved: int = 0) -> Progress:
    return Progress(step, timestamp(NOW + seconds), checkpoint_step=saved)


def test_the_furthest_rank_counts_and_the_pace_is_remembered() -> None:
    assert furthest([at(4, 9), at(5, 12, 3), at(5, 11)]) == at(5, 11, 3)
    gang = None
    for report in (at(1, 10), at(2, 20), at(3, 29), at(3, 35), at(5, 50, 4)):
        gang = after(gang, report)
    assert gang is not None
    assert (gang.step, gang.paces, gang.step_seconds) == (5, (10.0, 9.0, 10.5), 10.0)
    assert (gang.checkpoint_step, gang.saved_at) == (4, timestamp(NOW + 50))
    again = after(gang, at(4, 99))  # it began anew from its checkpoint
    assert (again.step, again.step_seconds, again.checkpoint_step) == (4, 10.0, 4)


def test_a_report_survives_being_written_and_nonsense_is_none() -> None:
    whole = Progress(3, timestamp(NOW), 9, 2, timestamp(NOW), 0.25, (1.5,))
    assert progress_of({PROGRESS: whole.text()}) == whole
    assert read('{"step": 3, "at": 7, "loss": 1e999}', NOW) == Progress(3, timestamp(NOW))
    for text in ("", "x", "[]", "3", '{"step": "a"}', '{"step": 1e999}'):
        assert read(text, NOW) is None


async def report(world: World, step: int, *hosts: str, saved: int = 0) -> None:
    """Let pods say how far they are; without hosts, all of them."""
    for pod in pods(world):
        if not hosts or pod["spec"]["hostname"] in hosts:
            said = Progress(step, timestamp(world.clock.now()), checkpoint_step=saved)
            changes = {"metadata": {"annotations": {PROGRESS: said.text()}}}
            await world.client.patch(names.POD, pod["metadata"]["name"], "default", changes)
    await world.settle()


async def train(world: World, steps: int, seconds: float = 10) -> None:
    for step in range(1, steps + 1):
        await report(world, step)
        await world.pass_time(seconds)


@pytest.mark.parametrize(("seconds", "limit"), [(10, 120), (60, 180)])
def test_a_gang_that_hangs_restarts_and_that_counts(seconds: int, limit: int) -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues(), train_job())
        await world.settle()
        before = places(world)
        await train(world, 5, seconds)
        await report(world, 6, "t-node-0-0")  # the other one never gets there
        first = {pod["metadata"]["uid"] for pod in pods(world)}
        await world.pass_time(limit - 5)
        assert {pod["metadata"]["uid"] for pod in pods(world)} == first
        await world.pass_time(60)
        assert not first & {pod["metadata"]["uid"] for pod in pods(world)}
        assert places(world) == before
        assert status(world, names.JOB_SET, "t")["restartsCountTowardsMax"] == 1
        incident = Record.of(world.get(names.JOB_SET, "t")["metadata"]["annotations"])
        assert incident is not None
        assert (incident.cause, incident.node) == ("hang", before["t-node-0-1"])
        (told,) = events(world, "GangHangs")
        assert "t-node-0-1" in told
        assert "at step 5" in told

    play(story)


def test_silent_gangs_are_left_alone_and_ending_pods_are_not_blamed() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues(), train_job())
        await world.settle()
        await world.pass_time(4000)
        assert status(world, names.JOB_SET, "t")["restarts"] == 0

    play(story)


def test_a_gang_leaves_a_broken_node_when_its_work_is_saved_and_there_is_another() -> None:
    async def story(world: World) -> None:
        await world.create(gpu_node("n1"), gpu_node("n2"), *queues(), train_job())
        await world.settle()
        await report(world, 10, saved=10)
        broken = {
            "type": "GPUProblem",
            "status": "True",
            "reason": "Xid79",
            "message": "",
            "lastTransitionTime": timestamp(world.clock.now()),
        }
        old = world.get(names.NODE, "n2")["status"]["conditions"]
        await world.set_status(names.NODE, "n2", {"conditions": [*old, broken]})
        await world.pass_time(5)
        await report(world, 15, saved=10)
        assert status(world, names.JOB_SET, "t")["restarts"] == 0  # that would lose five steps
        await world.pass_time(5)
        await report(world, 20, saved=20)
        assert status(world, names.JOB_SET, "t")["restarts"] == 0  # there is nowhere to go
        await world.create(gpu_node("n3"))
        await world.pass_time(5)
        await report(world, 21, saved=20)
        await world.pass_time(60)
        assert places(world) == {"t-node-0-0": "n1", "t-node-0-1": "n3"}
        assert status(world, names.JOB_SET, "t")["restartsCountTowardsMax"] == 0

    play(story)
