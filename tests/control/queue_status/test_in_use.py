"""Queues and flavors that are used stay until they are not."""

from __future__ import annotations

import asyncio

from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import KUEUE, job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.kube.mapping import Kind

IN_USE = ["kueue.x-k8s.io/resource-in-use"]


def is_there(world: World, kind: Kind, name: str) -> bool:
    return any(one["metadata"]["name"] == name for one in world.every(kind))


def test_a_queue_goes_with_its_last_workload_and_a_flavor_with_its_last_queue() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            await world.create(node("n1"), node("n2"), *queue())
            await world.settle()
            assert "finalizers" not in world.get(names.CLUSTER_QUEUE, "cq")["metadata"]
            assert world.get(names.FLAVOR, "f")["metadata"]["finalizers"] == IN_USE
            await world.create(job("runs", pods=1, seconds=100))
            await world.settle()
            assert world.get(names.CLUSTER_QUEUE, "cq")["metadata"]["finalizers"] == IN_USE
            for kind, name in ((names.FLAVOR, "f"), (names.CLUSTER_QUEUE, "cq")):
                await world.client.delete(kind, name, "")
            await world.create(job("late", pods=1))
            await world.pass_time(50)
            assert is_there(world, names.CLUSTER_QUEUE, "cq")
            assert is_there(world, names.FLAVOR, "f")
            assert world.get(names.JOB, "runs")["status"]["active"] == 1
            assert world.get(names.JOB, "late")["spec"]["suspend"] is True
            await world.pass_time(100)
            assert not is_there(world, names.CLUSTER_QUEUE, "cq")
            assert not is_there(world, names.FLAVOR, "f")

    asyncio.run(story())


def test_a_topology_goes_with_the_last_flavor_that_names_it() -> None:
    async def story() -> None:
        async with simulated_world().running() as world:
            topology = {
                "apiVersion": KUEUE,
                "kind": "Topology",
                "metadata": {"name": "racks"},
                "spec": {"levels": [{"nodeLabel": "rack"}, {"nodeLabel": names.HOSTNAME}]},
            }
            flavor = {
                "apiVersion": KUEUE,
                "kind": "ResourceFlavor",
                "metadata": {"name": "tas"},
                "spec": {"topologyName": "racks", "nodeLabels": {"group": "tas"}},
            }
            other = {**topology, "metadata": {"name": "free"}}
            await world.create(flavor, topology, other)
            await world.settle()
            assert world.get(names.TOPOLOGY, "racks", "")["metadata"]["finalizers"] == IN_USE
            assert "finalizers" not in world.get(names.TOPOLOGY, "free", "")["metadata"]
            for name in ("racks", "free"):
                await world.client.delete(names.TOPOLOGY, name, "")
            await world.settle()
            assert is_there(world, names.TOPOLOGY, "racks")
            assert not is_there(world, names.TOPOLOGY, "free")
            await world.client.delete(names.FLAVOR, "tas", "")
            await world.settle()
            assert not is_there(world, names.TOPOLOGY, "racks")

    asyncio.run(story())
