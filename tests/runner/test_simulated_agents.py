"""Simulated agents: training reports its steps, a slow GPU holds its gang up, usage is invented."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from tests.runner.simulated_world import node as simulated_node
from tests.runner.simulated_world import pod, simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.assembly import Assembly, embedded
from unisono.control.health.progress import Progress, progress_of
from unisono.control.view import View
from unisono.kinds.policy.settings import Settings
from unisono.runner.simulated.agents import TrainingProgress, Usage
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation

SAYS = {"step-seconds": "2", "checkpoint-steps": "10"}


def play(story: Callable[[World], Awaitable[None]]) -> None:
    def assemble(view: View, settings: Settings) -> Assembly:
        made, simulation = embedded(view, settings), Simulation()
        runner = (SimulatedKubelet(simulation), TrainingProgress(simulation))
        return Assembly(made.scheduler, (*made.controllers, *runner))

    async def run() -> None:
        async with World(assemble=assemble).running() as world:
            await story(world)

    asyncio.run(run())


def new_lines(world: World) -> dict[str, Progress]:
    """Return what pods say, by their node."""
    found = {
        pod["spec"]["nodeName"]: progress_of(pod["metadata"].get("annotations"))
        for pod in world.every(names.POD)
    }
    return {name: one for name, one in found.items() if one is not None}


async def slow(world: World, name: str, factor: float) -> None:
    text = json.dumps({"0": {"slow": factor}})
    changes = {"metadata": {"annotations": {"unisono.dev/gpu-faults": text}}}
    await world.client.patch(names.NODE, name, "", changes)


def test_reports_progress_and_a_slow_gpu_makes_a_straggler() -> None:
    async def story(world: World) -> None:
        nodes = [node(f"n{number}") for number in range(1, 4)]
        made = job("j", pods=3, seconds=10_000, says=SAYS)
        await world.create(*nodes, *queue(gpus=24), made)
        await world.pass_time(61)
        before = new_lines(world)
        assert all(22 <= one.step <= 30 for one in before.values())
        assert {one.step_seconds for one in before.values()} == {2.0}
        assert before["n1"].checkpoint_step == before["n1"].step // 10 * 10
        await slow(world, "n2", 0.5)
        await world.pass_time(900)
        after = new_lines(world)
        assert {name: one.step_seconds for name, one in after.items()} == {
            "n1": 2.0,
            "n2": 4.0,
            "n3": 2.0,
        }
        made_since = after["n1"].step - before["n1"].step
        assert 200 < made_since < 240  # as many as the slowest makes in 900 s
        events = [one.message for one in world.notes if one.reason == "StragglerDetected"]
        assert any("on node n2" in one for one in events)
        taints = world.get(names.NODE, "n2")["spec"].get("taints") or []
        assert [(one["key"], one["value"]) for one in taints] == [
            ("unisono.dev/suspect", "Straggler")
        ]

    play(story)


def test_pods_without_step_seconds_report_no_progress() -> None:
    async def story(world: World) -> None:
        await world.create(node("n1"), *queue(), job("j", pods=1, seconds=1000))
        await world.pass_time(120)
        assert new_lines(world) == {}

    play(story)


# ---- usage ---------------------------------------------------------------------------------------


def test_usage_is_a_part_of_requests() -> None:
    world = simulated_world()

    async def run() -> None:
        async with world.running():
            asks = {"requests": {"cpu": "2", "memory": "4Gi"}}
            busy = {"name": "main", "image": "x", "resources": asks, "command": ["sleep", "9"]}
            await world.create(simulated_node(), pod("idle", command=["sleep", "9"]))
            await world.create(
                pod("busy", containers=[busy]), pod("done", says={"run-seconds": "0"})
            )
            await world.settle()
            usage = Usage(world.view, world.clock.now)
            used = {one["metadata"]["name"]: one["containers"][0]["usage"] for one in usage("pods")}
            assert sorted(used) == ["busy", "idle"]
            assert 1000 <= int(used["busy"]["cpu"].removesuffix("m")) <= 1800
            assert used["idle"] == {"cpu": "5m", "memory": "16384Ki"}
            (whole,) = usage("nodes")
            total = int(used["busy"]["cpu"].removesuffix("m")) + 5 + 250
            assert whole["usage"]["cpu"] == f"{total}m"
            assert usage("pods") == usage("pods")

    asyncio.run(run())
