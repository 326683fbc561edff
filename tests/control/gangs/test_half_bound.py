"""A gang that is on two of its four nodes when something happens (placement §14, 16, 17 and 19)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.control.stories import nodes_of, phases, pods
from tests.control.test_crash_sweep import Crash
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import PassingOn, World
from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission.placement import hosts_of, placement_of
from unisono.control.conditions import find
from unisono.control.gangs.controller import GangController
from unisono.kinds.overriding import override
from unisono.kube.transport import Answer, Transport

RACK = "cloud.provider.com/topology-rack"
PODS = 4
BINDINGS_BEFORE = 2


class DiesBinding(PassingOn):
    """A transport that kills its user when two of four pods are bound; the next one lives."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner)
        self._bound = 0
        self._one_by_one = asyncio.Lock()

    @override
    async def request(self, method: str, path: str, **more: Any) -> Answer:
        async with self._one_by_one:
            if path.endswith("/binding"):
                self._bound += 1
                if BINDINGS_BEFORE < self._bound <= PODS:
                    raise Crash
            return await super().request(method, path, **more)


def in_rack(name: str, rack: str) -> Json:
    made = node(name)
    made["metadata"]["labels"][RACK] = rack
    return made


def the_workload(world: World) -> Json:
    (found,) = world.every(names.WORKLOAD)
    return found


def record(world: World) -> tuple[str, str]:
    phase, about = placement_of(the_workload(world)["status"]["conditions"])
    return phase, about.get("gen", "")


def half_bound(story: Callable[[World], Awaitable[None]]) -> None:
    """Tell what happens after a crash that left two of four pods bound."""

    async def run() -> None:
        async with simulated_world(wrap=DiesBinding).running() as world:
            await world.create(*(in_rack(f"n{number}", "r1") for number in range(1, 5)))
            await world.create(*queue(gpus=64))
            await world.create(job("gang", pods=PODS, seconds=1000))
            with pytest.raises(Crash):
                await world.settle()
            assert sum(map(bool, nodes_of(world).values())) == BINDINGS_BEFORE
            assert record(world) == ("Committing", "1")
            await story(world)

    asyncio.run(run())


async def lose(world: World, name: str) -> None:
    await world.client.delete(names.NODE, name)
    await world.settle()


def test_scenario_16_a_restarted_controller_binds_the_other_pods() -> None:
    async def story(world: World) -> None:
        planned = sorted(host for host, _ in hosts_of(the_workload(world)))
        world.restart()
        await world.pass_time(10)
        assert sorted(nodes_of(world).values()) == planned
        assert set(phases(world).values()) == {"Running"}
        assert record(world) == ("Committed", "1")

    half_bound(story)


def test_scenario_17_a_node_that_is_gone_is_replaced_in_the_same_rack() -> None:
    async def story(world: World) -> None:
        bound = {node for node in nodes_of(world).values() if node}
        gone = next(host for host, _ in hosts_of(the_workload(world)) if host not in bound)
        await world.create(in_rack("m1", "r2"), in_rack("n5", "r1"))
        world.restart()
        await lose(world, gone)
        await world.pass_time(10)
        assert set(nodes_of(world).values()) == {"n1", "n2", "n3", "n4", "n5"} - {gone}
        assert set(phases(world).values()) == {"Running"}
        assert len(phases(world)) == 4  # no pod was started twice
        assert record(world) == ("Committed", "2")
        assert not the_workload(world)["status"].get("unhealthyNodes")

    half_bound(story)


def test_scenario_17_without_another_node_all_pods_leave() -> None:
    async def story(world: World) -> None:
        bound = {node for node in nodes_of(world).values() if node}
        gone = next(host for host, _ in hosts_of(the_workload(world)) if host not in bound)
        world.restart()
        await lose(world, gone)
        await world.pass_time(30)
        assert record(world)[0] == "Repairing"
        assert sum(map(bool, nodes_of(world).values())) == BINDINGS_BEFORE
        await world.pass_time(90)
        assert phases(world) == {}
        assert not (the_workload(world)["status"].get("admission"))
        evicted = find(the_workload(world)["status"]["conditions"], "Evicted")
        assert evicted is not None
        assert "GangRolledBack" in {note.reason for note in world.notes}
        gangs = world.driver.controllers["gangs"]
        assert isinstance(gangs, GangController)
        assert gangs.rollbacks == {"NoOtherNode": 1}
        await world.create(in_rack("n9", "r1"))
        await world.pass_time(30)
        assert set(phases(world).values()) == {"Running"}

    half_bound(story)


def test_scenario_19_a_pod_that_a_node_turns_away_goes_to_another() -> None:
    async def story(world: World) -> None:
        world.restart()
        await world.pass_time(10)
        before = pods(world)
        name, at = next(iter(nodes_of(world).items()))
        await world.create(in_rack("m1", "r2"), in_rack("n5", "r1"))
        turned_away = {"phase": "Failed", "reason": "OutOfcpu", "message": "node has no room"}
        await world.set_status(names.POD, name, turned_away)
        await world.pass_time(60)
        running = {one for one, phase in phases(world).items() if phase == "Running"}
        assert len(running) == 4
        assert running >= before.keys() - {name}  # no other pod was restarted
        (new,) = running - before.keys()
        assert nodes_of(world)[new] == "n5"
        assert at not in {nodes_of(world)[one] for one in running}
        assert record(world) == ("Committed", "2")

    half_bound(story)
