"""What `kubectl top` shows."""

from __future__ import annotations

import asyncio

from tests.runner.simulated_world import node, pod, simulated_world
from unisono.runner.usage import Usage


def test_usage_is_a_part_of_requests() -> None:
    world = simulated_world()

    async def run() -> None:
        async with world.running():
            asks = {"requests": {"cpu": "2", "memory": "4Gi"}}
            busy = {"name": "main", "image": "x", "resources": asks, "command": ["sleep", "9"]}
            await world.create(node(), pod("idle", command=["sleep", "9"]))
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
