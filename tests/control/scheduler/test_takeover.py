"""A new leader: what the one before still has under way comes too late (placement §10.5)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.actions import Ref, Together
from unisono.control.admission import placement
from unisono.control.assembly import INDEXES, Assembly, embedded
from unisono.control.conditions import find
from unisono.control.scheduler.writes_in_flight import MOST_MARKED, taken_over
from unisono.control.view import KindStore, View
from unisono.kinds.policy.settings import Settings
from unisono.kube.errors import Conflict, KubeError, Status, error_of
from unisono.kube.form import Json


def placement_in(world: World) -> str:
    (workload,) = world.every(names.WORKLOAD)
    found = find(workload["status"]["conditions"], names.PLACEMENT)
    assert found is not None
    return f"{found['reason']} {found['message'].partition(' deadline')[0]}"


def test_a_late_write_of_the_leader_before_is_refused_and_the_gang_goes_on() -> None:
    epochs = iter((1, 2, 3))

    def assemble(view: View, settings: Settings) -> Assembly:
        whole = embedded(view, settings, epoch=next(epochs))
        idle = ("gangs", "job")  # no pods are made or bound: the gang stays where it is
        kept = tuple(one for one in whole.controllers if one.name not in idle)
        return Assembly(whole.scheduler, kept)

    async def story() -> None:
        world = World(assemble=assemble)
        async with world.running():
            await world.create(node("n1"), node("n2"), *queue(), job("train"))
            await world.settle()
            assert placement_in(world) == "Committing gen=1 epoch=1"
            (seen,) = world.every(names.WORKLOAD)  # as the old leader knows it
            world.restart()
            await world.settle()
            assert placement_in(world) == "Committing gen=1 epoch=2"
            late = placement.with_placement(
                seen["status"]["conditions"], "Committed", gen=1, epoch=1, deadline=0, now=0
            )
            ref = Ref.to(seen)
            changes = {
                "metadata": {"resourceVersion": ref.version},
                "status": {"conditions": late},
            }
            with pytest.raises(Conflict):
                await world.client.patch(
                    names.WORKLOAD, ref.name, ref.namespace, changes, subresource="status"
                )
            world.restart()
            await world.settle()
            assert placement_in(world) == "Committing gen=1 epoch=3"

    asyncio.run(story())


def test_a_gang_that_runs_is_left_alone() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue(), job("train"))
            await world.settle()
            (workload,) = world.every(names.WORKLOAD)
            assert placement_in(world) == "Committed gen=1 epoch=1"
            assert placement.stamped(workload, 2) is None

    asyncio.run(story())


def _view_of(count: int) -> View:
    """Return a view of so many gangs that are on their way, and of one that runs."""
    conditions = placement.with_placement([], "Committing", gen=1, epoch=1, deadline=0, now=0)
    gangs: list[Json] = [
        {
            "apiVersion": names.WORKLOAD.api_version,
            "kind": names.WORKLOAD.kind,
            "metadata": {"name": f"w{number}", "namespace": "default", "resourceVersion": "1"},
            "status": {"conditions": conditions},
        }
        for number in range(count)
    ]
    view = View({names.WORKLOAD: KindStore.of(names.WORKLOAD, INDEXES[names.WORKLOAD])})
    runs = placement.with_placement([], "Committed", gen=1, epoch=1, deadline=0, now=0)
    metadata = {"name": "runs", "namespace": "default", "resourceVersion": "1"}
    for one in (*gangs, {**gangs[0], "metadata": metadata, "status": {"conditions": runs}}):
        list(view.upsert(names.WORKLOAD, one))
    return view


def _batches(view: View, epoch: int, *answers: KubeError) -> list[int]:
    """Return how many gangs are marked at once; the first batch is answered with trouble."""
    sizes: list[int] = []
    steps = taken_over(view, epoch)
    with contextlib.suppress(StopIteration):
        action = next(steps)
        while True:
            assert isinstance(action, Together)
            sizes.append(len(action.actions))
            action = steps.send(answers)
    return sizes


def test_gangs_are_taken_over_together() -> None:
    """One after the other, a thousand of them kept all others waiting for ten seconds."""
    view = _view_of(MOST_MARKED + 1)
    assert _batches(view, 2) == [MOST_MARKED, 1]
    assert _batches(view, 1) == []


def test_a_gang_that_cannot_be_written_holds_up_no_other() -> None:
    """The new leader tried to mark it for ever, and decided nothing."""
    view = _view_of(1)
    for code, reason in ((422, "Invalid"), (404, "NotFound")):
        assert _batches(view, 2, error_of(Status(code=code, reason=reason))) == [1]
    with pytest.raises(Conflict):
        _batches(view, 2, error_of(Status(code=409, reason="Conflict")))
