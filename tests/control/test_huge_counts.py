"""Counts that no cluster has: they cost nothing before admission, and all other jobs run.

Every kind of job asks for 2^31-1 of something (or for a product of such numbers), in a queue and in
none, with and without a floor that partial admission may shrink it to. What is stored of it stays
small, a neighbour in another queue runs, and `unisono why` or an event says what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.control.job_kinds.test_kubeflow import kubeflow_job, replica
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.training_world import job_set, replicated, train_job
from tests.runner.simulated_world import simulated_world
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.cli.why.answer import answer
from unisono.cli.why.read import gather
from unisono.cli.why.text import text
from unisono.control import names
from unisono.control.job_kinds import kubeflow, ray, slurm, volcano
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

HUGE = 2**31 - 1
MOST_INDEXED = 100_000  # of which Kubernetes itself allows no more
# Of everything in the store: what a new cluster has, and the hundred Jobs of a JobSet that waits.
MOST_OBJECTS = 300


def _ray(spec: Json) -> Json:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": spec,
    }


def _pods(gpus: int = 1) -> Json:
    container: Json = {"name": "c", "image": "x"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    says = {"unisono.dev/run-seconds": "forever"}
    return {"metadata": {"annotations": says}, "spec": {"containers": [container]}}


def _ray_spec(gpus: int, **worker: Any) -> Json:
    group = {"groupName": "w", "template": _pods(gpus), "rayStartParams": {}, **worker}
    head = {"template": _pods(0), "rayStartParams": {}}
    return {"headGroupSpec": head, "workerGroupSpecs": [group]}


def _ray_job(gpus: int, **worker: Any) -> Json:
    spec = {"entrypoint": "true", "rayClusterSpec": _ray_spec(gpus, **worker)}
    return {**_ray(spec), "kind": "RayJob"}


def _slurm(**spec: Any) -> Json:
    group = {"name": "main", "nodes": spec.pop("nodes", 1), "template": _pods()}
    return {
        "apiVersion": "unisono.dev/v1",
        "kind": "SlurmJob",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"jobId": 7, "groups": [group], **spec},
    }


def _kubeflow(sort: kubeflow.JobKind, gpus: int, **types: int) -> Json:
    counts = {name: replica(count, gpus=gpus) for name, count in types.items()}
    return kubeflow_job(sort, counts)


def _least(made: Json, least: str = "1") -> Json:
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": least}
    return made


def _loose(made: Json) -> Json:
    return made["spec"].pop("completionMode") and made


Make = Callable[[int], Json]
TRAIN_JOB = Kind("trainer.kubeflow.org/v1alpha1", "TrainJob")
CASES: dict[str, tuple[Kind, Make]] = {
    "job": (names.JOB, lambda gpus: job("j", pods=MOST_INDEXED, gpus=gpus, queue_name="")),
    "job-loose": (names.JOB, lambda gpus: _loose(job("j", pods=HUGE, gpus=gpus, queue_name=""))),
    "job-partial": (
        names.JOB,
        lambda gpus: _least(_loose(job("j", pods=HUGE, gpus=gpus, queue_name=""))),
    ),
    "job-completions": (
        names.JOB,
        lambda gpus: job("j", pods=1, gpus=gpus, queue_name="", completions=HUGE),
    ),
    "jobset-replicas": (
        names.JOB_SET,
        lambda gpus: job_set(replicated(pods=1, gpus=gpus, replicas=HUGE), name="j"),
    ),
    "jobset-parallelism": (
        names.JOB_SET,
        lambda gpus: job_set(replicated(pods=HUGE, gpus=gpus), name="j"),
    ),
    "jobset-sets": (
        names.JOB_SET,
        lambda gpus: job_set(
            *(replicated(f"w{n}", pods=1, gpus=gpus, replicas=HUGE) for n in range(8)), name="j"
        ),
    ),
    "vcjob": (volcano.JOB, lambda gpus: vcjob(task("w", HUGE, gpus=gpus))),
    "vcjob-partial": (
        volcano.JOB,
        lambda gpus: vcjob(task("w", HUGE, gpus=gpus), minAvailable=1),
    ),
    "vcjob-plugins": (
        volcano.JOB,
        lambda gpus: vcjob(
            task("master", 1, gpus=gpus),
            task("worker", HUGE, gpus=gpus),
            minAvailable=1,
            plugins={"svc": [], "ssh": [], "env": [], "pytorch": [], "mpi": [], "tensorflow": []},
        ),
    ),
    "raycluster": (ray.CLUSTER, lambda gpus: _ray(_ray_spec(gpus, replicas=HUGE))),
    "raycluster-least": (
        ray.CLUSTER,
        lambda gpus: _ray(_ray_spec(gpus, replicas=1, minReplicas=HUGE)),
    ),
    "rayjob": (ray.JOB, lambda gpus: _ray_job(gpus, replicas=HUGE, maxReplicas=HUGE)),
    "trainjob": (TRAIN_JOB, lambda gpus: train_job("j", nodes=HUGE, gpus=gpus or 1, queue="")),
    "pytorch": (
        kubeflow.PYTORCH.kind,
        lambda gpus: _kubeflow(kubeflow.PYTORCH, gpus, Master=1, Worker=HUGE),
    ),
    "tensorflow": (
        kubeflow.TENSORFLOW.kind,
        lambda gpus: _kubeflow(kubeflow.TENSORFLOW, gpus, Chief=1, Worker=HUGE, PS=HUGE),
    ),
    "xgboost": (
        kubeflow.XGBOOST.kind,
        lambda gpus: _kubeflow(kubeflow.XGBOOST, gpus, Master=1, Worker=HUGE),
    ),
    "jax": (kubeflow.JAX.kind, lambda gpus: _kubeflow(kubeflow.JAX, gpus, Worker=HUGE)),
    "mpi": (
        kubeflow.MPI.kind,
        lambda gpus: _kubeflow(kubeflow.MPI, gpus, Launcher=1, Worker=HUGE),
    ),
    "slurm": (slurm.JOB, lambda gpus: _slurm(nodes=HUGE)),
    "slurm-array": (slurm.JOB, lambda gpus: _slurm(array={"tasks": f"0-{HUGE}"})),
}


def _play(manifest: Json, kind: Kind) -> tuple[str, int]:
    """Submit it on a node of 8 GPUs, a neighbour after it; return what is said of it, how much."""

    async def run() -> tuple[str, int]:
        async with simulated_world().running() as world:
            # A job that may shrink and asks for nothing takes every place for a pod that it finds.
            kept = node("n2", gpus=0)
            kept["metadata"]["labels"]["for"] = "innocents"
            kept["spec"]["taints"] = [{"key": "kept", "value": "yes", "effect": "NoSchedule"}]
            await world.create(node("n1"), kept, *queue(), *queue("other")[1:])
            await world.create(manifest)
            await world.settle()
            innocent = job("innocent", pods=1, gpus=0, queue_name="lq-other")
            innocent["spec"]["template"]["spec"]["nodeSelector"] = {"for": "innocents"}
            innocent["spec"]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
            await world.create(innocent)
            await world.settle()
            assert _runs(world, "innocent")
            found = answer(await gather(world.client, world.get(kind, "j")))
            said = " ".join(text(found, world.clock.now()).split())
            said += " ".join(note.message for note in world.notes)
            stored = sum(map(len, map(world.every, world.view.kinds())))
            world.restart()  # and again, by a successor that finds all of it stored
            await world.settle()
            assert _runs(world, "innocent")
            assert sum(map(len, map(world.every, world.view.kinds()))) <= stored + 20
            return said, stored

    return asyncio.run(run())


def _runs(world: World, name: str) -> bool:
    return bool((world.get(names.JOB, name).get("status") or {}).get("ready"))


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [1, 0], ids=["gpus", "nothing"])
@pytest.mark.parametrize("place", ["queue", "no-queue"])
@pytest.mark.parametrize("case", CASES)
def test_a_count_that_no_cluster_has_costs_nothing(case: str, place: str, gpus: int) -> None:
    kind, make = CASES[case]
    manifest = make(gpus)
    if place == "queue":
        labels = manifest["metadata"].setdefault("labels", {})
        labels["kueue.x-k8s.io/queue-name"] = "lq-cq"
    said, stored = _play(manifest, kind)
    assert stored <= MOST_OBJECTS, case
    assert said
