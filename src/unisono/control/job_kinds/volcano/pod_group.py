"""PodGroups of Volcano jobs, which tell tools of Volcano's how far a gang is.

    Pending     the job waits in its queue
    Inqueue     admitted; its pods are on their way
    Running     as many pods run as must start together
    Completed   the job is over

Upstream deletes the group when a job restarts, which puts the job at the end of its queue; here it
stays, as quota and nodes do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control.actions import Create, Json, Patch, Ref, Steps
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds.amounts import requests_of, total, written
from unisono.control.job_kinds.volcano import api
from unisono.control.job_kinds.volcano.phases import ENDED, phase_of
from unisono.control.job_kinds.volcano.pods import group_name
from unisono.control.job_kinds.volcano.tasks import least_pods, task_minima, tasks_of
from unisono.control.jobs.pods import is_deleting
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class VolcanoGroups:
    """Keeps the PodGroup of every Volcano job."""

    name = "vcjob-groups"
    watches: Sequence[Kind] = (api.JOB, api.POD_GROUP)
    owner_kind: Kind = api.JOB

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job or its group."""
        return (own_key(obj),) if kind == api.JOB else owner_key(obj, api.JOB)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make the group of a job, and keep its status."""
        job = view.get(api.JOB, key.name, key.namespace)
        if job is None or is_deleting(job):
            return
        group = view.get(api.POD_GROUP, group_name(job), key.namespace)
        if group is None:
            yield Create(_group(job))
            return
        changes: Json = {}
        if (group.get("spec") or {}).get("minMember", 0) != least_pods(job):
            changes["spec"] = _group(job)["spec"]
        status = _status(job)
        if {key: value for key, value in (group.get("status") or {}).items() if value} != {
            key: value for key, value in status.items() if value
        }:
            changes["status"] = status
        if changes:
            yield Patch(Ref.to(group), changes)


def _group(job: Json) -> Json:
    tasks, minima = tasks_of(job), task_minima(job)
    asked = total(
        (least, requests_of(task.template)) for task, least in zip(tasks, minima, strict=True)
    )
    spec: Json = {
        "minMember": least_pods(job),
        "minTaskMember": {task.name: task.own_least for task in tasks},
        "queue": job["spec"].get("queue") or api.DEFAULT_QUEUE,
        "minResources": written(asked),
    }
    for field in ("priorityClassName", "networkTopology"):
        if job["spec"].get(field):
            spec[field] = job["spec"][field]
    return {
        "apiVersion": api.POD_GROUP.api_version,
        "kind": api.POD_GROUP.kind,
        "metadata": {
            "name": group_name(job),
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
        "status": _status(job),
    }


def _status(job: Json) -> Json:
    status = job.get("status") or {}
    return {
        "phase": _phase(job),
        "running": status.get("running", 0),
        "succeeded": status.get("succeeded", 0),
        "failed": status.get("failed", 0),
    }


def _phase(job: Json) -> str:
    if phase_of(job) in ENDED:
        return "Completed"
    if not (job["metadata"].get("annotations") or {}).get(api.ADMITTED):
        return "Pending"
    return "Running" if phase_of(job) == "Running" else "Inqueue"
