"""`batch.volcano.sh/v1alpha1` Job: one pod set per task, and a gang of `minAvailable` pods.

Volcano starts a job once `minAvailable` pods of it have a place, counted over all tasks; a task may
have its own minimum. Our pod sets only have minima of their own, so the job's is shared out:

    the tasks' minima sum up to at most the job's   they hold; what is missing to the job's
                                                    minimum is added to the tasks in their order
    they sum up to more                             Volcano then ignores them, and so do we: the
                                                    job's minimum is filled up in the tasks' order

Every admission that these minima allow is one that Volcano allows. Spec jobs §4 and §7.1,
gang-placement §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from unisono.engine.model.workload import PodSet
from unisono.kinds.batch import PodCount
from unisono.kinds.core.pod_sets import (
    TemplateSet,
    check_template_sets,
    first_priority_class,
    pod_sets,
)
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.decode import Schema
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, JobHooks, Kind
from unisono.kinds.scalar import Duration, Timestamp

_FINISHED = ("Completed", "Failed", "Terminated", "Aborted")


class LifecyclePolicy(Schema, frozen=True, kw_only=True):
    """What to do when something happens to a pod, a task or the job."""

    action: str = ""
    event: str = ""
    events: tuple[str, ...] = ()
    exit_code: int | None = None
    timeout: Duration | None = None


class DependsOn(Schema, frozen=True, kw_only=True):
    """Tasks that must run first."""

    name: tuple[str, ...] = ()
    iteration: str = ""


class Task(Schema, frozen=True, kw_only=True):
    """So many pods of one template."""

    name: str = ""
    replicas: PodCount = 0
    min_available: PodCount | None = None
    template: PodTemplateSpec = PodTemplateSpec()
    policies: tuple[LifecyclePolicy, ...] = ()
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None
    partition_policy: Any = None


class NetworkTopology(Schema, frozen=True, kw_only=True):
    """How close the pods must be; read when nodes are chosen."""

    mode: str = ""
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class VolcanoJobSpec(Schema, frozen=True, kw_only=True):
    """Tasks that form a gang."""

    tasks: tuple[Task, ...] = ()
    min_available: PodCount = 0
    queue: str = ""
    priority_class_name: str = ""
    scheduler_name: str = ""
    plugins: Mapping[str, tuple[str, ...]] = {}
    policies: tuple[LifecyclePolicy, ...] = ()
    volumes: tuple[Any, ...] = ()
    max_retry: int = 0
    min_success: Annotated[int, Meta(ge=1)] | None = None
    network_topology: NetworkTopology | None = None
    running_estimate: Duration | None = None
    ttl_seconds_after_finished: int | None = None


class VolcanoJobState(Schema, frozen=True, kw_only=True):
    """The phase a job is in."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None


class TaskState(Schema, frozen=True, kw_only=True):
    """How many pods of a task are in each phase."""

    phase: Mapping[str, int] = {}


class VolcanoJobStatus(Schema, frozen=True, kw_only=True):
    """How far the job is."""

    state: VolcanoJobState = VolcanoJobState()
    min_available: int = 0
    task_status_count: Mapping[str, TaskState] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: Duration | None = None
    controlled_resources: Mapping[str, str] = {}
    conditions: tuple[Any, ...] = ()


class VolcanoJob(Schema, frozen=True, kw_only=True):
    """A gang of tasks."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: VolcanoJobSpec
    status: VolcanoJobStatus = VolcanoJobStatus()


def task_names(tasks: tuple[Task, ...]) -> tuple[str, ...]:
    """Return the tasks' names; Volcano calls a nameless one `default` and its number."""
    return tuple(task.name or f"default{index}" for index, task in enumerate(tasks))


