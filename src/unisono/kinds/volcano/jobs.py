"""`batch.volcano.sh/v1alpha1` Job: one pod set per task, and a gang of `minAvailable` pods.

Volcano starts a job once `minAvailable` pods of it have a place, counted over all tasks (default:
the sum of the tasks' minima). A task may have a minimum of its own (default: all of its replicas);
if these add up to more than the job's, Volcano ignores them, and so do we.

`partitionPolicy` cuts a task into blocks of equal size that are close together; `networkTopology`
says how close (`network_topology`). Spec placement §7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from unisono.engine.model.workload import PodSet
from unisono.kinds.batch import PodCount
from unisono.kinds.core.pod_groups import VOLCANO_TASK
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
from unisono.kinds.registry import Context, JobHooks, Kind, least_of_each
from unisono.kinds.scalar import Duration, Timestamp
from unisono.kinds.volcano.groups import DEFAULT_QUEUE
from unisono.kinds.volcano.network_topology import (
    NetworkTopology,
    check_network,
    in_blocks,
    topology_of,
)

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


class PartitionPolicy(Schema, frozen=True, kw_only=True):
    """Blocks that the pods of a task come in."""

    total_partitions: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    partition_size: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    min_partitions: PodCount = 0
    network_topology: NetworkTopology | None = None


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
    partition_policy: PartitionPolicy | None = None


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


def least_pods(spec: VolcanoJobSpec) -> int:
    """Return how many pods must start together, over all tasks."""
    return spec.min_available or sum(_own_minima(spec.tasks))


def task_minima(spec: VolcanoJobSpec) -> tuple[int, ...]:
    """Return the least number of pods of each task.

    That is its own minimum, if those count; never less than what the others cannot make up for.
    """
    own, least = _own_minima(spec.tasks), least_pods(spec)
    implied = least_of_each(least, [task.replicas for task in spec.tasks])
    counted = own if sum(own) <= least else [0] * len(own)
    blocks = [
        policy.min_partitions * policy.partition_size if (policy := task.partition_policy) else 0
        for task in spec.tasks
    ]
    return tuple(max(minima) for minima in zip(implied, counted, blocks, strict=True))


def _own_minima(tasks: tuple[Task, ...]) -> list[int]:
    return [task.replicas if task.min_available is None else task.min_available for task in tasks]


def _min_total(job: VolcanoJob) -> int | None:
    least, pods = least_pods(job.spec), sum(task.replicas for task in job.spec.tasks)
    return least if least < pods else None


def _sets(job: VolcanoJob) -> tuple[TemplateSet, ...]:
    tasks = job.spec.tasks
    return tuple(
        TemplateSet(
            name=name,
            count=task.replicas,
            min_count=least if least < task.replicas else None,
            template=task.template,
            path=f"spec.tasks[{index}].template",
            labels={"volcano.sh/job-name": job.metadata.name, VOLCANO_TASK: name},
        )
        for index, (name, task, least) in enumerate(
            zip(task_names(tasks), tasks, task_minima(job.spec), strict=True)
        )
    )


def _pod_sets(job: VolcanoJob, context: Context) -> tuple[PodSet, ...]:
    made = pod_sets(_sets(job), context)
    whole = topology_of(job.spec.network_topology, "spec.networkTopology", context)
    tasks = dict(zip(task_names(job.spec.tasks), enumerate(job.spec.tasks), strict=True))
    placed: list[PodSet] = []
    for one in made:
        index, task = tasks[one.name]
        topology = whole
        if task.partition_policy is not None:
            path = f"spec.tasks[{index}].partitionPolicy.networkTopology"
            block = topology_of(task.partition_policy.network_topology, path, context)
            topology = in_blocks(whole, block, task.partition_policy.partition_size)
        if topology is not None:
            # All tasks of a job that has a topology go to one domain.
            group = "job" if whole is not None and len(made) > 1 else one.group
            one = msgspec.structs.replace(one, topology=topology, group=group)
        placed.append(one)
    return tuple(placed)


def check_job(job: VolcanoJob, notes: Notes) -> None:
    tasks = job.spec.tasks
    if not tasks:
        notes.problem("spec.tasks", "is required: there is nothing to run")
    for index, task in enumerate(tasks):
        least = task.min_available
        if least is not None and least > task.replicas:
            at = f"spec.tasks[{index}].minAvailable"
            notes.problem(at, f"is {least}; the task has only {task.replicas} replicas")
        if task.partition_policy is not None:
            _check_partitions(task, task.partition_policy, f"spec.tasks[{index}]", notes)
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
    check_network(job.spec.network_topology, "spec.networkTopology", notes)
    check_template_sets(_sets(job), notes)
    _check_dependencies(tasks, notes)


def _check_partitions(task: Task, policy: PartitionPolicy, path: str, notes: Notes) -> None:
    at = f"{path}.partitionPolicy"
    check_network(policy.network_topology, f"{at}.networkTopology", notes)
    pods = policy.total_partitions * policy.partition_size
    if pods != task.replicas:
        notes.problem(at, f"makes {pods} pods; the task has {task.replicas} replicas")
    if policy.min_partitions > policy.total_partitions:
        most = policy.total_partitions
        message = f"is {policy.min_partitions}; there are only {most} partitions"
        notes.problem(f"{at}.minPartitions", message)


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
    for name in _startable(needs):
        del needs[name]
    if needs:
        circle = ", ".join(sorted(needs))
        notes.problem("spec.tasks", f"these tasks wait for each other in a circle: {circle}")


def _startable(needs: Mapping[str, set[str]]) -> list[str]:
    """Return the tasks that can start at some time (Kahn's algorithm)."""
    missing = {name: len(needed) for name, needed in needs.items()}
    dependents: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for one in needed:
            dependents.setdefault(one, []).append(name)
    found = [name for name, count in missing.items() if not count]
    for name in found:  # grows while it is walked
        for other in dependents.get(name, ()):
            missing[other] -= 1
            if not missing[other]:
                found.append(other)
    return found


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
    return job.spec.queue or DEFAULT_QUEUE


def _scheduler(job: VolcanoJob) -> str:
    return job.spec.scheduler_name or "volcano"


JOB_HOOKS = JobHooks(
    pod_sets=_pod_sets,
    priority_class=_priority_class,
    is_finished=_is_finished,
    reclaimable=_reclaimable,
    queue=_queue,
    min_total=_min_total,
    scheduler=_scheduler,
)


KINDS = (
    Kind(
        group="batch.volcano.sh",
        version="v1alpha1",
        kind="Job",
        struct=VolcanoJob,
        namespaced=True,
        check=check_job,
        job=JOB_HOOKS,
    ),
)
