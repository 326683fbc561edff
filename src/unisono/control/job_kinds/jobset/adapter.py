"""JobSet in a queue: one pod set per replicated job (jobs §7.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.conditions import find
from unisono.control.job_kinds.jobset.child_jobs import pods_of, replicas_of
from unisono.control.job_kinds.jobset.rules import (
    has_pods,
    is_gang,
    may_start,
    prerequisites,
    stages_of,
)
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob, injected, restored
from unisono.control.jobs.pods import merged
from unisono.control.view import View
from unisono.kube.mapping import Kind


def sets_of(spec: Json) -> Sequence[PodSetOfJob]:
    """Return the pod sets of a JobSet's spec; those that wait for others come later."""
    stages = stages_of(spec)
    return [
        PodSetOfJob(
            name=one["name"],
            count=replicas_of(one) * pods_of(one),
            template=(one["template"].get("spec") or {})["template"],
            comes_later=stages[one["name"]] > 0,
        )
        for one in spec.get("replicatedJobs") or ()
        if replicas_of(one) * pods_of(one) > 0
    ]


def are_ready(job_set: Json) -> bool:
    """Say whether all Jobs that may run by now are ready or through."""
    counts = {one["name"]: one for one in _counts(job_set)}
    jobs = job_set["spec"].get("replicatedJobs") or ()
    if len(counts) < len(jobs):
        return False
    return all(
        counts[one["name"]]["ready"] + counts[one["name"]]["succeeded"] >= replicas_of(one)
        for one in jobs
        if may_start(job_set, one, counts)
    )


def done_for_good(job_set: Json) -> Mapping[str, int]:
    """Return the pods that will not run again.

    A gang that fails starts over with all Jobs but finished prerequisites, so until the end Jobs
    that succeeded keep their share.
    """
    succeeded = {one["name"]: one["succeeded"] for one in _counts(job_set)}
    kept = prerequisites(job_set) if is_gang(job_set) else None
    return {
        one["name"]: done * pods_of(one)
        for one in job_set["spec"].get("replicatedJobs") or ()
        if 0 < (done := succeeded.get(one["name"], 0)) <= replicas_of(one)
        and (kept is None or (one["name"] in kept and done == replicas_of(one)))
    }


def _counts(job_set: Json) -> Sequence[Json]:
    return (job_set.get("status") or {}).get("replicatedJobsStatus") or ()


def runs_something(job_set: Json, view: View) -> bool:
    """Say whether pods of a JobSet are there, or may be made at any moment."""
    if any(one["active"] for one in _counts(job_set)):
        return True
    return any(
        has_pods(job) or not (job["spec"].get("suspend") or _is_over(job))
        for job in view.owned(names.JOB, job_set["metadata"]["uid"])
    )


def _is_over(job: Json) -> bool:
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True"
        for one in (job.get("status") or {}).get("conditions") or ()
    )


class JobSets:
    """How a JobSet waits, starts and stops."""

    scales = False
    frees_places = False
    kind: Kind = names.JOB_SET
    watches: Sequence[Kind] = (names.JOB,)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """One set per replicated job."""
        return sets_of(job["spec"])

    def is_suspended(self, job: Json) -> bool:
        """Say whether the JobSet is suspended."""
        return bool(job["spec"].get("suspend"))

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it are there, or may come."""
        return runs_something(job, view)

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all Jobs that may run by now are ready."""
        return are_ready(job)

    def end(self, job: Json) -> End | None:
        """Return how it ended, once nothing of it runs any more."""
        status = job.get("status") or {}
        how = status.get("terminalState")
        if not how or any(one["active"] for one in _counts(job)):
            return None
        found = find(status.get("conditions"), how) or {}
        return End(how == "Completed", found.get("message", ""))

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Return how many pods of each set will not run again."""
        return done_for_good(job)

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Inject and release in one write."""
        jobs = [
            _with_template(one, lambda template, name=one["name"]: injected(template, sets[name]))
            if one["name"] in sets
            else one
            for one in job["spec"].get("replicatedJobs") or ()
        ]
        yield Patch(Ref.to(job), {"spec": {"replicatedJobs": jobs, "suspend": False}})

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Suspend, and put the templates back as they were."""
        originals = {one.name: one.template for one in sets}
        jobs = [
            _with_template(
                one, lambda template, name=one["name"]: restored(template, originals[name])
            )
            if one["name"] in originals
            else one
            for one in job["spec"].get("replicatedJobs") or ()
        ]
        changes: Json = {"suspend": True}
        if jobs != job["spec"].get("replicatedJobs"):
            changes["replicatedJobs"] = jobs
        yield Patch(Ref.to(job), {"spec": changes})


def _with_template(replicated: Json, change: Any) -> Json:
    template = replicated["template"]["spec"]["template"]
    return merged(  # type: ignore[no-any-return]
        replicated, {"template": {"spec": {"template": change(template)}}}
    )
