"""`batch/v1` Job: one pod set `main` of min(parallelism, completions) pods.

    kueue.x-k8s.io/job-min-parallelism: "N"    partial admission may shrink it to N pods
    kueue.x-k8s.io/elastic-job: "true"         it is scaled while it runs; excludes the former
    spec.scheduling                            a gang of minCount pods, in one topology domain

Pods that are done for good give their quota back while the others still run (spec quota §15,
placement §3).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from unisono.engine.model.workload import PodSet
from unisono.kinds.core.pod_sets import (
    TemplateSet,
    check_template_sets,
    first_priority_class,
    first_scheduler,
    pod_sets,
)
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.decode import Int64, Schema
from unisono.kinds.meta import ObjectMeta, TimedCondition, holds
from unisono.kinds.notes import Notes
from unisono.kinds.registry import Context, JobHooks, Kind
from unisono.kinds.scalar import Timestamp
from unisono.kinds.scheduling import (
    SchedulingConstraints,
    SchedulingPolicy,
    check_constraints,
    topology_key,
)

MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
ELASTIC = "kueue.x-k8s.io/elastic-job"

# Kubernetes' own bound for jobs whose pods have an index.
MAX_PARALLELISM = 2**31 - 1

_COUNT = re.compile(r"[1-9][0-9]{0,9}")
_INTERVAL = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")

PodCount = Annotated[int, Meta(ge=0, le=MAX_PARALLELISM)]


class JobScheduling(Schema, frozen=True, kw_only=True):
    """How the job's pods start (Kubernetes 1.37); without it the whole job is one gang."""

    scheduling_policy: SchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: Any = None
    resource_claims: tuple[Any, ...] = ()

    @property
    def min_count(self) -> int | None:
        """How many pods start together; None: all."""
        policy = self.scheduling_policy
        return policy.gang.min_count if policy is not None and policy.gang is not None else None


class JobSpec(Schema, frozen=True, kw_only=True):
    """How many pods of which template, and when the job is done."""

    parallelism: PodCount | None = None
    completions: PodCount | None = None
    template: PodTemplateSpec
    suspend: bool | None = None
    completion_mode: Literal["NonIndexed", "Indexed"] | None = None
    active_deadline_seconds: Int64 | None = None
    backoff_limit: int | None = None
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int | None = None
    manual_selector: bool | None = None
    managed_by: str | None = None
    pod_failure_policy: Any = None
    pod_replacement_policy: str | None = None
    scheduling: JobScheduling | None = None
    selector: Any = None
    success_policy: Any = None
    ttl_seconds_after_finished: int | None = None


class JobStatus(Schema, frozen=True, kw_only=True):
    """How far the job is."""

    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: Any = None
    start_time: Timestamp | None = None
    completion_time: Timestamp | None = None
    conditions: tuple[TimedCondition, ...] = ()


class Job(Schema, frozen=True, kw_only=True):
    """Pods that run to completion."""

    api_version: str
    kind: str
    metadata: ObjectMeta
    spec: JobSpec
    status: JobStatus = JobStatus()


class JobTemplateSpec(Schema, frozen=True, kw_only=True):
    """What every job of a set of jobs is made from."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec


def pods_at_once(spec: JobSpec) -> int:
    """Return how many pods a job runs at the same time."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    return parallelism if spec.completions is None else min(parallelism, spec.completions)


def _sets(job: Job) -> tuple[TemplateSet, ...]:
    main = TemplateSet(
        name="main",
        count=pods_at_once(job.spec),
        min_count=_min_count(job),
        template=job.spec.template,
        path="spec.template",
        labels={"job-name": job.metadata.name, "batch.kubernetes.io/job-name": job.metadata.name},
    )
    return (main,)


def _min_count(job: Job) -> int | None:
    annotations = job.metadata.annotations
    if annotations.get(ELASTIC) == "true":
        return None
    least = annotations.get(MIN_PARALLELISM, "")
    if _COUNT.fullmatch(least):
        return int(least)
    count = job.spec.scheduling.min_count if job.spec.scheduling is not None else None
    return count if count is not None and count < pods_at_once(job.spec) else None


def _pod_sets(job: Job, context: Context) -> tuple[PodSet, ...]:
    made = pod_sets(_sets(job), context)
    scheduling = job.spec.scheduling
    topology = topology_key(scheduling.scheduling_constraints) if scheduling is not None else None
    if topology is None:
        return made
    return tuple(msgspec.structs.replace(one, topology=topology) for one in made)


def _check(job: Job, notes: Notes) -> None:
    check_template_sets(_sets(job), notes)
    if job.spec.template.spec.restart_policy not in ("Never", "OnFailure"):
        notes.lenient(
            "RestartPolicyMissing",
            "spec.template.spec.restartPolicy",
            "must be Never or OnFailure; a real cluster refuses the job",
        )
    if job.spec.scheduling is not None:
        _check_scheduling(job.spec.scheduling, pods_at_once(job.spec), notes)
    at = f"metadata.annotations[{MIN_PARALLELISM}]"
    least = job.metadata.annotations.get(MIN_PARALLELISM)
    if least is None:
        return
    if _COUNT.fullmatch(least) is None:
        notes.problem(at, f'"{least}" must be a number of pods, at least 1')
    elif int(least) > pods_at_once(job.spec):
        notes.problem(at, f"is {least}; the job runs only {pods_at_once(job.spec)} pods at once")


def _check_scheduling(scheduling: JobScheduling, pods: int, notes: Notes) -> None:
    path, policy = "spec.scheduling", scheduling.scheduling_policy
    if policy is not None and (policy.basic is None) == (policy.gang is None):
        notes.problem(f"{path}.schedulingPolicy", "needs exactly one of basic and gang")
    if scheduling.min_count is not None and scheduling.min_count > pods:
        at = f"{path}.schedulingPolicy.gang.minCount"
        notes.problem(at, f"is {scheduling.min_count}; the job runs only {pods} pods at once")
    at = f"{path}.schedulingConstraints"
    check_constraints(scheduling.scheduling_constraints, at, notes)


def _priority_class(job: Job) -> str:
    return first_priority_class(_sets(job))


def _scheduler(job: Job) -> str:
    return first_scheduler(_sets(job))


def _is_finished(job: Job) -> bool:
    return holds(job.status.conditions, "Complete", "Failed")


def _reclaimable(job: Job) -> tuple[tuple[str, int], ...]:
    """Pods that are not replaced: what is left to do needs fewer than run at once."""
    count = pods_at_once(job.spec)
    completions = count if job.spec.completions is None else job.spec.completions
    done = job.status.succeeded
    if job.spec.completion_mode == "Indexed":
        done = _indexes_done(job.status, completions)
    free = count - max(0, completions - done)
    return (("main", free),) if count > 1 and done > 0 and free > 0 else ()


def _indexes_done(status: JobStatus, completions: int) -> int:
    """Count indexes that completed or failed for good; ones above `completions` were scaled away.

    The two lists may overlap and name many indexes in few characters (`0-99999`), so intervals are
    merged and never expanded.
    """
    intervals: list[tuple[int, int]] = []
    for text in f"{status.completed_indexes},{status.failed_indexes or ''}".split(","):
        if interval := _INTERVAL.fullmatch(text):
            first = int(interval[1])
            intervals.append((first, min(int(interval[2] or first), completions - 1)))
    done, counted_to = 0, -1
    for first, last in sorted(intervals):
        start = max(first, counted_to + 1)
        if start <= last:
            done += last - start + 1
            counted_to = last
    return done


KINDS = (
    Kind(
        group="batch",
        version="v1",
        kind="Job",
        struct=Job,
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
