"""The pods of a Volcano job, sorted: which task, which number, and of which start of the job.

Every full start of a job has a version; pods of an older one are leftovers that only have to go.

A pod that was taken away is not there to tell. It is missed: a pod of this version that is being
deleted, though nobody here asked for that (we write down that we restart or end a job before we
delete anything), or one that the status still counts and that is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from unisono.control.actions import Json
from unisono.control.job_kinds.volcano import api
from unisono.control.job_kinds.volcano.tasks import Task
from unisono.control.jobs.pods import is_deleting, is_terminal, phase_of
from unisono.kinds.digits import whole_number


@dataclass(slots=True)
class TaskPods:
    """The pods of one task."""

    task: Task
    wanted: int
    pods: dict[int, Json] = field(default_factory=dict)  # by number, of this version
    lost: list[int] = field(default_factory=list)  # numbers whose pods went, or go, by themselves

    def missing(self) -> Iterator[int]:
        """Yield the numbers that have no pod; take only as many as are needed."""
        return (number for number in range(self.wanted) if number not in self.pods)

    def count(self, phase: str) -> int:
        """Count the pods in a phase that are not on their way out."""
        return sum(phase_of(pod) == phase and not is_deleting(pod) for pod in self.pods.values())


@dataclass(slots=True)
class Tally:
    """All pods of a job."""

    tasks: list[TaskPods]
    old: list[Json]  # of earlier versions

    @property
    def wanted(self) -> int:
        """How many pods there are to be."""
        return sum(one.wanted for one in self.tasks)

    def every(self) -> Iterator[Json]:
        """Yield the pods of this version."""
        for one in self.tasks:
            yield from one.pods.values()

    def count(self, *phases: str) -> int:
        """Count the pods of this version in some phases that are not on their way out."""
        return sum(one.count(phase) for one in self.tasks for phase in phases)

    @property
    def terminating(self) -> int:
        """How many pods, of whichever version, are on their way out."""
        return sum(map(is_deleting, self.every())) + sum(map(is_deleting, self.old))

    def alive(self) -> list[Json]:
        """Return the pods of whichever version that run, or may."""
        return [pod for pod in (*self.every(), *self.old) if not is_terminal(pod)]

    def by_phase(self) -> Json:
        """Return what the status says of each task; this is also what tells that a pod is lost."""
        found: Json = {}
        for one in self.tasks:
            phases = Counter(phase_of(pod) for pod in one.pods.values())
            if phases:
                found[one.task.name] = {"phase": dict(phases)}
        return found


def tally(
    job: Json, tasks: Sequence[Task], pods: Sequence[Json], counts: Mapping[str, int]
) -> Tally:
    """Sort the pods of a job; `counts` says how many of a task were admitted, if not all."""
    version = (job.get("status") or {}).get("version", 0)
    found = {
        task.name: TaskPods(task, min(task.replicas, counts.get(task.name, task.replicas)))
        for task in tasks
    }
    old: list[Json] = []
    for pod in pods:
        annotations = pod["metadata"].get("annotations") or {}
        task, index = annotations.get(api.TASK, ""), whole_number(annotations.get(api.INDEX))
        is_current = annotations.get(api.VERSION) == str(version)
        if is_current and task in found and index is not None:
            found[task].pods[index] = pod
        else:
            old.append(pod)
    recorded = (job.get("status") or {}).get("taskStatusCount") or {}
    for one in found.values():
        one.lost = _lost(one, recorded.get(one.task.name) or {})
    return Tally(list(found.values()), old)


def _lost(one: TaskPods, recorded: Json) -> list[int]:
    going = [
        number
        for number, pod in sorted(one.pods.items())
        if is_deleting(pod) and number < one.wanted and phase_of(pod) != "Succeeded"
    ]
    known = min(sum((recorded.get("phase") or {}).values()), one.wanted)
    gone = known - sum(number < one.wanted for number in one.pods)
    return going + list(islice(one.missing(), max(0, gone)))


def may_start(one: TaskPods, pods: Tally) -> bool:
    """Say whether the tasks run, or have, that a task comes after."""
    done = [
        other.count("Running") + other.count("Succeeded") >= min(other.task.own_least, other.wanted)
        for other in pods.tasks
        if other.task.name in one.task.after
    ]
    return not done or (any(done) if one.task.after_any else all(done))
