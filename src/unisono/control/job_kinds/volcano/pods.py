"""Pods of a Volcano job, and the volumes that all of them share."""

from __future__ import annotations

import copy

from unisono.control.actions import Json
from unisono.control.conditions import timestamp
from unisono.control.job_kinds.volcano import api
from unisono.control.job_kinds.volcano.plugins import equip
from unisono.control.job_kinds.volcano.tasks import Task, pod_name
from unisono.control.jobs.adapter import Injection, injected
from unisono.control.jobs.pods import pod_from
from unisono.control.jobs.workload import owner_reference

RESTART_COUNT = "UNISONO_RESTART_COUNT"


def group_name(job: Json) -> str:
    """Return the name of a job's PodGroup."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def new_pod(
    job: Json, task: Task, index: int, injection: Injection | None, *, lost_at: float | None
) -> Json:
    """Return one pod of a task as its template, its plugins and its admission want it."""
    metadata, status = job["metadata"], job.get("status") or {}
    template: Json = copy.deepcopy(task.template)
    if injection is not None:
        changes = injected(template, injection)
        template["metadata"] = {**(template.get("metadata") or {}), **changes["metadata"]}
        template["spec"] = {**template["spec"], **changes.get("spec", {})}
    queue = job["spec"].get("queue") or api.DEFAULT_QUEUE
    labels = {
        api.JOB_NAME: metadata["name"],
        api.JOB_NAMESPACE: metadata["namespace"],
        api.QUEUE_NAME: queue,
        api.TASK: task.name,
        api.INDEX: str(index),
    }
    annotations = {
        api.JOB_NAME: metadata["name"],
        api.QUEUE_NAME: queue,
        api.TASK: task.name,
        api.INDEX: str(index),
        api.VERSION: str(status.get("version", 0)),
        api.RETRIES: str(status.get("retryCount", 0)),
        api.TEMPLATE: f"{metadata['name']}-{task.name}",
        api.GROUP_NAME: group_name(job),
    }
    if lost_at is not None:
        annotations[api.LOST_AT] = timestamp(lost_at)
    name = pod_name(job, task.name, index)
    pod = pod_from(template, job, name, labels=labels, annotations=annotations)
    equip(pod, job, task, index)
    _mount_volumes(pod, job)
    for one in pod["spec"]["containers"]:
        count = {"name": RESTART_COUNT, "value": str(status.get("retryCount", 0))}
        one["env"] = [*(one.get("env") or ()), count]
    return pod


def _mount_volumes(pod: Json, job: Json) -> None:
    for place, volume in enumerate(job["spec"].get("volumes") or ()):
        name = f"volume-{place}"
        claim = claim_name(job, place)
        pod["spec"]["volumes"] = [
            *(pod["spec"].get("volumes") or ()),
            {"name": name, "persistentVolumeClaim": {"claimName": claim}},
        ]
        for one in pod["spec"]["containers"]:
            mount = {"name": name, "mountPath": volume["mountPath"]}
            one["volumeMounts"] = [*(one.get("volumeMounts") or ()), mount]


def claim_name(job: Json, place: int) -> str:
    """Return the claim behind one of a job's volumes: the one it names, or one of its own."""
    named = job["spec"]["volumes"][place].get("volumeClaimName")
    return named or f"{job['metadata']['name']}-volume-{place}"


def new_claims(job: Json) -> list[Json]:
    """Return the claims that a job describes itself; they live as long as it does."""
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": claim_name(job, place),
                "namespace": job["metadata"]["namespace"],
                "ownerReferences": [owner_reference(job)],
            },
            "spec": volume["volumeClaim"],
        }
        for place, volume in enumerate(job["spec"].get("volumes") or ())
        if volume.get("volumeClaim")
    ]
