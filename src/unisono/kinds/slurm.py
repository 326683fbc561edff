"""`unisono.dev/v1` SlurmJob: a batch script that runs on the first of a gang of pods.

One object is one job of Slurm: its options as they were given, and the gang that `sbatch` made of
them, one pod per node. An array is one object, too, and no workload: its tasks become objects of
their own when it is their turn (spec slurm §5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

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
from unisono.kinds.scalar import Timestamp

# States of Slurm in which nothing of a job runs any more.
ENDED = frozenset(
    {
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "NODE_FAIL",
        "DEADLINE",
        "OUT_OF_MEMORY",
        "BOOT_FAIL",
        "PREEMPTED",
    }
)


class SlurmGroup(Schema, frozen=True, kw_only=True):
    """Nodes of a job that get the same."""

    name: str
    nodes: PodCount
    tasks: Annotated[int, Meta(ge=0)] = 1
    template: PodTemplateSpec


class SlurmArray(Schema, frozen=True, kw_only=True):
    """The tasks of an array."""

    tasks: str
    limit: Annotated[int, Meta(ge=0)] = 0
    cancelled: str = ""


class SlurmTask(Schema, frozen=True, kw_only=True):
    """Which task of which array a job is."""

    array_job_id: int
    index: int


class SlurmJobSpec(Schema, frozen=True, kw_only=True):
    """What was submitted."""

    job_id: Annotated[int, Meta(ge=0)]
    job_name: str = ""
    user: str = ""
    user_id: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    group_id: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    command: str = ""
    arguments: tuple[str, ...] = ()
    work_dir: str = ""
    submit_host: str = ""
    cluster: str = ""
    script: str = ""
    options: Mapping[str, str] = {}
    tasks: Annotated[int, Meta(ge=1)] = 1
    cpus_per_task: Annotated[int, Meta(ge=1)] = 1
    groups: tuple[SlurmGroup, ...] = ()
    array: SlurmArray | None = None
    task: SlurmTask | None = None
    stop: str = ""


class SlurmJobStatus(Schema, frozen=True, kw_only=True):
    """How far it is."""

    state: str = ""
    reason: str = ""
    message: str = ""
    restarts: int = 0
    eligible_time: Timestamp | None = None
    expected_start: Timestamp | None = None
    planned_nodes: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    exit_code: str = ""
    nodes: tuple[str, ...] = ()
    opened: int = 0
    steps: int = 0


class SlurmJob(Schema, frozen=True, kw_only=True):
    """A job of Slurm."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: SlurmJobSpec
    status: SlurmJobStatus = SlurmJobStatus()


def _sets(job: SlurmJob) -> tuple[TemplateSet, ...]:
    if job.spec.array is not None:
        return ()
    return tuple(
        TemplateSet(
            name=group.name,
            count=group.nodes,
            template=group.template,
            path=f"spec.groups[{index}].template",
        )
        for index, group in enumerate(job.spec.groups)
    )


def _pod_sets(job: SlurmJob, context: Context) -> tuple[PodSet, ...]:
    return pod_sets(_sets(job), context)


def _check(job: SlurmJob, notes: Notes) -> None:
    if not job.spec.groups:
        notes.problem("spec.groups", "is required: there is nothing to run")
    check_template_sets(_sets(job), notes)


def _priority_class(job: SlurmJob) -> str:
    return first_priority_class(_sets(job))


def _is_finished(job: SlurmJob) -> bool:
    return job.status.state in ENDED


KINDS: tuple[Kind, ...] = (
    Kind(
        group="unisono.dev",
        version="v1",
        kind="SlurmJob",
        struct=SlurmJob,
        namespaced=True,
        check=_check,
        job=JobHooks(
            pod_sets=_pod_sets,
            priority_class=_priority_class,
            is_finished=_is_finished,
            scheduler=lambda job: "unisono",
        ),
    ),
)
