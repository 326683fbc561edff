"""The statuses of Volcano's PodGroups and Queues, which its tools read.

A PodGroup says how far the gang of a Volcano job is (`control.volcano_groups`). Upstream deletes
the group when a job restarts, which puts the job at the end of its queue; here it stays, as quota
and nodes do. A Queue says whether it is open, and how many groups are in it:

    Open ──CloseQueue──▶ Closing ──empty──▶ Closed ──OpenQueue──▶ Open

The queues below one that is closed are closed with it, and open again with it. A queue that is not
open admits nothing (`kinds.volcano.queues`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from unisono.control import names
from unisono.control.actions import Again, Create, Delete, Json, Note, Patch, Ref, Steps
from unisono.control.controller import own_key, owner_key
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.volcano.phases import ENDED, job_phase
from unisono.control.job_kinds.volcano.pods import group_name
from unisono.control.job_kinds.volcano.tasks import least_pods, task_minima, tasks_of
from unisono.control.jobs.pods import is_deleting, requests_of, total_requests, written_amounts
from unisono.control.jobs.workload import owner_reference, workload_name
from unisono.control.view import View
from unisono.control.volcano_groups import (
    LOOK_AGAIN_SECONDS,
    Room,
    phase_of_group,
    unschedulable_event,
    with_scheduling,
)
from unisono.kinds.kueue.waiting import waiting_message
from unisono.kinds.quantity import Quantity, format_amount
from unisono.kinds.views.objects import Conditions
from unisono.kinds.volcano.queues import ROOT
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class VolcanoGroups:
    """Keeps the PodGroup of every Volcano job."""

    name = "vcjob-groups"
    watches: Sequence[Kind] = (volcano.JOB, volcano.POD_GROUP, names.POD, names.WORKLOAD)
    owner_kind: Kind = volcano.JOB

    def __init__(self) -> None:
        """Begin without knowing what room there is."""
        self._room = Room()

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job, its group, one of its pods, or its Workload."""
        return (own_key(obj),) if kind == volcano.JOB else owner_key(obj, volcano.JOB)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Make the group of a job, and keep what it asks for and its status."""
        job = view.get(volcano.JOB, key.name, key.namespace)
        if job is None or is_deleting(job):
            return
        group = view.get(volcano.POD_GROUP, group_name(job), key.namespace)
        if group is None:
            if job_phase(job) not in ENDED:
                group = yield Create(_group(job))
            return
        changes: Json = {}
        wanted = _group(job)["spec"]
        spec = group.get("spec") or {}
        if any(spec.get(name) != value for name, value in wanted.items()):
            gone = dict.fromkeys(spec.get("minResources") or ())
            changes["spec"] = {**wanted, "minResources": {**gone, **wanted["minResources"]}}
        status = self._status(job, {**group, "spec": wanted}, view, now)
        if {key: value for key, value in (group.get("status") or {}).items() if value} != {
            key: value for key, value in status.items() if value
        }:
            changes["status"] = status
        if changes:
            yield Patch(Ref.to(group), changes)
            yield from unschedulable_event(group, status)
        if status["phase"] == "Pending":
            yield Again(now + LOOK_AGAIN_SECONDS)

    def _status(self, job: Json, group: Json, view: View, now: float) -> Json:
        metadata, counted = job["metadata"], job.get("status") or {}
        version = str(counted.get("version", 0))
        pods = [
            pod
            for pod in view.owned(names.POD, metadata["uid"])
            if (pod["metadata"].get("annotations") or {}).get(volcano.VERSION) == version
        ]
        least, total = least_pods(job), sum(task.replicas for task in tasks_of(job))
        if job_phase(job) in ENDED:
            phase = "Completed"
        else:
            has_room = self._room.fits(group, view, now)
            phase = phase_of_group(least, pods, has_room=has_room)
            if phase == "Completed" and len(pods) < total:
                phase = "Inqueue"  # its other pods are still to come
        name = workload_name(volcano.JOB, metadata["name"], metadata["uid"])
        workload = view.get(names.WORKLOAD, name, metadata["namespace"])
        conditions = ((workload or {}).get("status") or {}).get("conditions") or []
        why = waiting_message(Conditions(conditions))
        return {
            "phase": phase,
            "conditions": with_scheduling(group, phase, least, total, why, now),
            "running": counted.get("running", 0),
            "succeeded": counted.get("succeeded", 0),
            "failed": counted.get("failed", 0),
        }


def _group(job: Json) -> Json:
    tasks, minima = tasks_of(job), task_minima(job)
    asked = total_requests(
        (least, quota_of(task.template)) for task, least in zip(tasks, minima, strict=True)
    )
    spec: Json = {
        "minMember": least_pods(job),
        "minTaskMember": {task.name: task.own_least for task in tasks},
        "queue": job["spec"].get("queue") or volcano.DEFAULT_QUEUE,
        "minResources": {
            name: format_amount(amount, name.removeprefix("requests.").removeprefix("limits."))
            for name, amount in sorted(asked.items())
        },
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
        "status": {"phase": "Pending"},
    }


def quota_of(template: Json) -> dict[str, int]:
    """Return what a pod counts for in a ResourceQuota, which is how Volcano writes it down.

    >>> pod = {"spec": {"containers": [{"resources": {"requests": {"x.com/gpu": 1}}}]}}
    >>> quota_of(pod)
    {'pods': 1, 'count/pods': 1, 'x.com/gpu': 1, 'requests.x.com/gpu': 1}
    """
    found = {"pods": 1, "count/pods": 1}
    for container in (template.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name, quantity in {**limits, **requests}.items():
            amount = Quantity.from_raw(quantity).amount(name)
            for counted in (name, f"requests.{name}"):
                found[counted] = found.get(counted, 0) + amount
        for name, quantity in limits.items():
            if "/" not in name:  # extended resources have no limits of their own
                counted = f"limits.{name}"
                amount = Quantity.from_raw(quantity).amount(name)
                found[counted] = found.get(counted, 0) + amount
    return found


# ---- queues --------------------------------------------------------------------------------------

_COUNTED = ("Pending", "Inqueue", "Running", "Unknown", "Completed")


def queue_of_group(group: Json) -> Iterable[str]:
    """Index PodGroups by their queue."""
    return ((group.get("spec") or {}).get("queue") or volcano.DEFAULT_QUEUE,)


def queue_of_job(job: Json) -> Iterable[str]:
    """Index jobs by their queue."""
    return (job["spec"].get("queue") or volcano.DEFAULT_QUEUE,)


BY_QUEUE = "queue"
# On a queue: "true" if it is closed because the one above it is.
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
_CLOSED = ("Closed", "Closing")


class VolcanoQueues:
    """Keeps the status of queues."""

    name = "volcano-queues"
    watches: Sequence[Kind] = (names.VOLCANO_QUEUE, volcano.POD_GROUP, volcano.JOB, volcano.COMMAND)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue and those below it, that of a group or job, or of a command."""
        if kind == names.VOLCANO_QUEUE:
            yield own_key(obj)
            for other in view.all(names.VOLCANO_QUEUE):
                if parent_named_by(other) == obj["metadata"]["name"]:
                    yield own_key(other)
        elif kind == volcano.COMMAND:
            target = obj.get("target") or {}
            if target.get("kind") == names.VOLCANO_QUEUE.kind:
                yield Key("", target.get("name", ""))
        else:
            found = queue_of_group(obj) if kind == volcano.POD_GROUP else queue_of_job(obj)
            for name in found:
                yield Key("", name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Carry out commands, follow the queue above, and count."""
        queue = view.get(names.VOLCANO_QUEUE, key.name)
        if queue is None or "deletionTimestamp" in queue["metadata"]:
            return
        groups = view.by(volcano.POD_GROUP, BY_QUEUE, key.name)
        phases = Counter((group.get("status") or {}).get("phase") for group in groups)
        status: Json = {phase.lower(): phases.get(phase, 0) for phase in _COUNTED}
        status["allocated"] = _allocated(view.by(volcano.JOB, BY_QUEUE, key.name))
        commands = [one for one in view.all(volcano.COMMAND) if key in self._about(one, view)]
        is_empty = sum(phases.values()) == phases.get("Completed", 0)
        above = view.get(names.VOLCANO_QUEUE, parent_named_by(queue))
        is_closed_above = above is not None and _state_of(above) in _CLOSED
        moved = _moved(queue, commands, is_closed_above=is_closed_above)
        status["state"] = "Closed" if moved.state == "Closing" and is_empty else moved.state
        old = queue.get("status") or {}
        if any((old.get(name) or 0) != (value or 0) for name, value in status.items()):
            gone = {
                name: None for name in old.get("allocated") or () if name not in status["allocated"]
            }
            status["allocated"] = {**status["allocated"], **gone}
            queue = yield Patch(Ref.to(queue), {"status": status}, "status")
        by_parent = (queue["metadata"].get("annotations") or {}).get(CLOSED_BY_PARENT)
        if moved.by_parent is not None and moved.by_parent != by_parent:
            annotations = {CLOSED_BY_PARENT: moved.by_parent}
            yield Patch(Ref.to(queue), {"metadata": {"annotations": annotations}})
        if moved.refusal:
            yield Note(Ref.to(queue), "QueueCommandRefused", moved.refusal, "Warning")
        for command in commands:
            yield Delete(Ref.to(command))

    def _about(self, command: Json, view: View) -> list[Key]:
        return list(self.touched(volcano.COMMAND, command, view))


class _Moved(NamedTuple):
    """The state that a queue goes to, whether the queue above is why, and what was refused."""

    state: str
    by_parent: str | None = None  # what the annotation is to say, if it is to say anything
    refusal: str = ""


def _moved(queue: Json, commands: Sequence[Json], *, is_closed_above: bool) -> _Moved:
    state, name = _state_of(queue), queue["metadata"]["name"]
    by_parent: str | None = None
    refusal = ""
    for command in commands:
        match command.get("action"):
            case "CloseQueue" if name == ROOT:
                refusal = "the root queue cannot be closed; close the queues below it"
            case "CloseQueue":
                state = state if state in _CLOSED else "Closing"
            case "OpenQueue" if is_closed_above:
                refusal = f"queue {parent_named_by(queue)} above it is closed; open that one first"
            case "OpenQueue":
                state, by_parent = "Open", "false"
            case _:
                continue
    annotations = queue["metadata"].get("annotations") or {}
    was_by_parent = annotations.get(CLOSED_BY_PARENT) == "true"
    if is_closed_above and state not in _CLOSED:
        state, by_parent = "Closing", "true"
    elif not is_closed_above and was_by_parent and state in _CLOSED and not commands:
        state, by_parent = "Open", "false"
    return _Moved(state, by_parent, refusal)


def _state_of(queue: Json) -> str:
    return (queue.get("status") or {}).get("state") or "Open"


def parent_named_by(queue: Json) -> str:
    """Return the queue above; empty for the root."""
    if queue["metadata"]["name"] == ROOT:
        return ""
    return str((queue.get("spec") or {}).get("parent") or ROOT)


def _allocated(jobs: Sequence[Json]) -> dict[str, str]:
    """Return what the running pods of a queue's jobs ask for."""
    parts = []
    for job in jobs:
        counts = (job.get("status") or {}).get("taskStatusCount") or {}
        if job_phase(job) in ENDED:
            continue
        for task in tasks_of(job):
            running = (counts.get(task.name) or {}).get("phase", {}).get("Running", 0)
            parts.append((running, {**requests_of(task.template), "pods": 1}))
    return {
        name: text for name, text in written_amounts(total_requests(parts)).items() if text != "0"
    }
