"""Nodes that exist only in a real API: their pods live as scripts say, in a process of their own.

python -m tests.real.kubelets KUBECONFIG SHAPE SPEED
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from unisono.apiserver.times import timestamp
from unisono.control import names
from unisono.control.assembly import INDEXES
from unisono.control.reconciling.event_routing import Task
from unisono.control.reconciling.workers import LiveControllers
from unisono.kube.connect import connected
from unisono.kube.kubeconfig import find_access
from unisono.provision.catalog.nodes import nodes_of, parse_shape
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation
from unisono.runtime.clock import RealClock
from unisono.runtime.ids import new_uid, random_source


async def keep(kubeconfig: Path, shape: str, speed: float) -> None:
    """Make the nodes and run what is bound to them, until killed."""
    clock = RealClock()
    async with connected(
        find_access(path=kubeconfig), clock=clock, random_source=random_source(), ids=new_uid
    ) as client:
        for node in nodes_of(parse_shape(shape), now=timestamp(clock.now())):
            made = await client.create(node)
            if "status" in node:
                name = made["metadata"]["name"]
                status = {"status": node["status"]}
                await client.patch(names.NODE, name, "", status, subresource="status")
                await client.patch(names.NODE, name, "", {"spec": {"taints": None}})
        live = LiveControllers(
            client,
            (names.POD, names.NODE),
            clock=clock,
            random_source=random_source(),
            indexes=INDEXES,
            report=_report,
        )
        kubelet = SimulatedKubelet(Simulation(speed=speed, is_every_node_ours=False))
        print("ready", flush=True)
        await live.run(live.driver((kubelet,), {}))


def _report(task: Task, error: Exception) -> None:
    print(f"{task}: {error!r}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(keep(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
