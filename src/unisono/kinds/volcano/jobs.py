"""`batch.volcano.sh/v1alpha1` Job: one pod set per task, and a gang of `minAvailable` pods.

Volcano starts a job once `minAvailable` pods of it have a place, counted over all tasks (default:
the sum of the tasks' minima). A task may have a minimum of its own (default: all of its replicas);
if these add up to more than the job's, Volcano ignores them, and so do we.

`partitionPolicy` cuts a task into blocks of equal size that are close together; `networkTopology`
says how close (`network_topology`). Spec placement §7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from unisono.kinds.meta import ObjectMeta, wrong_with_subdomain
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, JobHooks, Kind, least_of_each
from unisono.kinds.scalar import Duration, Timestamp
from unisono.kinds.volcano.groups import DEFAULT_QUEUE
from unisono.kinds.volcano.lifecycle_policies import LifecyclePolicy, check_policies
from unisono.kinds.volcano.network_topology import (
    NetworkTopology,
    check_network,
    in_blocks,
    topology_of,
)

# Helpers that Volcano knows, and those of them that we make nothing for.
PLUGINS = ("svc", "ssh", "env", "pytorch", "mpi", "tensorflow", "ray", "hcclrank")
_PLUGINS_NOT_BUILT = ("hcclrank",)
_LONGEST_NAME = 63  # of a job, and of its pods: both are values of labels
_FINISHED = ("Completed", "Failed", "Terminated", "Aborted")


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


class JobVolume(Schema, frozen=True, kw_only=True):
    """A volume of all pods: of a claim that is there, or of one that is made for the job."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: Any = None


class VolcanoJobSpec(Schema, frozen=True, kw_only=True):
    """Tasks that form a gang."""

    tasks: tuple[Task, ...] = ()
    min_available: PodCount = 0
    queue: str = ""
    priority_class_name: str = ""
    scheduler_name: str = ""
    plugins: Mapping[str, tuple[str, ...]] = {}
    policies: tuple[LifecyclePolicy, ...] = ()
    volumes: tuple[JobVolume, ...] = ()
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


def flag_of(arguments: Sequence[str], name: str, default: str) -> str:
    """Return what a flag says in the arguments of a plugin.

    >>> flag_of(["--master=chief", "--port", "99"], "port", "1"), flag_of([], "port", "1")
    ('99', '1')
    >>> flag_of(["--publish-not-ready-addresses"], "publish-not-ready-addresses", "false")
    'true'
    """
    parts = [part for one in arguments for part in str(one).split()]
    for place, part in enumerate(parts):
        flag, equals, value = part.lstrip("-").partition("=")
        if flag == name and part.startswith("-"):
            if equals:
                return value
            following = parts[place + 1] if place + 1 < len(parts) else "--"
            return "true" if following.startswith("-") else following
    return default


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
    """Report what Volcano's webhook refuses whatever else there is in the cluster."""
    tasks, spec = job.spec.tasks, job.spec
    if not tasks:
        notes.problem("spec.tasks", "is required: No task specified in job spec")
    _check_names(job, notes)
    for index, task in enumerate(tasks):
        _check_task(task, f"spec.tasks[{index}]", notes)
    pods = sum(task.replicas for task in tasks)
    if tasks and spec.min_available > pods:
        message = "job 'minAvailable' should not be greater than total replicas"
        notes.problem("spec.minAvailable", f"is {spec.min_available}: {message}, {pods}")
    for path, number in (
        ("spec.maxRetry", spec.max_retry),
        ("spec.ttlSecondsAfterFinished", spec.ttl_seconds_after_finished or 0),
    ):
        if number < 0:
            notes.problem(path, f"is {number}; it should be greater than or equal to 0")
    check_policies(spec.policies, "spec.policies", notes)
    _check_plugins(job, notes)
    _check_volumes(spec.volumes, notes)
    check_network(spec.network_topology, "spec.networkTopology", notes)
    check_template_sets({one.name: one for one in reversed(_sets(job))}.values(), notes)
    _check_dependencies(tasks, notes)


