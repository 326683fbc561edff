"""Jobs of kubeflow.org in a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.conditions import find
from unisono.control.job_kinds.kubeflow import ENDS, JobKind
from unisono.control.job_kinds.kubeflow.pods import waits_for_workers
from unisono.control.job_kinds.kubeflow.replicas import replicas_of
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob, injected, restored
from unisono.control.jobs.pods import is_ready, is_terminal, phase_of
from unisono.control.view import View
from unisono.kube.mapping import Kind


class KubeflowJobs:
    """How the jobs of one kind wait, start and stop."""

    scales = False
    frees_places = False

    def __init__(self, job_kind: JobKind) -> None:
        """Take the kind."""
        self._job_kind = job_kind
        self.kind: Kind = job_kind.kind
        self.watches: Sequence[Kind] = (names.POD,)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """One set per replica type, the leader first."""
        policy = (job["spec"].get("runPolicy") or {}).get("schedulingPolicy") or {}
        sets = []
        for one in replicas_of(job, self._job_kind):
            template = one.template
            if policy.get("priorityClass"):
                spec = {**(template.get("spec") or {})}
                spec.setdefault("priorityClassName", policy["priorityClass"])
                template = {**template, "spec": spec}
            later = one.type == "Launcher" and waits_for_workers(job)
            if one.count:
                sets.append(
                    PodSetOfJob(
                        name=one.name, count=one.count, template=template, comes_later=later
                    )
                )
        return sets

    def is_suspended(self, job: Json) -> bool:
        """Say whether the job is suspended."""
        return bool((job["spec"].get("runPolicy") or {}).get("suspend"))

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it run, or may."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        return any(not is_terminal(pod) for pod in pods)

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all of its pods are ready or through."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        there = sum(is_ready(pod) or phase_of(pod) == "Succeeded" for pod in pods)
        return there >= sum(one.count for one in replicas_of(job, self._job_kind))

    def end(self, job: Json) -> End | None:
        """Return how it ended."""
        conditions = (job.get("status") or {}).get("conditions")
        for kind in ENDS:
            found = find(conditions, kind)
            if found is not None and found["status"] == "True":
                return End(kind == "Succeeded", found.get("message", ""))
        return None

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Nothing: a restart starts all pods over."""
        return {}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Inject and release in one write."""
        specs = {
            written: {"template": injected(spec.get("template") or {}, sets[written.lower()])}
            for written, spec in job["spec"][self._job_kind.field].items()
            if written.lower() in sets
        }
        changes = {self._job_kind.field: specs, "runPolicy": {"suspend": False}}
        yield Patch(Ref.to(job), {"spec": changes})

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Suspend and put the templates back as they were."""
        originals = {one.name: one.template for one in sets}
        specs = {
            written: {"template": restored(spec.get("template") or {}, originals[written.lower()])}
            for written, spec in job["spec"][self._job_kind.field].items()
            if written.lower() in originals
        }
        changes = {"runPolicy": {"suspend": True}, self._job_kind.field: specs}
        yield Patch(Ref.to(job), {"spec": changes})
