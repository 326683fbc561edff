"""Stages for a purchase with faults: what brings the machines, and what must hold meanwhile.

    simulated   the cloud of an embedded cluster, in the same process: it dies with us
    handover    the same, and another gang takes the machines while they boot
    karpenter   claims are fulfilled by another process, which lives on when ours dies
    requests    another autoscaler is asked for nodes

The story is the same: a gang of three, the first place refuses one machine of three, the second
has all; it runs, ends, and everything that was bought goes.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path

from tests.provision.request_stories import asking, checked_queue, requests, say
from tests.real.karpenter import Karpenter
from tests.support.control_objects import job, node, priority, queue
from tests.support.control_world import World
from tests.support.provisioning_world import assembled, bound, claims, cloud, condition, nodes, pool
from unisono.control import names
from unisono.control.assembly import Assembly
from unisono.control.job_kinds.batch.operator import JobOperator
from unisono.control.view import View
from unisono.kinds.overriding import override
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runner.addresses import Addresses
from unisono.runner.logs import LogFolder
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation

SIZE = 3
ZONES = ("ap-northeast-2a", "ap-northeast-2b")
TEMPLATE = Kind("v1", "PodTemplate")


@dataclass
class Stage:
    """The simulated cloud; others differ in what they say otherwise."""

    async def begin(self, world: World) -> None:
        """Put on the stage what the story needs."""
        disruption = {"consolidateAfter": "60s", "budgets": [{"nodes": "100%"}]}
        await world.create(*queue(gpus=24), pool(zones=ZONES, disruption=disruption))
        await world.create(cloud(atomic=False, stock={f"g6e.48xlarge:{ZONES[0]}": 2}))
        await world.create(job("train", pods=SIZE, gpus=8, seconds=120))

    def assembled(self, view: View, settings: Settings, logs: Path) -> Assembly:
        """Return our controllers."""
        return assembled(view, settings, logs)

    async def act(self, world: World) -> None:
        """Let others do something."""

    def left(self, world: World) -> list[str]:
        """Return what must be gone in the end."""
        return [*(one["metadata"]["name"] for one in claims(world)), *nodes(world)]

    def usable(self, world: World) -> set[str]:
        """Return the nodes that may have pods."""
        there = [one for one in claims(world) if condition(one, "Initialized")["status"] == "True"]
        return {str(one["status"]["nodeName"]) for one in there}


@dataclass
class HandedOver(Stage):
    """A gang of higher priority comes while machines boot, and takes quota and machines.

    There may be no more machines than one gang needs: without those of the first it has none.
    """

    begun_at: float = 0.0
    has_come: bool = False

    @override
    async def begin(self, world: World) -> None:
        self.begun_at = world.clock.time
        disruption = {"consolidateAfter": "60s", "budgets": [{"nodes": "100%"}]}
        rules = {"withinClusterQueue": "LowerPriority"}
        limits = {"nodes": str(SIZE)}
        await world.create(*queue(gpus=24, preemption=rules), priority("high", 10))
        await world.create(pool(zones=ZONES[:1], disruption=disruption, limits=limits))
        await world.create(job("train", pods=SIZE, gpus=8, seconds=120))

    @override
    async def act(self, world: World) -> None:
        assert len(claims(world)) <= SIZE, "limits hold at every moment"
        if not self.has_come and world.clock.time >= self.begun_at + 30:
            self.has_come = True
            await world.create(job("urgent", pods=SIZE, gpus=8, seconds=60, priority_class="high"))

    @override
    def left(self, world: World) -> list[str]:
        over = condition(world.get(names.JOB, "urgent"), "Complete")["status"] == "True"
        return [*super().left(world), *(() if over else ("urgent",))]


@dataclass
class OnKarpenter(Stage):
    """Karpenter fulfils claims, and gives empty nodes back."""

    karpenter: Karpenter = field(default_factory=Karpenter)

    @override
    async def begin(self, world: World) -> None:
        self.karpenter = Karpenter(
            clock=world.clock.now,
            stock={ZONES[0]: 2},
            boot_s=40.0,
            plugin_s=(5.0, 20.0),
            empty_s=60.0,
        )
        await world.create(*queue(gpus=24), pool(zones=ZONES))
        await world.create(job("train", pods=SIZE, gpus=8, seconds=120))

    @override
    def assembled(self, view: View, settings: Settings, logs: Path) -> Assembly:
        return assembled(view, settings, logs, cloud_is_ours=False)

    @override
    async def act(self, world: World) -> None:
        await self.karpenter.look(world.client)


@dataclass
class OnRequests(Stage):
    """A cluster autoscaler is asked: it fails once, then brings all nodes one after the other."""

    brought: dict[str, list[str]] = field(default_factory=dict)  # by request
    failed: set[str] = field(default_factory=set)

    @override
    async def begin(self, world: World) -> None:
        await world.create(*checked_queue(gpus=24))
        await world.create(job("train", pods=SIZE, gpus=8, seconds=120))

    @override
    def assembled(self, view: View, settings: Settings, logs: Path) -> Assembly:
        made = asking(view, settings)
        kubelet = SimulatedKubelet(Simulation(), addresses=Addresses(), logs=LogFolder(logs))
        return dataclasses.replace(made, controllers=(*made.controllers, JobOperator(), kubelet))

    @override
    async def act(self, world: World) -> None:
        await _bind(world)
        living = {one["metadata"]["name"]: one for one in requests(world)}
        for name, request in living.items():
            if not self.failed:
                self.failed.add(name)
                await say(world, request, "Failed", "there are two of three")
            elif name not in self.failed:
                await self._bring(world, name, request)
        is_over = condition(world.get(names.JOB, "train"), "Complete")["status"] == "True"
        for name, there in list(self.brought.items()):
            if name not in living or (is_over and not bound_now(world)):
                for one in there:
                    await world.client.delete(names.NODE, one, "")
                del self.brought[name]

    async def _bring(self, world: World, name: str, request: Json) -> None:
        there = self.brought.setdefault(name, [])
        if len(there) < SIZE:
            made = f"{name[-6:]}-{len(there)}"
            there.append(made)
            await world.create(node(made))
            await world.client.patch(names.NODE, made, "", {"spec": {"taints": None}})
        elif condition(request, "Provisioned")["status"] != "True":
            await say(world, request, "Provisioned", "the nodes are there")

    @override
    def usable(self, world: World) -> set[str]:
        assert len(requests(world)) <= 1, "nodes are asked for once at a time"
        return {one for there in self.brought.values() if len(there) == SIZE for one in there}

    @override
    def left(self, world: World) -> list[str]:
        asked = [*requests(world), *world.every(TEMPLATE)]
        return [*(one["metadata"]["name"] for one in asked), *nodes(world)]


async def _bind(world: World) -> None:
    """Do what kube-scheduler does with pods whose gates are lifted: they name their node."""
    for pod in world.every(names.POD):
        host = (pod["spec"].get("nodeSelector") or {}).get(names.HOSTNAME)
        if host and not pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName"):
            metadata = pod["metadata"]
            target = {"apiVersion": "v1", "kind": "Node", "name": host}
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
                "target": target,
            }
            await world.client.submit(
                names.POD, metadata["name"], metadata["namespace"], "binding", binding
            )


def bound_now(world: World) -> dict[str, str]:
    """Return the nodes of pods that are not over and not on their way out."""
    alive = {
        pod["metadata"]["name"]
        for pod in world.every(names.POD)
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in pod["metadata"]
    }
    return {pod: on for pod, on in bound(world).items() if pod in alive}