def task_minima(spec: VolcanoJobSpec) -> tuple[int, ...]:
    """Return the least number of pods of each task, so that together they are enough."""
    tasks = spec.tasks
    own = [task.replicas if task.min_available is None else task.min_available for task in tasks]
    needed = spec.min_available or sum(own)
    minima = own if sum(own) <= needed else [0] * len(tasks)
    missing = needed - sum(minima)
    for index, task in enumerate(tasks):
        more = max(0, min(missing, task.replicas - minima[index]))
        minima[index] += more
        missing -= more
    return tuple(minima)


def _sets(job: VolcanoJob) -> tuple[TemplateSet, ...]:
    tasks = job.spec.tasks
    return tuple(
        TemplateSet(
            name=name,
            count=task.replicas,
            min_count=least if least < task.replicas else None,
            template=task.template,
            path=f"spec.tasks[{index}].template",
        )
        for index, (name, task, least) in enumerate(
            zip(task_names(tasks), tasks, task_minima(job.spec), strict=True)
        )
    )


def _pod_sets(job: VolcanoJob, context: Context) -> tuple[PodSet, ...]:
    return pod_sets(_sets(job), context)


def _check(job: VolcanoJob, notes: Notes) -> None:
    tasks = job.spec.tasks
    if not tasks:
        notes.problem("spec.tasks", "is required: there is nothing to run")
    for index, task in enumerate(tasks):
        least = task.min_available
        if least is not None and least > task.replicas:
            at = f"spec.tasks[{index}].minAvailable"
            notes.problem(at, f"is {least}; the task has only {task.replicas} replicas")
        if task.template.spec.containers and not task.template.spec.restart_policy:
            notes.warn(
                "RestartPolicyMissing",
                f"spec.tasks[{index}].template.spec.restartPolicy",
                "is not set: taken as OnFailure; with Kubernetes' default, Always, no pod of the"
                " task would ever complete",
            )
    pods = sum(task.replicas for task in tasks)
    if tasks and job.spec.min_available > pods:
        notes.problem("spec.minAvailable", f"is {job.spec.min_available}; there are {pods} pods")
    check_template_sets(_sets(job), notes)
    _check_dependencies(tasks, notes)


def _check_dependencies(tasks: tuple[Task, ...], notes: Notes) -> None:
    """Report dependencies on tasks that do not exist, and circles."""
    needs = {
        name: set(task.depends_on.name) if task.depends_on else set()
        for name, task in zip(task_names(tasks), tasks, strict=True)
    }
    for index, name in enumerate(task_names(tasks)):
        for unknown in sorted(needs[name] - needs.keys()):
            notes.problem(f"spec.tasks[{index}].dependsOn.name", f'there is no task "{unknown}"')
            needs[name].discard(unknown)
    while startable := [name for name, needed in needs.items() if not needed & needs.keys()]:
        for name in startable:
            del needs[name]
    if needs:
        circle = ", ".join(sorted(needs))
        notes.problem("spec.tasks", f"these tasks wait for each other in a circle: {circle}")


def _priority_class(job: VolcanoJob) -> str:
    return job.spec.priority_class_name or first_priority_class(_sets(job))


def _is_finished(job: VolcanoJob) -> bool:
    return job.status.state.phase in _FINISHED


def _reclaimable(job: VolcanoJob) -> tuple[tuple[str, int], ...]:
    counts = job.status.task_status_count
    done = {name: state.phase.get("Succeeded", 0) for name, state in counts.items()}
    return tuple(
        (name, min(done[name], task.replicas))
        for name, task in zip(task_names(job.spec.tasks), job.spec.tasks, strict=True)
        if done.get(name, 0) > 0
    )


def _queue(job: VolcanoJob) -> str:
    return job.spec.queue or "default"


KINDS = (
    Kind(
        group="batch.volcano.sh",
        version="v1alpha1",
        kind="Job",
        struct=VolcanoJob,
        namespaced=True,
        check=_check,
        job=JobHooks(
            pod_sets=_pod_sets,
            priority_class=_priority_class,
            is_finished=_is_finished,
            reclaimable=_reclaimable,
            queue=_queue,
        ),
    ),
)
