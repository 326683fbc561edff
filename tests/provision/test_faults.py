"""Faults between every two calls to a provider; what must hold then, and in the end.

A gang of three is bought in a zone that refuses one machine of three, then in the next zone; it
runs, ends, and its machines go (`fault_stages`, for every provider). At every step of that story
something breaks: our process dies before or after a write, the provider takes a machine away,
refuses one that it had promised, or never brings one up. Whatever happens:

    no partial start    pods have nodes only when every machine of the gang is ready
    nothing twice       never more machines than the gang needs, in all zones together
    no leak             in the end there is no claim, no node, and no held workload
    no idle money       a machine that is paid for is held, in use, or idle for less than its time
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.control.test_crash_sweep import Crash, Mortal
from tests.provision.fault_stages import (
    SIZE,
    HandedOver,
    OnKarpenter,
    OnRequests,
    Stage,
    bound_now,
)
from tests.support.control_world import World
from tests.support.provisioning_world import ALL_INDEXES, ALL_KINDS, claims, condition
from unisono.control import names
from unisono.control.conditions import seconds
from unisono.kube.form import Json
from unisono.kube.transport import Transport
from unisono.provision import keys

Break = Callable[[World, Json], Any]
CONSOLIDATE = 60.0
# Budgets are looked at every ten seconds, and a node is looked at once more before it goes.
SLACK = 40.0
STEP = 5.0


def check(world: World, stage: Stage) -> None:
    """Check what must hold at every instant."""
    there = claims(world)
    living = [one for one in there if "deletionTimestamp" not in one["metadata"]]
    assert len(living) <= 2 * SIZE, "a purchase, and what is left of the one before"
    wanted = [
        one
        for one in living
        if keys.HELD_FOR in one["metadata"]["annotations"]
        and keys.RELEASED not in one["metadata"]["annotations"]
    ]
    assert len(wanted) <= SIZE, [one["metadata"]["name"] for one in wanted]
    on = bound_now(world)
    for name in ("train", "urgent"):
        own = [pod for pod in on if pod.startswith(name)]
        if own:
            whole = len(own) + _done(world, name) == SIZE
            assert whole or _is_between(world), "a gang starts whole"
    if on:
        usable = stage.usable(world)
        assert set(on.values()) <= usable or _is_between(world), (on, usable)
    for claim in living:
        _check_money(world, claim, set(on.values()))


def _done(world: World, job: str) -> int:
    """Count pods that have done their part; they end one by one."""
    own = [one for one in world.every(names.POD) if one["metadata"]["name"].startswith(job)]
    return sum((pod.get("status") or {}).get("phase") == "Succeeded" for pod in own)


def _is_between(world: World) -> bool:
    """Say whether a gang is just being bound, or lost a node while it ran and is repaired."""
    phases = [condition(one, names.PLACEMENT)["reason"] for one in world.every(names.WORKLOAD)]
    return "Committing" in phases or "Repairing" in phases


def _check_money(world: World, claim: Json, used: set[str]) -> None:
    annotations = claim["metadata"]["annotations"]
    if not _is(claim, "Launched") or keys.HELD_FOR in annotations:
        return
    if (claim.get("status") or {}).get("nodeName") in used:
        return
    since = annotations.get(keys.IDLE_SINCE) or annotations.get(keys.RELEASED)
    if since is not None:
        idle = world.clock.time - seconds(since)
        assert idle <= CONSOLIDATE + SLACK, f"{claim['metadata']['name']} idles for {idle} s"


def _is(obj: Json, kind: str) -> bool:
    return bool(condition(obj, kind)["status"] == "True")


async def go_on(
    world: World, stage: Stage, broken: list[int], break_it: Break | None = None
) -> None:
    """Let time pass until the job is done and a while longer; start again after a crash."""
    left = 5000.0
    while left > 0:
        await stage.act(world)
        try:
            await world.pass_time(STEP)
        except Crash:
            check(world, stage)
            world.restart()
            continue
        check(world, stage)
        left -= STEP
        if break_it is not None and broken and broken[0] == 0:
            found = [one for one in claims(world) if "deletionTimestamp" not in one["metadata"]]
            broken.pop()
            if found:
                await break_it(world, found[-1])
        elif broken:
            broken[0] -= 1
        done = condition(world.get(names.JOB, "train"), "Complete")["status"] == "True"
        if done and not stage.left(world):
            break


def finish(world: World, stage: Stage) -> None:
    """Check what must hold in the end."""
    assert condition(world.get(names.JOB, "train"), "Complete")["status"] == "True"
    assert stage.left(world) == []


def tell(
    wrap: Callable[[Transport], Transport],
    at: int,
    break_it: Break | None = None,
    stage: Stage | None = None,
) -> None:
    """Tell the story with one fault."""
    chosen = stage or Stage()
    with TemporaryDirectory() as folder:
        world = World(
            assemble=lambda view, settings: chosen.assembled(view, settings, Path(folder)),
            kinds=ALL_KINDS,
            indexes=ALL_INDEXES,
            wrap=wrap,
        )

        async def run() -> None:
            async with world.running():
                await chosen.begin(world)
                await go_on(world, chosen, [at] if break_it is not None else [], break_it)
                finish(world, chosen)

        asyncio.run(run())


STAGES: dict[str, type[Stage]] = {
    "simulated": Stage,
    "handover": HandedOver,
    "karpenter": OnKarpenter,
    "requests": OnRequests,
}
ON_EVERY_STAGE = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)


def count_writes(stage: type[Stage] = Stage) -> int:
    """Return how many writes of ours the story takes without a fault."""
    counted: list[Mortal] = []

    def wrap(inner: Transport) -> Transport:
        counted.append(Mortal(inner, -1, after=False))
        return counted[0]

    tell(wrap, 0, stage=stage())
    return counted[0].writes


def die(at: int, *, after: bool, stage: type[Stage] = Stage) -> None:
    """Tell the story with a death at one of our writes."""
    tell(lambda inner: Mortal(inner, at, after=after), 0, stage=stage())


@ON_EVERY_STAGE
def test_a_process_that_dies_here_and_there(stage: type[Stage]) -> None:
    writes = count_writes(stage)
    for at in range(7, writes, max(1, writes // 2)):
        die(at, after=at % 2 == 0, stage=stage)


@pytest.mark.slow
@ON_EVERY_STAGE
def test_a_process_that_dies_before_and_after_every_single_write(stage: type[Stage]) -> None:
    for at in range(1, count_writes(stage) + 1):
        for after in (False, True):
            die(at, after=after, stage=stage)


async def _take_away(world: World, claim: Json) -> None:
    """The provider deletes a machine, as Karpenter does for want of capacity."""
    await world.client.delete(names.NODE_CLAIM, claim["metadata"]["name"], "")


async def _lose_node(world: World, claim: Json) -> None:
    name = (claim.get("status") or {}).get("nodeName")
    if name:
        await world.client.delete(names.NODE, name, "")


async def _refuse(world: World, claim: Json) -> None:
    """The provider says no to a machine that it had not launched yet."""
    if not _is(claim, "Launched"):
        said = {
            "type": "Launched",
            "status": "False",
            "reason": "InsufficientCapacityError",
            "message": "none left",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await world.set_status(
            names.NODE_CLAIM, claim["metadata"]["name"], {"conditions": [said]}, ""
        )


async def _break_gpus(world: World, claim: Json) -> None:
    """The node is there, and its GPUs go away again."""
    name = (claim.get("status") or {}).get("nodeName")
    if name:
        await world.set_status(names.NODE, name, {"allocatable": {"nvidia.com/gpu": "0"}}, "")


FAULTS = (_take_away, _lose_node, _refuse, _break_gpus)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__.strip("_"))
@pytest.mark.parametrize("at", [0, 14])
def test_a_provider_that_fails_here_and_there(fault: Break, at: int) -> None:
    tell(lambda inner: inner, at, fault)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.__name__.strip("_"))
def test_a_provider_that_fails_between_any_two_looks(fault: Break) -> None:
    for at in range(0, 60, 3):
        tell(lambda inner: inner, at, fault)
