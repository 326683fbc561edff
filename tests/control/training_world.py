"""Training jobs in a control plane with simulated pods: builders, and words for what is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import yaml

from tests.runner.simulated_world import node, simulated_world
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find, timestamp
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

__all__ = ["Json", "World", "node"]

MANIFESTS = Path(__file__).parents[1] / "kubectl" / "manifests"


def play(story: Callable[[World], Awaitable[None]]) -> None:
    """Run a story on a new cluster."""

    async def run() -> None:
        async with simulated_world().running() as world:
            await story(world)

    asyncio.run(run())


def gpu_node(name: str, gpus: int = 8) -> Json:
    """Return a node of seed 004."""
    made = node(name, **{"nvidia.com/gpu": str(gpus)})
    made["metadata"]["labels"] |= {
        "node.kubernetes.io/instance-type": "g6e.48xlarge",
        "topology.kubernetes.io/zone": "ap-northeast-2a",
    }
    return made


def queues(gpus: int = 16, **cluster_queue: Any) -> list[Json]:
    """Return a queue `lq` with a quota of GPUs, and its flavor."""
    api = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
    quota = {"name": "nvidia.com/gpu", "nominalQuota": str(gpus)}
    group = {
        "coveredResources": ["nvidia.com/gpu"],
        "flavors": [{"name": "f", "resources": [quota]}],
    }
    spec = {"namespaceSelector": {}, "resourceGroups": [group], **cluster_queue}
    labels = {"topology.kubernetes.io/zone": "ap-northeast-2a"}
    local = {"name": "lq", "namespace": "default"}
    return [
        {
            **api,
            "kind": "ResourceFlavor",
            "metadata": {"name": "f"},
            "spec": {"nodeLabels": labels},
        },
        {**api, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": spec},
        {**api, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": "cq"}},
    ]


def t5_large() -> Json:
    """Return the TrainJob of seed 004 with a quiet command."""
    text = (MANIFESTS / "t5-large.yaml").read_text(encoding="utf-8")
    made: Json = yaml.safe_load(text)
    made["metadata"]["namespace"] = "default"
    made["spec"]["trainer"]["command"] = ["sleep", "infinity"]
    return made


def train_job(
    name: str = "t", *, nodes: int = 2, gpus: int = 8, queue: str = "lq", **more: Any
) -> Json:
    """Return a TrainJob that runs until it is told to stop."""
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    trainer: Json = {
        "numNodes": nodes,
        "image": "x",
        "command": ["sleep", "infinity"],
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": str(gpus)}},
        **more.pop("trainer", {}),
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": labels,
            "annotations": more.pop("annotations", {}),
        },
        "spec": {
            "runtimeRef": {"name": more.pop("runtime", "torch-distributed")},
            "trainer": trainer,
            **more,
        },
    }


def replicated(name: str = "w", *, pods: int = 2, gpus: int = 0, **more: Any) -> Json:
    """Return one replicated job of a JobSet."""
    pod = {
        "restartPolicy": more.pop("restart", "Never"),
        "containers": [
            {
                "name": "main",
                "image": "x",
                "command": more.pop("command", ["sleep", "infinity"]),
                **({"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}),
            }
        ],
    }
    outer: Json = {
        key: more.pop(key) for key in ("replicas", "dependsOn", "groupName") if key in more
    }
    template = {"metadata": {"annotations": more.pop("says", {})}, "spec": pod}
    spec = {"parallelism": pods, "completions": pods, "template": template, **more}
    return {"name": name, "template": {"spec": spec}, **outer}


def job_set(*jobs: Json, name: str = "js", queue: str = "", **more: Any) -> Json:
    """Return a JobSet."""
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": labels,
        "annotations": more.pop("annotations", {}),
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": list(jobs) or [replicated()], **more},
    }


# ---- what is seen ------------------------------------------------------------------------------


def pods(world: World) -> list[Json]:
    """Return the pods that are not over, by name."""
    living = [
        one
        for one in world.every(names.POD)
        if one["status"].get("phase") not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in one["metadata"]
    ]
    return sorted(living, key=lambda one: str(one["metadata"]["name"]))


def places(world: World) -> dict[str, str]:
    """Return which host name is on which node, of pods that run."""
    return {
        one["spec"]["hostname"]: one["spec"]["nodeName"]
        for one in pods(world)
        if one["status"].get("phase") == "Running"
    }


def status(world: World, kind: Kind, name: str) -> Json:
    """Return the status of an object."""
    found: Json = world.get(kind, name).get("status") or {}
    return found


def conditions(world: World, kind: Kind, name: str) -> dict[str, tuple[str, str]]:
    """Return the status and reason of every condition."""
    found = status(world, kind, name).get("conditions") or []
    return {one["type"]: (one["status"], one["reason"]) for one in found}


def state(world: World, name: str) -> str:
    """Return what `kubectl get trainjob` prints as STATE."""
    found = status(world, names.TRAIN_JOB, name).get("conditions") or [{"type": ""}]
    assert find(found, found[-1]["type"])
    return str(found[-1]["type"])


def events(world: World, reason: str) -> list[str]:
    """Return the messages of the events of a reason."""
    return [note.message for note in world.notes if note.reason == reason]


async def crash(world: World, pod: Json, code: int = 1, reason: str = "Error") -> None:
    """Let the containers of a pod end with an error."""
    at = timestamp(world.clock.now())
    ended = {"exitCode": code, "reason": reason, "startedAt": at, "finishedAt": at}
    statuses = [
        {**one, "ready": False, "state": {"terminated": ended}}
        for one in pod["status"]["containerStatuses"]
    ]
    await world.set_status(
        names.POD, pod["metadata"]["name"], {"phase": "Failed", "containerStatuses": statuses}
    )


async def incident(world: World, index: int = 0, seconds: float = 1000) -> None:
    """Crash one of the running pods, and wait until all run again, or none does."""
    await crash(world, pods(world)[index])
    await world.settle()
    await world.pass_time(seconds)
