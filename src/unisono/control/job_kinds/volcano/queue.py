"""Volcano queues: whether they are open, and how many groups are in them.

    Open ──CloseQueue──▶ Closing ──empty──▶ Closed ──OpenQueue──▶ Open

A queue that is not open admits nothing (`kinds.volcano.queues`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Delete, Json, Patch, Ref, Steps
from unisono.control.controller import own_key
from unisono.control.job_kinds.amounts import requests_of, total, written
from unisono.control.job_kinds.volcano import api
from unisono.control.job_kinds.volcano.phases import ENDED, phase_of
from unisono.control.job_kinds.volcano.tasks import tasks_of
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_COUNTED = ("Pending", "Inqueue", "Running", "Unknown", "Completed")


def queue_of_group(group: Json) -> Iterable[str]:
    """Index PodGroups by their queue."""
    return ((group.get("spec") or {}).get("queue") or api.DEFAULT_QUEUE,)


def queue_of_job(job: Json) -> Iterable[str]:
    """Index jobs by their queue."""
    return (job["spec"].get("queue") or api.DEFAULT_QUEUE,)


BY_QUEUE = "queue"


class VolcanoQueues:
    """Keeps the status of queues."""

    name = "volcano-queues"
    watches: Sequence[Kind] = (names.VOLCANO_QUEUE, api.POD_GROUP, api.JOB, api.COMMAND)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue, a group or a job in it, or a command about it."""
        if kind == names.VOLCANO_QUEUE:
            yield own_key(obj)
        elif kind == api.COMMAND:
            target = obj.get("target") or {}
            if target.get("kind") == names.VOLCANO_QUEUE.kind:
                yield Key("", target.get("name", ""))
        else:
            found = queue_of_group(obj) if kind == api.POD_GROUP else queue_of_job(obj)
            for name in found:
                yield Key("", name)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Carry out commands, and count."""
        queue = view.get(names.VOLCANO_QUEUE, key.name)
        if queue is None or "deletionTimestamp" in queue["metadata"]:
            return
        groups = view.by(api.POD_GROUP, BY_QUEUE, key.name)
        phases = Counter((group.get("status") or {}).get("phase") for group in groups)
        status: Json = {phase.lower(): phases.get(phase, 0) for phase in _COUNTED}
        status["allocated"] = _allocated(view.by(api.JOB, BY_QUEUE, key.name))
        commands = [one for one in view.all(api.COMMAND) if key in self._about(one, view)]
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
        return list(self.touched(api.COMMAND, command, view))


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
        if phase_of(job) in ENDED:
            continue
        for task in tasks_of(job):
            running = (counts.get(task.name) or {}).get("phase", {}).get("Running", 0)
            parts.append((running, requests_of(task.template)))
    return {name: text for name, text in written(total(parts)).items() if text != "0"}
