"""`jobset.x-k8s.io/v1alpha2` JobSet: one pod set per replicated job.

A set has replicas x min(parallelism, completions) pods. Jobs that succeeded give their pods' quota
back.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from unisono.engine.model.workload import PodSet
from unisono.kinds.batch import JobTemplateSpec, PodCount, pods_at_once
from unisono.kinds.core.pod_sets import (
    TemplateSet,
    check_template_sets,
    first_priority_class,
    first_scheduler,
    pod_sets,
)
from unisono.kinds.decode import Schema
from unisono.kinds.meta import Condition, ObjectMeta, holds
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, JobHooks, Kind

SET_LABEL = "jobset.sigs.k8s.io/jobset-name"
JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"


class DependsOn(Schema, frozen=True, kw_only=True):
    """A replicated job that must be ready or complete first."""

    name: str
    status: Literal["Ready", "Complete"]


class ReplicatedJob(Schema, frozen=True, kw_only=True):
    """So many equal jobs."""

    name: Annotated[str, Meta(min_length=1)]
    template: JobTemplateSpec
    replicas: PodCount = 1
    group_name: str = ""
    depends_on: tuple[DependsOn, ...] = ()


class Network(Schema, frozen=True, kw_only=True):
    """How the pods find each other."""

    enable_dns_hostnames: bool | None = field(default=None, name="enableDNSHostnames")
    subdomain: str = ""
    publish_not_ready_addresses: bool | None = None


class FailurePolicy(Schema, frozen=True, kw_only=True):
    """What happens when a job of the set fails."""

    max_restarts: int = 0
    restart_strategy: str = ""
    rules: tuple[Any, ...] = ()


class JobSetSpec(Schema, frozen=True, kw_only=True):
    """Jobs that belong together."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    suspend: bool | None = None
    network: Network | None = None
    success_policy: Any = None
    failure_policy: FailurePolicy | None = None
    startup_policy: Any = None
    coordinator: Any = None
    managed_by: str | None = None
    ttl_seconds_after_finished: int | None = None
    volume_claim_policies: tuple[Any, ...] = ()


class ReplicatedJobStatus(Schema, frozen=True, kw_only=True):
    """How far the jobs of one replicated job are."""

    name: str
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0
    job_restarts: tuple[int, ...] = ()
    job_restarts_count_towards_max: tuple[int, ...] = ()


class JobSetStatus(Schema, frozen=True, kw_only=True):
    """How far the set is."""

    conditions: tuple[Condition, ...] = ()
    restarts: int = 0
    restarts_count_towards_max: int = 0
    terminal_state: str = ""
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()
    previous_in_place_restart_attempt: int | None = None
    current_in_place_restart_attempt: int | None = None


class JobSet(Schema, frozen=True, kw_only=True):
    """A gang made of jobs."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: JobSetSpec
    status: JobSetStatus = JobSetStatus()


def replicated_sets(
    jobs: tuple[ReplicatedJob, ...], path: str, job_set: str = ""
) -> tuple[TemplateSet, ...]:
    """Return one set of pods per replicated job; `path` is that of the list."""
    return tuple(
        TemplateSet(
            name=job.name,
            count=job.replicas * pods_at_once(job.template.spec),
            template=job.template.spec.template,
            path=f"{path}[{index}].template.spec.template",
            labels=pod_labels(job_set, job.name),
        )
        for index, job in enumerate(jobs)
    )


def pod_labels(job_set: str, replicated_job: str) -> dict[str, str]:
    """Return the labels that all pods of a replicated job have."""
    return {SET_LABEL: job_set, JOB_LABEL: replicated_job}


def _sets(job_set: JobSet) -> tuple[TemplateSet, ...]:
    name = job_set.metadata.name
    return replicated_sets(job_set.spec.replicated_jobs, "spec.replicatedJobs", name)


def _pod_sets(job_set: JobSet, context: Context) -> tuple[PodSet, ...]:
    return pod_sets(_sets(job_set), context)


def _check(job_set: JobSet, notes: Notes) -> None:
    if not job_set.spec.replicated_jobs:
        notes.problem("spec.replicatedJobs", "is required: there is nothing to run")
    check_template_sets(_sets(job_set), notes)
    check_dependencies(job_set.spec.replicated_jobs, "spec.replicatedJobs", notes)


def check_dependencies(jobs: tuple[ReplicatedJob, ...], path: str, notes: Notes) -> None:
    """A job may only wait for one that stands before it, so there can be no circle."""
    before: set[str] = set()
    for index, job in enumerate(jobs):
        for number, needed in enumerate(job.depends_on):
            if needed.name not in before:
                at = f"{path}[{index}].dependsOn[{number}].name"
                notes.problem(at, f'there is no replicated job "{needed.name}" before this one')
        before.add(job.name)


def _priority_class(job_set: JobSet) -> str:
    return first_priority_class(_sets(job_set))


def _scheduler(job_set: JobSet) -> str:
    return first_scheduler(_sets(job_set))


def _is_finished(job_set: JobSet) -> bool:
    return holds(job_set.status.conditions, "Completed", "Failed")


def _reclaimable(job_set: JobSet) -> tuple[tuple[str, int], ...]:
    succeeded = {status.name: status.succeeded for status in job_set.status.replicated_jobs_status}
    return tuple(
        (job.name, done * pods_at_once(job.template.spec))
        for job in job_set.spec.replicated_jobs
        if 0 < (done := succeeded.get(job.name, 0)) <= job.replicas
    )


KINDS = (
    Kind(
        group="jobset.x-k8s.io",
        version="v1alpha2",
        kind="JobSet",
        struct=JobSet,
        namespaced=True,
        check=_check,
        job=JobHooks(
            pod_sets=_pod_sets,
            priority_class=_priority_class,
            is_finished=_is_finished,
            reclaimable=_reclaimable,
            scheduler=_scheduler,
        ),
    ),
)
