"""Pods that ask for devices by dynamic resource allocation wait, in every kind of job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.test_huge_counts import _ray, _ray_job, _ray_spec
from tests.control.training_world import job_set, replicated, train_job
from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from unisono.control import names
from unisono.control.conditions import find
from unisono.kube.form import Json

CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]


def story(tell: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        async with World().running() as world:
            await world.create(node("n1"), *queue(gpus=64))
            await tell(world)

    asyncio.run(main())


def claiming(manifest: Json) -> Json:
    """Return a job with a resource claim in every pod spec."""

    def walk(one: Any) -> None:
        if isinstance(one, dict):
            if isinstance(one.get("containers"), list):
                one["resourceClaims"] = CLAIMS
            for below in one.values():
                walk(below)
        elif isinstance(one, list):
            for below in one:
                walk(below)

    walk(manifest)
    return manifest


def in_queue(manifest: Json) -> Json:
    manifest["metadata"].setdefault("labels", {})[names.QUEUE_LABEL] = "lq-cq"
    return manifest


def pod(name: str, **more: Any) -> Json:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], **more},
    }


JOBS: dict[str, Callable[[], Json]] = {
    "Job": lambda: job("train", gpus=1),
    "JobSet": lambda: job_set(replicated("w", pods=2), queue="lq-cq"),
    "PyTorchJob": lambda: in_queue(torch()),
    "Volcano Job": lambda: vcjob(task("t", 1)),
    "RayCluster": lambda: in_queue(_ray(_ray_spec(1, replicas=1))),
    "RayJob": lambda: in_queue(_ray_job(1, replicas=1)),
    "Pod": lambda: in_queue(pod("one")),
}


@pytest.mark.parametrize("kind", JOBS)
def test_no_pod_gets_a_node(kind: str) -> None:
    async def tell(world: World) -> None:
        await world.create(claiming(JOBS[kind]()))
        await world.settle()
        [workload] = world.every(names.WORKLOAD)
        reserved = find(workload["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert (reserved["status"], reserved["reason"]) == ("False", "Misconfigured")
        assert "asks for devices by resource claim gpu" in reserved["message"]
        assert not any(one["spec"].get("nodeName") for one in world.every(names.POD))

    story(tell)


def test_the_runtime_of_a_train_job_may_ask_for_them() -> None:
    async def tell(world: World) -> None:
        replica = {"name": "node", "template": {"spec": {"template": {}}}}
        template = claiming({"spec": {"containers": [{"name": "node", "image": "x"}]}})
        replica["template"] = {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": template},
        }
        runtime = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "ClusterTrainingRuntime",
            "metadata": {"name": "claims"},
            "spec": {
                "mlPolicy": {"numNodes": 1, "torch": {}},
                "template": {"spec": {"replicatedJobs": [replica]}},
            },
        }
        await world.create(runtime, train_job(nodes=1, gpus=1, queue="lq-cq", runtime="claims"))
        await world.settle()
        [workload] = world.every(names.WORKLOAD)
        reserved = find(workload["status"]["conditions"], "QuotaReserved")
        assert reserved is not None
        assert "asks for devices by resource claim gpu" in reserved["message"]

    story(tell)


def test_a_group_of_pods_waits_as_a_whole() -> None:
    async def tell(world: World) -> None:
        for number in range(2):
            one = claiming(pod(f"p{number}")) if number else pod(f"p{number}")
            one["metadata"]["labels"] = {
                names.QUEUE_LABEL: "lq-cq",
                "kueue.x-k8s.io/pod-group-name": "g",
            }
            one["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2"}
            await world.create(one)
        await world.settle()
        assert not any(one["spec"].get("nodeName") for one in world.every(names.POD))

    story(tell)


def test_a_pod_in_no_queue_waits() -> None:
    async def tell(world: World) -> None:
        await world.create(claiming(pod("one")))
        await world.settle()
        [one] = world.every(names.POD)
        assert "nodeName" not in one["spec"]
        scheduled = find(one["status"]["conditions"], "PodScheduled")
        assert scheduled is not None
        assert "asks for devices by resource claim gpu" in scheduled["message"]

    story(tell)
