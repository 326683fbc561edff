"""Ray clusters and Ray jobs in a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref
from unisono.control.job_kinds import ray
from unisono.control.job_kinds.ray.job import ENDED, NAME, deployment_of, submitter_template
from unisono.control.job_kinds.ray.pods import HEAD, groups_of
from unisono.control.jobs.adapter import End, Injection, PodSetOfJob, injected, restored
from unisono.control.jobs.pods import is_ready, is_terminal
from unisono.control.view import View
from unisono.kube.mapping import Kind


class RayClusters:
    """How a Ray cluster waits, starts and stops. It never ends by itself."""

    scales = True
    frees_places = False
    kind: Kind = ray.CLUSTER
    watches: Sequence[Kind] = (names.POD,)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """The head, and one set per worker group."""
        return cluster_sets(job["spec"])

    def is_suspended(self, job: Json) -> bool:
        """Say whether the cluster is suspended."""
        return bool(job["spec"].get("suspend"))

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether pods of it are there."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        return any(not is_terminal(pod) for pod in pods)

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether all of its pods are ready."""
        pods = view.owned(names.POD, job["metadata"]["uid"])
        wanted = sum(group.count for group in groups_of(job["spec"]))
        return sum(map(is_ready, pods)) >= wanted

    def end(self, job: Json) -> End | None:
        """It does not end."""
        return None

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Nothing of it is ever done for good."""
        return {}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Inject and release in one write."""
        yield Patch(Ref.to(job), {"spec": {**injected_spec(job["spec"], sets), "suspend": False}})

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Suspend and put the templates back as they were."""
        changes = {"suspend": True, **restored_spec(job["spec"], sets)}
        yield Patch(Ref.to(job), {"spec": changes})


def cluster_sets(spec: Json) -> list[PodSetOfJob]:
    """Return the pod sets of a cluster's spec."""
    return [
        PodSetOfJob(
            name=group.name,
            count=group.count,
            template=group.template,
            is_loose=group.name != HEAD and group.hosts == 1,
        )
        for group in groups_of(spec)
        if group.count
    ]


def injected_spec(spec: Json, sets: Mapping[str, Injection]) -> Json:
    """Return the changes of a cluster's spec that let its pods run where they were admitted to."""
    changes: Json = {}
    if HEAD in sets:
        head = spec["headGroupSpec"].get("template") or {}
        changes["headGroupSpec"] = {"template": injected(head, sets[HEAD])}
    groups = [
        {**group, "template": _merged(group["template"], injected(group["template"], sets[name]))}
        if (name := group["groupName"].lower()) in sets
        else group
        for group in spec.get("workerGroupSpecs") or ()
    ]
    if groups:
        changes["workerGroupSpecs"] = groups
    return changes


def restored_spec(spec: Json, sets: Sequence[PodSetOfJob]) -> Json:
    """Return the changes of a cluster's spec that undo what was injected."""
    originals = {one.name: one.template for one in sets}
    changes: Json = {}
    if HEAD in originals:
        head = spec["headGroupSpec"].get("template") or {}
        changes["headGroupSpec"] = {"template": restored(head, originals[HEAD])}
    groups = [
        {
            **group,
            "template": _merged(group["template"], restored(group["template"], originals[name])),
        }
        if (name := group["groupName"].lower()) in originals
        else group
        for group in spec.get("workerGroupSpecs") or ()
    ]
    if groups:
        changes["workerGroupSpecs"] = groups
    return changes


def _merged(template: Json, changes: Json) -> Json:
    """Apply a merge patch: a list cannot be patched in part, so it is written whole."""
    merged = dict(template)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merged(merged[key], value)
        else:
            merged[key] = _merged({}, value) if isinstance(value, dict) else value
    return merged


class RayJobs:
    """How a Ray job waits, starts and stops."""

    scales = False
    frees_places = False
    kind: Kind = ray.JOB
    watches: Sequence[Kind] = (ray.CLUSTER, names.JOB)

    def pod_sets(self, job: Json, view: View) -> Sequence[PodSetOfJob]:
        """The cluster's sets, and the submitter, which comes when the cluster is up."""
        spec = job["spec"]
        if not spec.get("rayClusterSpec") or spec.get("clusterSelector"):
            return ()
        sets = cluster_sets(spec["rayClusterSpec"])
        if spec.get("submissionMode", "K8sJobMode") == "K8sJobMode":
            template = submitter_template(job)
            sets.append(PodSetOfJob(name=NAME, count=1, template=template, comes_later=True))
        return sets

    def is_suspended(self, job: Json) -> bool:
        """Say whether the job is suspended."""
        return bool(job["spec"].get("suspend"))

    def is_active(self, job: Json, view: View) -> bool:
        """Say whether its cluster or its submitter is there."""
        uid = job["metadata"]["uid"]
        if deployment_of(job) in ("Initializing", "Running", "Suspending", "Retrying"):
            return True
        made = [*view.owned(ray.CLUSTER, uid), *view.owned(names.JOB, uid)]
        pods = (pod for one in made for pod in view.owned(names.POD, one["metadata"]["uid"]))
        return any(not is_terminal(pod) for pod in pods)

    def are_pods_ready(self, job: Json, view: View) -> bool:
        """Say whether its cluster is up."""
        status = (job.get("status") or {}).get("rayClusterStatus") or {}
        return bool(status.get("state") == "ready")

    def end(self, job: Json) -> End | None:
        """Return how it ended; a cluster that stays keeps its quota."""
        phase, status = deployment_of(job), job.get("status") or {}
        if phase not in ENDED or status.get("rayClusterStatus"):
            return None
        return End(phase == "Complete", status.get("message") or f"Job is {phase}")

    def reclaimable(self, job: Json, view: View) -> Mapping[str, int]:
        """Nothing of it is done before the end."""
        return {}

    def start(self, job: Json, sets: Mapping[str, Injection]) -> Iterator[Patch]:
        """Inject and release in one write; the submitter's part is read when it is made."""
        spec = injected_spec(job["spec"]["rayClusterSpec"], sets)
        yield Patch(Ref.to(job), {"spec": {"rayClusterSpec": spec, "suspend": False}})

    def stop(self, job: Json, sets: Sequence[PodSetOfJob]) -> Iterator[Patch]:
        """Suspend and put the templates back as they were."""
        changes: Json = {"suspend": True}
        if job["spec"].get("rayClusterSpec"):
            changes["rayClusterSpec"] = restored_spec(job["spec"]["rayClusterSpec"], sets)
        yield Patch(Ref.to(job), {"spec": changes})
