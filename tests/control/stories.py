"""Stories of jobs: a world with simulated pods, nodes with GPUs, and short ways to look at it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

from tests.runner.simulated_world import node, simulated_world
from tests.support.control_objects import queue
from tests.support.control_world import World
from unisono.control.names import POD, WORKLOAD
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.runner.simulated.kubelet import Simulation

SEEDS = Path(__file__).parent.parent / "kubectl" / "manifests"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def told(story: Callable[[World], Awaitable[None]], simulation: Simulation | None = None) -> World:
    """Run a story from an empty cluster on."""
    world = simulated_world(simulation)

    async def run() -> None:
        async with world.running():
            await story(world)

    asyncio.run(run())
    return world


def gpu_node(name: str, gpus: int, **resources: str) -> Json:
    """Return a node with GPUs."""
    return node(name, **{"nvidia.com/gpu": str(gpus)}, **resources)


def documents(path: Path) -> list[Json]:
    """Read the objects of a file; those of no namespace are in `default`."""
    return [one for one in yaml.safe_load_all(path.read_text()) if one]


def in_default(obj: Json) -> Json:
    """Put an object into the namespace `default` if it names none."""
    obj["metadata"].setdefault("namespace", "default")
    return obj


def queue_of(gpus: int) -> list[Json]:
    """Return a queue `lq-cq` with so many GPUs, and more of everything else than needed."""
    made = queue(gpus=gpus)
    (group,) = made[1]["spec"]["resourceGroups"]
    for name, quota in (("cpu", "1000"), ("memory", "1000Gi")):
        group["coveredResources"].append(name)
        group["flavors"][0]["resources"].append({"name": name, "nominalQuota": quota})
    return made


def namespace(name: str) -> Json:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def pods(world: World) -> dict[str, Json]:
    """Return the pods by name."""
    return {one["metadata"]["name"]: one for one in world.every(POD)}


def phases(world: World) -> dict[str, str]:
    """Return the phases of all pods by name."""
    return {
        name: "Terminating" if "deletionTimestamp" in pod["metadata"] else pod["status"]["phase"]
        for name, pod in sorted(pods(world).items())
    }


def nodes_of(world: World) -> dict[str, str]:
    """Return where the pods are, by name."""
    return {name: pod["spec"].get("nodeName", "") for name, pod in sorted(pods(world).items())}


def env_of(pod: Json) -> dict[str, Any]:
    """Return the variables of a pod's first container: values, or where they come from."""
    return {
        one["name"]: one.get("value", one.get("valueFrom"))
        for one in pod["spec"]["containers"][0].get("env") or ()
    }


def conditions(world: World) -> dict[str, str]:
    """Return the conditions of the only Workload."""
    (workload,) = world.every(WORKLOAD)
    return {
        one["type"]: f"{one['status']} {one['reason']}"
        for one in (workload.get("status") or {}).get("conditions") or ()
    }


async def delete(world: World, kind: Kind, name: str, space: str = "default") -> None:
    """Delete an object as a person would, and let all controllers react."""
    await world.client.delete(kind, name, space)
    await world.settle()


async def annotate(world: World, kind: Kind, name: str, **says: str) -> None:
    """Change annotations of ours on an object."""
    texts = {f"unisono.dev/{key.replace('_', '-')}": value for key, value in says.items()}
    await world.client.patch(kind, name, "default", {"metadata": {"annotations": texts}})
    await world.settle()
