"""Slurm's jobs in a queue.

An annotation unsuspends them: it names the admitted Workload, and the operator makes no pods
without it. An array is in no queue; its tasks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.job_kinds import slurm
from unisono.control.job_kinds.slurm.pods import restarts_of
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob
from unisono.control.jobs.pods import is_ready, is_terminal, phase_of
from unisono.control.view import View
from unisono.kinds.slurm import ENDED
from unisono.kube.mapping import Kind
from unisono.slurm.labels import GRANTED_OPTION


class SlurmJobs:
    """How a job of Slurm waits, starts and stops."""

    scales = False
    frees_places = False
    kind: Kind = slurm.JOB
    watches: Sequence[Kind] = (names.POD,)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """One set per group of nodes; none for an array."""
        if job["spec"].get("array"):
            return ()
        return [
            PodSetOfJob(name=one["name"], count=one["nodes"], template=one["template"])
            for one in job["spec"].get("groups") or ()
        ]

    def is_suspended(self, job: Json) -> bool:
        """Say whether it is held back."""
        return not (job["metadata"].get("annotations") or {}).get(slurm.ADMITTED)

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it run, or may."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        return any(not is_terminal(pod) for pod in pods)

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all pods of this run are ready, or the script is through."""
        if (job.get("status") or {}).get("state") == "COMPLETING":
            return True
        run = str(restarts_of(job))
        pods = [
            pod
            for pod in view.owned(names.POD, job["metadata"]["uid"])
            if (pod["metadata"].get("labels") or {}).get(slurm.RESTART) == run
        ]
        there = sum(is_ready(pod) or phase_of(pod) == "Succeeded" for pod in pods)
        return there >= sum(int(one["nodes"]) for one in job["spec"].get("groups") or ())

    def end(self, job: Json) -> End | None:
        """Return how it ended."""
        status = job.get("status") or {}
        state = status.get("state")
        if state not in ENDED:
            return None
        return End(state == "COMPLETED", f"Job is {state} ({status.get('exitCode') or '0:0'})")

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Nothing: a job has its nodes until its script ends."""
        return {}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Name the Workload on the job; what its pods get is read from there."""
        about = next(iter(sets.values())).annotations
        yield _annotated(job, about[names.WORKLOAD_ANNOTATION], about.get(names.GRANTED_LIMIT))

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Take the Workload's name away."""
        yield _annotated(job, None, None)


def _annotated(job: Json, value: str | None, limit: str | None) -> Patch:
    changes: Json = {"metadata": {"annotations": {slurm.ADMITTED: value}}}
    if "time-min" in (job["spec"].get("options") or {}):
        changes["spec"] = {"options": {GRANTED_OPTION: limit}}
    return Patch(Ref.to(job), changes)
