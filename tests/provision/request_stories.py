"""Stories of autoscalers that are asked for nodes: ProvisioningRequests and Kueue's check."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.support.control_objects import job, node, queue
from tests.support.control_world import World
from tests.support.provisioning_world import (
    bound,
    claims,
    cloud,
    condition,
    only_workload,
    pool,
    told,
)
from unisono.control import names
from unisono.control.admission.placement import hosts_of
from unisono.control.assembly import OPERATORS, Assembly, cluster
from unisono.control.view import View
from unisono.kinds.policy.settings import Settings
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.provision import assembly as provisioning

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
TEMPLATE = Kind("v1", "PodTemplate")


def check(name: str = "sample-prov", *, parameters: str = "sample") -> Json:
    """Return Kueue's check that asks an autoscaler."""
    return {
        "apiVersion": names.KUEUE,
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "spec": {
            "controllerName": "kueue.x-k8s.io/provisioning-request",
            "parameters": {
                "apiGroup": "kueue.x-k8s.io",
                "kind": "ProvisioningRequestConfig",
                "name": parameters,
            },
        },
    }


def config(**spec: Any) -> Json:
    """Return how it asks."""
    return {
        "apiVersion": names.KUEUE,
        "kind": "ProvisioningRequestConfig",
        "metadata": {"name": "sample"},
        "spec": {"provisioningClassName": CLASS, **spec},
    }


def checked_queue(gpus: int = 16) -> list[Json]:
    """Return a queue whose workloads have to have the check's consent."""
    made = queue(gpus=gpus)
    for one in made:
        if one["kind"] == "ClusterQueue":
            rules = [{"name": "sample-prov"}]
            one["spec"]["admissionChecksStrategy"] = {"admissionChecks": rules}
    return [config(managedResources=["nvidia.com/gpu"]), check(), *made]


def requests(world: World) -> list[Json]:
    """Return the requests that there are."""
    return world.every(names.PROVISIONING_REQUEST)


def said(world: World) -> Json:
    """Return what the check says of the only workload."""
    (state,) = only_workload(world)["status"]["admissionChecks"]
    return dict(state)


def asked_only_if_needed() -> None:
    """A workload without managed resources is Ready at once; the others wait for their machines."""

    async def story(world: World) -> None:
        await world.create(*checked_queue(), pool(zones=("ap-northeast-2a",)), node("small-1"))
        await world.settle()
        active = condition(world.get(names.ADMISSION_CHECK, "sample-prov", ""), "Active")
        assert active["status"] == "True"
        await world.create(job("plain", pods=1, gpus=0, seconds=5))
        await world.pass_time(30)
        assert requests(world) == []
        assert said(world)["message"] == "the provisioning request is not needed"
        assert condition(world.get(names.JOB, "plain"), "Complete")["status"] == "True"
        await world.client.delete(names.JOB, "plain", "default")
        await world.settle()

        await world.create(job("train", pods=2, gpus=8, seconds=600))
        await world.pass_time(20)
        workload = only_workload(world)
        (request,) = requests(world)
        assert request["metadata"]["name"] == f"{workload['metadata']['name']}-sample-prov-1"
        assert request["spec"]["podSets"][0]["count"] == 2
        assert request["spec"]["parameters"] == {"ValidUntilSeconds": "1200"}
        assert condition(request, "Accepted")["status"] == "True"
        assert "2 × g6e.48xlarge" in condition(request, "Provisioned")["message"]
        assert said(world)["state"] == "Pending"
        assert said(world)["message"] == condition(request, "Provisioned")["message"]
        (template,) = world.every(TEMPLATE)
        assert template["metadata"]["name"] == f"ppt-{request['metadata']['name']}-main"
        assert bound(world) == {}
        await world.pass_time(100)
        assert condition(requests(world)[0], "Provisioned")["status"] == "True"
        assert said(world)["state"] == "Ready"
        assert len(bound(world)) == 2
        for pod in world.every(names.POD):
            if pod["metadata"]["name"].startswith("train"):
                annotations = pod["metadata"]["annotations"]
                consumed = annotations["autoscaling.x-k8s.io/consume-provisioning-request"]
                assert consumed == request["metadata"]["name"]

    told(story)


def attempts_have_an_end() -> None:
    """Machines that never come: three more attempts after growing pauses, then it is rejected."""

    async def story(world: World) -> None:
        await world.create(*checked_queue(), pool(zones=("ap-northeast-2a",)))
        await world.create(cloud(failures={"register": 1.0}))
        await world.create(job("train", pods=2, gpus=8))
        for attempt in (1, 2, 3, 4):
            await world.pass_time(30)
            (request,) = requests(world)
            assert request["metadata"]["name"].endswith(f"-sample-prov-{attempt}")
            await world.pass_time(15 * 60 + 20)
            assert requests(world) == []
            assert said(world)["retryCount"] == attempt
            await world.pass_time(60 * 2 ** (attempt - 1) - 45)
        workload = only_workload(world)
        assert workload["spec"]["active"] is False
        await world.pass_time(4000)
        assert requests(world) == []
        assert claims(world) == []

    told(story)


# ---- where an autoscaler of others brings nodes ------------------------------------------------


def asking(view: View, settings: Settings) -> Assembly:
    """Return the controllers of a cluster on which another autoscaler runs."""
    made = cluster(view, settings, epoch=1, operators=OPERATORS)
    return dataclasses.replace(
        made, controllers=(*made.controllers, *provisioning.requests(settings))
    )


async def say(world: World, request: Json, kind: str, message: str, **more: Any) -> None:
    """Say something of a request, as the cluster autoscaler would."""
    written = [
        {
            "type": one,
            "status": "True",
            "reason": one,
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for one in dict.fromkeys(("Accepted", kind))
    ]
    await world.set_status(
        names.PROVISIONING_REQUEST,
        request["metadata"]["name"],
        {"conditions": written, **more},
        request["metadata"]["namespace"],
    )


async def answer(world: World, request: Json, kind: str, message: str, **more: Any) -> None:
    """Set it, and wait until every controller has seen it."""
    await say(world, request, kind, message, **more)
    await world.settle()


def assigned(world: World) -> list[str]:
    """Return the hosts that the only workload was given."""
    return [host for host, _ in hosts_of(only_workload(world))]


async def join(world: World, *made: Json) -> None:
    """Add nodes, and let their kubelets be ready: then they take pods."""
    await world.create(*made)
    for one in made:
        await world.client.patch(
            names.NODE, one["metadata"]["name"], "", {"spec": {"taints": None}}
        )
    await world.settle()