def _check_task(task: Task, at: str, notes: Notes) -> None:
    least, partitions = task.min_available, task.partition_policy
    if least is not None and least > task.replicas:
        message = f"is {least}: 'minAvailable' is greater than 'replicas' in task"
        notes.problem(f"{at}.minAvailable", f"{message}; it has only {task.replicas}")
    if task.max_retry < -1:  # Volcano's -1: containers restart without a limit
        notes.problem(f"{at}.maxRetry", f"is {task.max_retry}; it should be at least -1")
    check_policies(task.policies, f"{at}.policies", notes)
    if partitions is not None:
        _check_partitions(task, partitions, at, notes)
    if task.topology_policy not in ("", "none") and not _asks_for_whole_cpus(task):
        message = "needs containers that each ask for a whole number of cpu"
        notes.problem(f"{at}.topologyPolicy", message)
    if task.template.spec.containers and not task.template.spec.restart_policy:
        notes.warn(
            "RestartPolicyMissing",
            f"{at}.template.spec.restartPolicy",
            "is not set: taken as OnFailure; with Kubernetes' default, Always, no pod of the"
            " task would ever complete",
        )


def _asks_for_whole_cpus(task: Task) -> bool:
    spec = task.template.spec
    for container in (*spec.containers, *spec.init_containers):
        asked = (container.resources.requests or container.resources.limits).get("cpu")
        if asked is None or asked.nano <= 0 or asked.nano % 10**9:
            return False
    return True


def _check_names(job: VolcanoJob, notes: Notes) -> None:
    """Report names of which no pod could have one, and tasks of one name."""
    name, seen = job.metadata.name, dict[str, int]()
    if len(name) > _LONGEST_NAME:
        message = f'"{name}" has {len(name)} characters; a label with it has at most 63'
        notes.problem("metadata.name", message)
        return
    for index, task in enumerate(task_names(job.spec.tasks)):
        at = f"spec.tasks[{index}].name"
        if task in seen:
            message = f'duplicated task name "{task}": it is the name of spec.tasks[{seen[task]}]'
            notes.problem(at, message)
        seen.setdefault(task, index)
        last = f"{name}-{task}-{max(0, job.spec.tasks[index].replicas - 1)}"
        if len(last) > _LONGEST_NAME:
            notes.problem(at, f'makes pods named like "{last}", of more than 63 characters')


def _check_plugins(job: VolcanoJob, notes: Notes) -> None:
    for name in sorted(job.spec.plugins):
        if name not in PLUGINS:
            message = f"unable to find job plugin: {name}; there are {', '.join(PLUGINS)}"
            notes.problem("spec.plugins", message)
        elif name in _PLUGINS_NOT_BUILT:
            path = f"spec.plugins[{name}]"
            notes.warn(
                "FieldIgnored", path, "is not built here: its files and variables are not made"
            )
    if "mpi" in job.spec.plugins:
        master = flag_of(job.spec.plugins["mpi"], "master", "master")
        if job.spec.tasks and master not in task_names(job.spec.tasks):
            message = f'The specified mpi master task was not found: there is no task "{master}"'
            notes.problem("spec.plugins[mpi]", message)


def _check_volumes(volumes: tuple[JobVolume, ...], notes: Notes) -> None:
    seen: dict[str, int] = {}
    for index, volume in enumerate(volumes):
        at, path = f"spec.volumes[{index}]", volume.mount_path
        if not path:
            notes.problem(f"{at}.mountPath", "mountPath is required")
        elif path in seen:
            message = f"duplicated mountPath: {path} is that of spec.volumes[{seen[path]}], too"
            notes.problem(f"{at}.mountPath", message)
        seen.setdefault(path, index)
        if volume.volume_claim is None and not volume.volume_claim_name:
            notes.problem(at, "either VolumeClaim or VolumeClaimName must be specified")
        elif wrong := wrong_with_subdomain(volume.volume_claim_name or "x"):
            notes.problem(f"{at}.volumeClaimName", wrong)


def _check_partitions(task: Task, policy: PartitionPolicy, path: str, notes: Notes) -> None:
    at = f"{path}.partitionPolicy"
    check_network(policy.network_topology, f"{at}.networkTopology", notes)
    pods = policy.total_partitions * policy.partition_size
    if pods != task.replicas:
        notes.problem(at, f"makes {pods} pods; the task has {task.replicas} replicas")
    least = policy.min_partitions * policy.partition_size
    if policy.min_partitions > policy.total_partitions:
        most = policy.total_partitions
        message = f"is {policy.min_partitions}; there are only {most} partitions"
        notes.problem(f"{at}.minPartitions", message)
    elif least and task.min_available not in (None, least):
        message = f"makes {least} pods the least; minAvailable says {task.min_available}"
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
