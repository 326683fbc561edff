"""Gangs whose pods mount claims: they go where the volumes are, and hear when one gets a volume."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.kube.form import Json


def claim(name: str, volume: str = "") -> Json:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if volume:
        spec["volumeName"] = volume
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def volume(name: str, of: str, on: str) -> Json:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/data"},
            "claimRef": {"namespace": "default", "name": of},
            "nodeAffinity": {"required": required},
        },
    }


def mounting(manifest: Json, name: str) -> Json:
    """Return a job whose pods mount a claim."""
    spec = manifest["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    return manifest


def stray(name: str, mounts: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "main", "image": "busybox"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": mounts}}],
        },
    }


def story(tell: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with World().running() as world:
            await world.create(node("n1"), node("n2"), node("n3"), *queue(gpus=64))
            await tell(world)

    asyncio.run(main())


def nodes_of(world: World) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in world.every(names.POD))


@pytest.mark.parametrize("on", ["n1", "n3"])
def test_pods_go_where_their_volume_is(on: str) -> None:
    async def tell(world: World) -> None:
        await world.create(volume("pv-1", "data", on), claim("data", "pv-1"))
        await world.settle()
        await world.create(mounting(job("train", pods=1), "data"), stray("shell", "data"))
        await world.settle()
        assert nodes_of(world) == [on, on]

    story(tell)


def test_a_gang_that_the_volumes_node_cannot_hold_is_told_so() -> None:
    async def tell(world: World) -> None:
        await world.create(volume("pv-1", "data", "n2"), claim("data", "pv-1"))
        await world.settle()
        await world.create(mounting(job("train", pods=2), "data"))
        await world.settle()
        assert not any(nodes_of(world))
        (workload,) = world.every(names.WORKLOAD)
        reserved = find(workload["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert "1 of 2 pods fit" in reserved["message"]
        assert "2 out of reach of a volume" in reserved["message"]

    story(tell)


def test_a_pending_workload_is_tried_when_its_claim_has_a_volume() -> None:
    async def main() -> None:
        async with World().running() as world:
            await world.create(*queue(), mounting(job("train", pods=1), "data"))
            await world.create(stray("shell", "data"))
            await world.settle()  # read without a claim, and there are no nodes
            await world.create(claim("data", "pv-1"), volume("pv-1", "data", "n3"))
            await world.settle()
            await world.create(node("n1"), node("n2"), node("n3"))
            await world.settle()
            assert nodes_of(world) == ["n3", "n3"]

    asyncio.run(main())
