"""A tenant with the rights of `unisono:batch-user` alone cannot stop the jobs of others.

Two replicas, so that the one that takes over meets everything again.
"""

from __future__ import annotations

import copy
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.real.cluster import account, asked, put, there, until
from tests.real.control_plane import ControlPlane
from tests.real.stage import Stage
from unisono.control import names
from unisono.kube.client import Client
from unisono.kube.errors import StatusError
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

pytestmark = [pytest.mark.real, pytest.mark.slow]

TENANT = "tenant"
MOST = 2**31 - 1
_ROLES = "rbac.authorization.k8s.io"


def tenant(stage: Stage) -> ControlPlane:
    """Return the cluster for a user who may submit jobs in one namespace."""
    subject = {"kind": "ServiceAccount", "name": "student", "namespace": TENANT}
    put(
        stage.plane,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "student", "namespace": TENANT},
        },
        {
            "apiVersion": f"{_ROLES}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "student", "namespace": TENANT},
            "roleRef": {"apiGroup": _ROLES, "kind": "ClusterRole", "name": "unisono:batch-user"},
            "subjects": [subject],
        },
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": {"name": "team", "namespace": TENANT},
            "spec": {"clusterQueue": "all"},
        },
    )
    return account(stage.plane, TENANT, "student", stage.directory / "student")


def template(limits: Json | None = None, annotations: Json | None = None) -> Json:
    container = {"name": "m", "image": "x", "resources": {"limits": limits or {"cpu": "1"}}}
    return {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def job_set(name: str, replicas: int, pods: Json, **job: Any) -> Json:
    jobs = {"spec": {**job, "template": pods}}
    made = {"name": "workers", "replicas": replicas, "template": jobs}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "labels": {names.QUEUE_LABEL: "team"}},
        "spec": {"replicatedJobs": [made]},
    }


def volcano_job(name: str, replicas: int, pods: Json) -> Json:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {names.QUEUE_LABEL: "team"}},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": replicas,
            "tasks": [{"name": "task", "replicas": replicas, "template": pods}],
        },
    }


def batch_job(name: str, pods: int, template_: Json) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {names.QUEUE_LABEL: "team"}},
        "spec": {"parallelism": pods, "completions": pods, "template": template_},
    }


SLICES = {
    "kueue.x-k8s.io/podset-slice-required-topology": "cloud.provider.com/topology-rack",
    "kueue.x-k8s.io/podset-slice-size": "4",
}
CULPRITS = (
    job_set("sliced", 1, template(annotations=SLICES), parallelism=8, completions=8),
    volcano_job("negative", 2, template({"nvidia.com/gpu": "-8"})),
    volcano_job("endless", MOST, template()),
    job_set("endless", MOST, template()),
    job_set("product", MOST, template(), parallelism=MOST, completions=MOST),
    batch_job("overflow", 1_000_000, template({"cpu": "9000000000000000"})),
)


def submit_all(plane: ControlPlane) -> dict[str, str]:
    """Create every culprit; return what the API said to those that it refused."""

    async def work(client: Client) -> dict[str, str]:
        refused: dict[str, str] = {}
        for one in copy.deepcopy(CULPRITS):
            one["metadata"]["namespace"] = TENANT
            try:
                await client.create(one)
            except StatusError as answer:
                if answer.code >= 500:
                    raise
                refused[f"{one['kind']} {one['metadata']['name']}"] = str(answer)
        return refused

    return asked(plane, work)


def unexplained(plane: ControlPlane) -> list[str]:
    """Return the tenant's jobs that wait, and of which nothing says why."""
    workloads = there(plane, names.WORKLOAD, TENANT)
    told = {
        owner["uid"]
        for one in workloads
        for owner in one["metadata"].get("ownerReferences") or ()
        if any(
            each["type"] == "QuotaReserved" and each.get("message")
            for each in (one.get("status") or {}).get("conditions") or ()
        )
    }
    events = there(plane, Kind("v1", "Event"), TENANT)
    told |= {one["involvedObject"].get("uid", "") for one in events if one.get("type") == "Warning"}
    kinds = {Kind(one["apiVersion"], one["kind"]) for one in CULPRITS}
    return [
        f"{one['kind']} {one['metadata']['name']}"
        for kind in kinds
        for one in there(plane, kind, TENANT)
        if one["metadata"]["uid"] not in told and not one["metadata"].get("ownerReferences")
    ]


def test_others_go_on_beside_a_hostile_tenant(stage: Stage, tmp_path: Path) -> None:
    first = stage.replica()
    first.until_told("leading")
    second = stage.replica()
    second.until_told("all is read")
    student = tenant(stage)
    refused = submit_all(student)
    print("refused at once:", refused)
    stage.submit("beside", 2)
    stage.until_all_ended()
    explained = lambda: not unexplained(stage.plane)
    until("every culprit is explained", explained, instead=lambda: str(unexplained(stage.plane)))
    first.process.send_signal(signal.SIGKILL)
    second.until_told("leading")
    stage.submit("after", 2)
    stage.judge()
    assert second.process.poll() is None
