"""Volcano jobs in a queue.

They have no field to suspend them with, so an annotation unsuspends them: it names the admitted
Workload, and the operator makes no pods without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.job_kinds import volcano
from unisono.control.job_kinds.volcano.phases import job_phase as phase_of_job
from unisono.control.job_kinds.volcano.tasks import least_pods, task_minima, tasks_of
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob, with_topology
from unisono.control.jobs.pods import is_ready, is_terminal, phase_of
from unisono.control.manifests import LiveContext, Manifests
from unisono.control.view import View
from unisono.engine.model.errors import InvalidManifest
from unisono.engine.model.workload import TopologyRequest
from unisono.kinds.volcano.jobs import JOB_HOOKS
from unisono.kinds.volcano.queue_quota import PREEMPTABLE
from unisono.kube.mapping import Kind

_ENDS = {"Completed": True, "Failed": False, "Terminated": False, "Aborted": False}


class VolcanoJobs:
    """How a Volcano job waits, starts and stops."""

    scales = True
    frees_places = False
    kind: Kind = volcano.JOB
    watches: Sequence[Kind] = (names.POD,)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """One set per task; fewer pods may start if the job says so."""
        topology_requests = _topologies(job, view)
        return [
            PodSetOfJob(
                name=task.name,
                count=task.replicas,
                template=_labelled(
                    with_topology(task.template, *topology_requests[task.name])
                    if task.name in topology_requests
                    else task.template
                ),
                min_count=max(1, least) if least < task.replicas else None,
                comes_later=bool(task.after),
                # Beyond what must start together every pod is of use by itself.
                is_loose=least < task.replicas,
            )
            for task, least in zip(tasks_of(job), task_minima(job), strict=True)
            if task.replicas
        ]

    def is_suspended(self, job: Json) -> bool:
        """Say whether it is held back."""
        return not (job["metadata"].get("annotations") or {}).get(volcano.ADMITTED)

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it run, or may."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        return any(not is_terminal(pod) for pod in pods)

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether as many pods are ready or through as must start together."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        version = str((job.get("status") or {}).get("version", 0))
        there = sum(
            is_ready(pod) or phase_of(pod) == "Succeeded"
            for pod in pods
            if (pod["metadata"].get("annotations") or {}).get(volcano.VERSION) == version
        )
        return there >= least_pods(job)

    def end(self, job: Json) -> End | None:
        """Return how it ended."""
        phase = phase_of_job(job)
        if phase not in _ENDS:
            return None
        state = job["status"]["state"]
        return End(_ENDS[phase], state.get("message") or f"Job is {phase}")

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Return how many pods of each task succeeded, if nothing can make them run again."""
        if phase_of_job(job) not in ("Pending", "Running") or _may_restart(job):
            return {}
        counts = (job.get("status") or {}).get("taskStatusCount") or {}
        return {
            task.name: min(done, task.replicas)
            for task in tasks_of(job)
            if (done := (counts.get(task.name) or {}).get("phase", {}).get("Succeeded", 0))
        }

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Name the Workload on the job; what its pods get is read from there."""
        name = next(iter(sets.values())).annotations[names.WORKLOAD_ANNOTATION]
        yield _annotated(job, name)

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Take the Workload's name away."""
        yield _annotated(job, None)


def _labelled(template: Json) -> Json:
    """Return a template that says in a label whether its pods may be preempted (`queue_quota`)."""
    metadata = template.get("metadata") or {}
    said = (metadata.get("annotations") or {}).get(PREEMPTABLE)
    if said is None or (metadata.get("labels") or {}).get(PREEMPTABLE) == said:
        return template
    labels = {**(metadata.get("labels") or {}), PREEMPTABLE: said}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _topologies(job: Json, view: View) -> Mapping[str, tuple[TopologyRequest, str]]:
    """Return how close to each other the pods of each task must be, for tasks that say so."""
    spec = job["spec"]
    is_cut = any(task.get("partitionPolicy") for task in spec.get("tasks") or ())
    if not spec.get("networkTopology") and not is_cut:
        return {}
    manifests = Manifests(view)
    try:
        made = manifests.read(job)
    except InvalidManifest:
        return {}  # such a job is not queued, and told so
    sets = JOB_HOOKS.pod_sets(made, LiveContext(manifests, job["metadata"]["namespace"]))
    return {one.name: (one.topology, one.group) for one in sets if one.topology is not None}


def _may_restart(job: Json) -> bool:
    """Say whether a policy starts pods over that have succeeded."""
    policies = [*(job["spec"].get("policies") or ())]
    for task in tasks_of(job):
        policies += task.policies
    return any(str(one.get("action", "")).startswith("Restart") for one in policies)


def _annotated(job: Json, value: str | None) -> Patch:
    return Patch(Ref.to(job), {"metadata": {"annotations": {volcano.ADMITTED: value}}})


def queue_named_by(job: Json) -> str:
    """Return the Volcano queue that a job is in."""
    return str(job["spec"].get("queue") or volcano.DEFAULT_QUEUE)
