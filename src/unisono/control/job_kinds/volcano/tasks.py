"""The tasks of a Volcano job, with everything filled in that may be left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from unisono.control.actions import Json
from unisono.control.job_kinds import volcano
from unisono.control.jobs.pods import is_deleting, is_terminal, phase_of
from unisono.kinds.digits import whole_number
from unisono.kinds.registry import least_of_each


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """So many pods of one template."""

    name: str
    replicas: int
    own_least: int  # how many of them must run, if the job as a whole asks for all of these
    template: Json
    policies: Sequence[Json] = field(default_factory=list)
    max_restarts: int = volcano.DEFAULT_RETRIES  # of containers; below 0 there is no limit
    after: Sequence[str] = ()  # tasks that must run first
    after_any: bool = False  # one of them will do


def tasks_of(job: Json) -> list[Task]:
    """Return the tasks of a job."""
    return [
        Task(
            name=task.get("name") or f"default{place}",
            replicas=task.get("replicas", 0),
            own_least=task.get("minAvailable", task.get("replicas", 0)),
            template=_template(job, task.get("template") or {}),
            policies=task.get("policies") or [],
            max_restarts=task.get("maxRetry") or volcano.DEFAULT_RETRIES,
            after=(task.get("dependsOn") or {}).get("name") or (),
            after_any=(task.get("dependsOn") or {}).get("iteration") == "any",
        )
        for place, task in enumerate(job["spec"].get("tasks") or ())
    ]


def _template(job: Json, template: Json) -> Json:
    """Return a template with what the job says for all of its pods.

    A pod of unknown restart policy would be restarted for ever and its task never complete, so
    here that means OnFailure.
    """
    spec = dict(template.get("spec") or {})
    spec["restartPolicy"] = spec.get("restartPolicy") or "OnFailure"
    for field_name in ("schedulerName", "priorityClassName"):
        if job["spec"].get(field_name) and not spec.get(field_name):
            spec[field_name] = job["spec"][field_name]
    return {**template, "spec": spec}


def least_pods(job: Json) -> int:
    """Return how many pods must start together."""
    return job["spec"].get("minAvailable") or sum(task.own_least for task in tasks_of(job))


def task_minima(job: Json) -> list[int]:
    """Return how many pods of each task must start together; at least as many as the job asks for.

    Where the job wants more than its tasks demand, each task gives one and the first ones the rest:
    a Workload can say how many pods of each set it needs, but not of all sets together.
    """
    tasks, least = tasks_of(job), least_pods(job)
    own = [task.own_least for task in tasks]
    minima = list(least_of_each(least, [task.replicas for task in tasks]))
    if sum(own) <= least:
        minima = [max(pair) for pair in zip(minima, own, strict=True)]
    missing = least - sum(minima)
    for place, task in enumerate(tasks):  # a set of a Workload has one pod at least
        if missing > 0 and task.replicas and not minima[place]:
            minima[place] = 1
            missing -= 1
    for place, task in enumerate(tasks):
        more = min(max(0, missing), task.replicas - minima[place])
        minima[place] += more
        missing -= more
    return minima


def host_name(job: Json, task: str, index: int) -> str:
    """Return how the pods of a job call one of them.

    >>> host_name({"metadata": {"name": "ddp"}}, "worker", 0)
    'ddp-worker-0.ddp'
    """
    name = job["metadata"]["name"]
    return f"{pod_name(job, task, index)}.{name}"


def pod_name(job: Json, task: str, index: int) -> str:
    """Return the name of a pod, which is the same in every attempt."""
    return f"{job['metadata']['name']}-{task}-{index}"


def max_retries(job: Json) -> int:
    """Return at which retry a job has failed; upstream reads 0 as the default, too."""
    return job["spec"].get("maxRetry") or volcano.DEFAULT_RETRIES


# ---- tally ---------------------------------------------------------------------------------------
#
# The pods of a job by task, number and start. Every full start of a job has a version; pods of an
# older one are leftovers that only have to go.
#
# A pod that was deleted cannot report it. It is missed: a pod of this version that is being
# deleted, though the operator did not ask for that (it records that it restarts or ends a job
# before it deletes anything), or one that the status still counts and that is gone.


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
        task, index = (
            annotations.get(volcano.TASK, ""),
            whole_number(annotations.get(volcano.INDEX)),
        )
        is_current = annotations.get(volcano.VERSION) == str(version)
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
