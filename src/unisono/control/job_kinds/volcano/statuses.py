"""The statuses of Volcano's PodGroups and Queues, which its tools read.

A PodGroup says how far the gang of a Volcano job is:

    Pending     the job waits in its queue
    Inqueue     admitted; its pods are on their way
    Running     as many pods run as must start together
    Completed   the job is over

Upstream deletes the group when a job restarts, which puts the job at the end of its queue; here it
stays, as quota and nodes do. A Queue says whether it is open, and how many groups are in it:

    Open ──CloseQueue──▶ Closing ──empty──▶ Closed ──OpenQueue──▶ Open

A queue that is not open admits nothing (`kinds.volcano.queues`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Create, Delete, Json, Patch, Ref, Steps
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.volcano.phases import ENDED, job_phase
from unisono.control.job_kinds.volcano.pods import group_name
from unisono.control.job_kinds.volcano.tasks import least_pods, task_minima, tasks_of
from unisono.control.jobs.pods import is_deleting, requests_of, total_requests, written_amounts
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class VolcanoGroups:
    """Keeps the PodGroup of every Volcano job."""

    name = "vcjob-groups"
    watches: Sequence[Kind] = (volcano.JOB, volcano.POD_GROUP)
    owner_kind: Kind = volcano.JOB

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job or its group."""
        return (own_key(obj),) if kind == volcano.JOB else owner_key(obj, volcano.JOB)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make the group of a job, and keep its status."""
        job = view.get(volcano.JOB, key.name, key.namespace)
        if job is None or is_deleting(job):
            return
        group = view.get(volcano.POD_GROUP, group_name(job), key.namespace)
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
    asked = total_requests(
        (least, requests_of(task.template)) for task, least in zip(tasks, minima, strict=True)
    )
    spec: Json = {
        "minMember": least_pods(job),
        "minTaskMember": {task.name: task.own_least for task in tasks},
        "queue": job["spec"].get("queue") or volcano.DEFAULT_QUEUE,
        "minResources": written_amounts(asked),
    }
    for field in ("priorityClassName", "networkTopology"):
        if job["spec"].get(field):
            spec[field] = job["spec"][field]
    return {
        "apiVersion": volcano.POD_GROUP.api_version,
        "kind": volcano.POD_GROUP.kind,
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
    if job_phase(job) in ENDED:
        return "Completed"
    if not (job["metadata"].get("annotations") or {}).get(volcano.ADMITTED):
        return "Pending"
    return "Running" if job_phase(job) == "Running" else "Inqueue"


# ---- queues --------------------------------------------------------------------------------------

_COUNTED = ("Pending", "Inqueue", "Running", "Unknown", "Completed")


def queue_of_group(group: Json) -> Iterable[str]:
    """Index PodGroups by their queue."""
    return ((group.get("spec") or {}).get("queue") or volcano.DEFAULT_QUEUE,)


def queue_of_job(job: Json) -> Iterable[str]:
    """Index jobs by their queue."""
    return (job["spec"].get("queue") or volcano.DEFAULT_QUEUE,)


BY_QUEUE = "queue"


class VolcanoQueues:
    """Keeps the status of queues."""

    name = "volcano-queues"
    watches: Sequence[Kind] = (names.VOLCANO_QUEUE, volcano.POD_GROUP, volcano.JOB, volcano.COMMAND)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue, a group or a job in it, or a command about it."""
        if kind == names.VOLCANO_QUEUE:
            yield own_key(obj)
        elif kind == volcano.COMMAND:
            target = obj.get("target") or {}
            if target.get("kind") == names.VOLCANO_QUEUE.kind:
                yield Key("", target.get("name", ""))
        else:
            found = queue_of_group(obj) if kind == volcano.POD_GROUP else queue_of_job(obj)
            for name in found:
                yield Key("", name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Carry out commands, and count."""
        queue = view.get(names.VOLCANO_QUEUE, key.name)
        if queue is None or "deletionTimestamp" in queue["metadata"]:
            return
        groups = view.by(volcano.POD_GROUP, BY_QUEUE, key.name)
        phases = Counter((group.get("status") or {}).get("phase") for group in groups)
        status: Json = {phase.lower(): phases.get(phase, 0) for phase in _COUNTED}
        status["allocated"] = _allocated(view.by(volcano.JOB, BY_QUEUE, key.name))
        commands = [one for one in view.all(volcano.COMMAND) if key in self._about(one, view)]
        is_empty = sum(phases.values()) == phases.get("Completed", 0)
        status["state"] = _state(queue, commands, is_empty=is_empty)
        old = queue.get("status") or {}
        if any((old.get(name) or 0) != (value or 0) for name, value in status.items()):
            gone = {
                name: None for name in old.get("allocated") or () if name not in status["allocated"]
            }
            status["allocated"] = {**status["allocated"], **gone}
            yield Patch(Ref.to(queue), {"status": status}, "status")
        for command in commands:
            yield Delete(Ref.to(command))

    def _about(self, command: Json, view: View) -> list[Key]:
        return list(self.touched(volcano.COMMAND, command, view))


def _state(queue: Json, commands: Sequence[Json], *, is_empty: bool) -> str:
    state = (queue.get("status") or {}).get("state") or "Open"
    for command in commands:
        match command.get("action"):
            case "CloseQueue":
                state = "Closing"
            case "OpenQueue":
                state = "Open"
            case _:
                continue
    return "Closed" if state == "Closing" and is_empty else str(state)


def _allocated(jobs: Sequence[Json]) -> dict[str, str]:
    """Return what the running pods of a queue's jobs ask for."""
    parts = []
    for job in jobs:
        counts = (job.get("status") or {}).get("taskStatusCount") or {}
        if job_phase(job) in ENDED:
            continue
        for task in tasks_of(job):
            running = (counts.get(task.name) or {}).get("phase", {}).get("Running", 0)
            parts.append((running, requests_of(task.template)))
    return {
        name: text for name, text in written_amounts(total_requests(parts)).items() if text != "0"
    }
