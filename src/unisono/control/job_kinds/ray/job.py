"""The operator of Ray jobs: brings up a cluster, submits the program, follows it, tidies up.

    "" ──▶ Initializing ──cluster ready──▶ Running ──▶ Complete
              ▲                              ├──failed──▶ Retrying ──all gone──▶ "" (back-off)
              │                              └──no retry left──▶ Failed
              └── "" ◀──resume── Suspended ◀──all gone── Suspending ◀── (suspend)

The program is followed through its submitter, a pod that ends as the program does.
"""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Generator, Iterable, Sequence
from typing import Any

import yaml

from unisono.control import names
from unisono.control.actions import (
    Action,
    Again,
    Create,
    Delete,
    Json,
    Note,
    Patch,
    Ref,
    Steps,
    Together,
)
from unisono.control.conditions import is_true, seconds, timestamp
from unisono.control.controller import own_key, owner_key
from unisono.control.gangs.recovery import (
    ATTEMPT,
    LAST_INCIDENT,
    Incident,
    Record,
    first_delay_of,
    record_of,
    starts_again,
    without_limit,
)
from unisono.control.job_kinds import ray
from unisono.control.job_kinds.ray.pods import head_address
from unisono.control.jobs.adapter import Injection, injected
from unisono.control.jobs.controller import injections
from unisono.control.jobs.pods import is_deleting, phase_of, suffix
from unisono.control.jobs.queues import Queues, may_make_pods
from unisono.control.jobs.workload import owner_reference, workload_name
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

ENDED = ("Complete", "Failed")
NO_CLUSTER = "ClusterNotFound"  # the reason of a job that selects a cluster which is not there
_LOOK_AGAIN_S = 5.0
_STOPPABLE = ("", "Initializing", "Waiting", "Running")
_COPIED = (
    "state",
    "desiredWorkerReplicas",
    "availableWorkerReplicas",
    "desiredCPU",
    "desiredMemory",
    "desiredGPU",
    "desiredTPU",
    "head",
)


class RayJobOperator:
    """Runs Ray jobs."""

    name = "rayjob"
    watches: Sequence[Kind] = (ray.JOB, ray.CLUSTER, names.JOB, names.WORKLOAD, names.POD)
    owner_kind: Kind = ray.JOB
    dependent_kinds: Sequence[Kind] = (ray.CLUSTER, names.JOB, names.WORKLOAD)
    idle_without: Kind = ray.JOB

    def __init__(self, queues: Queues) -> None:
        """Take what knows which jobs wait to be admitted."""
        self._queues = queues

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A job, or something that it made; of its pods the submitter alone."""
        if kind == ray.JOB:
            yield own_key(obj)
        elif kind == names.POD:
            for key in owner_key(obj, names.JOB):
                submitter = view.get(names.JOB, key.name, key.namespace)
                if submitter is not None:
                    yield from owner_key(submitter, ray.JOB)
        else:
            yield from owner_key(obj, ray.JOB)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one job a step further."""
        job = view.get(ray.JOB, key.name, key.namespace)
        if job is None or is_deleting(job) or job["spec"].get("managedBy") not in ray.OURS:
            return
        phase = deployment_of(job)
        if job["spec"].get("suspend") and phase in _STOPPABLE:
            yield from _write(job, {"jobDeploymentStatus": "Suspending"})
        elif phase in ("Suspending", "Retrying"):
            yield from self._clear(job, view)
        elif phase in ENDED:
            yield from self._tidy(job, view, now)
        elif job["spec"].get("suspend") and (late := _made(job, view)):
            # A request of an earlier leader came when the job was suspended already.
            yield from _delete(late)
        elif job["spec"].get("suspend") or not may_make_pods(job, ray.JOB, self._queues, view):
            return
        elif phase in ("", "Suspended"):
            yield from self._begin(job, now)
        else:
            yield from self._go_on(job, phase, view, now)

    # ---- the way through ---------------------------------------------------------------------

    def _begin(self, job: Json, now: float) -> Steps:
        metadata = job["metadata"]
        last = Record.of(metadata.get("annotations"))
        if last is not None and now < seconds(last.restart_at):
            yield Again(seconds(last.restart_at))
            return
        letters = suffix(metadata["uid"], (job.get("status") or {}).get("failed", 0))
        selector = job["spec"].get("clusterSelector") or {}
        named = selector.get(ray.CLUSTER_LABEL)
        changes = {
            "jobDeploymentStatus": "Initializing",
            "jobId": job["spec"].get("jobId") or f"{metadata['name']}-{letters}",
            "rayClusterName": named or f"{metadata['name']}-{letters}",
            "startTime": timestamp(now),
            "jobStatus": None,
            "endTime": None,
            "message": None,
            "reason": None,
        }
        yield from _write(job, changes)

    def _go_on(self, job: Json, phase: str, view: View, now: float) -> Steps:
        late = _deadline(job, phase)
        if late is not None and now >= late:
            message = f"the job was not over {int(late - _started(job))} s after its start"
            yield from self._fail(job, "DeadlineExceeded", message, now, may_retry=False)
            return
        metadata = job["metadata"]
        cluster = view.get(ray.CLUSTER, job["status"]["rayClusterName"], metadata["namespace"])
        if cluster is None and not job["spec"].get("clusterSelector"):
            if phase != "Initializing":
                message = "the cluster is gone"
                yield from self._fail(job, "JobDeploymentStatusTransitionGrace", message, now)
                return
            cluster = yield Create(_cluster(job))
        if cluster is not None:
            changes: Json = {"rayClusterStatus": _copied(cluster)}
            if (job.get("status") or {}).get("reason") == NO_CLUSTER:
                changes |= {"message": None, "reason": None}
            job = yield from _write(job, changes)
            if phase == "Initializing" and (cluster.get("status") or {}).get("state") == "ready":
                yield from self._submit(job, cluster, view)
            elif phase == "Running":
                yield from self._follow(job, view, now)
        elif phase == "Initializing":
            name = job["status"]["rayClusterName"]
            message = f"waits for RayCluster {name}, which it selects and which does not exist"
            yield from _write(job, {"message": message, "reason": NO_CLUSTER})
        if phase == "Initializing" and job["spec"].get("clusterSelector"):
            yield Again(now + _LOOK_AGAIN_S)  # a cluster that is not its own does not wake it
        if late is not None:
            yield Again(late)

    def _submit(self, job: Json, cluster: Json, view: View) -> Steps:
        if job["spec"].get("submissionMode") == "InteractiveMode" and not job["spec"].get("jobId"):
            yield from _write(job, {"jobDeploymentStatus": "Waiting"})
            return
        yield Create(_submitter_job(job, cluster, self._injection(job, view)))
        yield from _write(job, {"jobDeploymentStatus": "Running", "jobStatus": "PENDING"})

    def _injection(self, job: Json, view: View) -> Injection | None:
        """Return what the submitter gets if a queue keeps a place for it."""
        metadata = job["metadata"]
        name = workload_name(ray.JOB, metadata["name"], metadata["uid"])
        workload = view.get(names.WORKLOAD, name, metadata["namespace"])
        if workload is None or not (workload.get("status") or {}).get("admission"):
            return None
        return injections(workload, view, self._queues).get(NAME)

    def _follow(self, job: Json, view: View, now: float) -> Steps:
        namespace = job["metadata"]["namespace"]
        submitter = view.get(names.JOB, _job_name(job), namespace)
        if submitter is None:
            yield from self._fail(job, "SubmissionFailed", "the submitter is gone", now)
            return
        conditions = (submitter.get("status") or {}).get("conditions")
        if is_true(conditions, "Complete"):
            changes = {
                "jobDeploymentStatus": "Complete",
                "jobStatus": "SUCCEEDED",
                "endTime": timestamp(now),
                "succeeded": 1,
                "message": "Job finished successfully.",
            }
            yield from _write(job, changes)
            yield Note(Ref.to(job), "JobSucceeded", "The program is through")
        elif is_true(conditions, "Failed"):
            yield from self._fail(job, "AppFailed", "The program failed", now)
        else:
            pods = view.owned(names.POD, submitter["metadata"]["uid"])
            if any(phase_of(pod) == "Running" for pod in pods):
                yield from _write(job, {"jobStatus": "RUNNING"})

    def _fail(
        self, job: Json, reason: str, message: str, now: float, *, may_retry: bool = True
    ) -> Steps:
        failed = (job.get("status") or {}).get("failed", 0) + 1
        retries = may_retry and failed <= (job["spec"].get("backoffLimit") or 0)
        changes: Json = {
            "jobDeploymentStatus": "Retrying" if retries else "Failed",
            "jobStatus": "FAILED",
            "reason": reason,
            "message": message,
            "failed": failed,
        }
        if not retries:
            changes["endTime"] = timestamp(now)
        else:
            job, changes["message"] = yield from _back_off(job, failed, reason, message, now)
        yield from _write(job, changes)
        yield Note(Ref.to(job), reason, changes["message"], "Warning")

    # ---- away with it ------------------------------------------------------------------------

    def _clear(self, job: Json, view: View) -> Steps:
        """Delete what the job made; once that is gone, say so."""
        made = _made(job, view)
        if made:
            yield from _delete(made)
            return
        is_retry = deployment_of(job) == "Retrying"
        changes = {
            "jobDeploymentStatus": "" if is_retry else "Suspended",
            "jobStatus": "",
            "jobId": "",
            "rayClusterName": "",
            "rayClusterStatus": None,
        }
        yield from _write(job, changes)

    def _tidy(self, job: Json, view: View, now: float) -> Steps:
        """Take the cluster down when the job is over, if it wants that."""
        clusters = view.owned(ray.CLUSTER, job["metadata"]["uid"])
        if not clusters:
            yield from _write(job, {"rayClusterStatus": None})
            return
        if not job["spec"].get("shutdownAfterJobFinishes"):
            return
        ends = seconds(job["status"].get("endTime") or "")
        at = ends + (job["spec"].get("ttlSecondsAfterFinished") or 0)
        if now >= at:
            yield from _delete(clusters)
        else:
            yield Again(at)


def _back_off(
    job: Json, failed: int, reason: str, message: str, now: float
) -> Generator[Action, Any, tuple[Json, str]]:
    """Write down when the next try begins; return the job as it then is, and say so.

    Upstream retries at once, always. If the process died after this, the record holds.
    """
    annotations = job["metadata"].get("annotations")
    last = Record.of(annotations)
    if last is None or last.attempt != failed:
        incident = Incident("app", reason, message, at=now)
        delay = first_delay_of(annotations)
        restart = without_limit(incident, last, delay, ready_at=_started(job), now=now)
        last = record_of(incident, restart, failed)
        texts = {ATTEMPT: str(failed), LAST_INCIDENT: last.text()}
        job = yield Patch(Ref.to(job), {"metadata": {"annotations": texts}})
    return job, message + starts_again(seconds(last.restart_at), last.row, now)


def deployment_of(job: Json) -> str:
    """Return how far a job is."""
    return str((job.get("status") or {}).get("jobDeploymentStatus") or "")


def _started(job: Json) -> float:
    return seconds((job.get("status") or {}).get("startTime") or "")


def _deadline(job: Json, phase: str) -> float | None:
    """Return until when a job must be over, or running."""
    limits = [job["spec"].get("activeDeadlineSeconds")]
    if phase == "Initializing":
        limits.append(job["spec"].get("preRunningDeadlineSeconds"))
    given = [limit for limit in limits if limit is not None]
    return _started(job) + min(given) if given else None


def _cluster(job: Json) -> Json:
    spec = {**job["spec"]["rayClusterSpec"], "suspend": False}
    return {
        "apiVersion": ray.CLUSTER.api_version,
        "kind": ray.CLUSTER.kind,
        "metadata": {
            "name": job["status"]["rayClusterName"],
            "namespace": job["metadata"]["namespace"],
            "labels": {"ray.io/originated-from-cr-name": job["metadata"]["name"]},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def _copied(cluster: Json) -> Json:
    status = cluster.get("status") or {}
    return {key: status.get(key) for key in _COPIED}


def _made(job: Json, view: View) -> list[Json]:
    """Return the cluster and the submitter of a job, and what is left of their pods."""
    uid = job["metadata"]["uid"]
    above = [*view.owned(ray.CLUSTER, uid), *view.owned(names.JOB, uid)]
    below = [pod for one in above for pod in view.owned(names.POD, one["metadata"]["uid"])]
    return [*above, *below]


def _delete(objects: Sequence[Json]) -> Steps:
    going = [one for one in objects if not is_deleting(one)]
    if going:
        yield Together([Delete(Ref.to(one), policy="Foreground") for one in going])


def _write(job: Json, changes: Json) -> Generator[Action, Any, Json]:
    """Write parts of a status if they are different; return the job as it then is."""
    old = job.get("status") or {}
    if all(_same(old.get(key), value) for key, value in changes.items()):
        return job
    written: Json = yield Patch(Ref.to(job), {"status": changes}, "status")
    return written


def _same(old: Any, new: Any) -> bool:
    if isinstance(new, dict) and isinstance(old, dict):
        return all(_same(old.get(key), value) for key, value in new.items())
    return bool((old or None) == (new or None))


# ---- the submitter -------------------------------------------------------------------------------
#
# The pod that hands a program to a Ray cluster and stays until it is through (K8sJobMode).

NAME = "submitter"
_DASHBOARD = ray.PORTS["dashboard"]
_RETRIES = 2


def submitter_template(job: Json, selected: Json | None = None) -> Json:
    """Return the template of the submitter as the job gives it, or the usual one.

    That has the image of the head; `selected` is the spec of a cluster that the job only selects.
    """
    given = job["spec"].get("submitterPodTemplate")
    if given:
        return dict(given)
    cluster = job["spec"].get("rayClusterSpec") or selected or {}
    head = ((cluster.get("headGroupSpec") or {}).get("template") or {}).get("spec") or {}
    image = (head.get("containers") or [{}])[0].get("image", "")
    container = {
        "name": "ray-job-submitter",
        "image": image,
        "resources": {
            "requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    }
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def _submitter_job(job: Json, cluster: Json, injection: Injection | None) -> Json:
    """Return the Job whose pod submits the program."""
    metadata = job["metadata"]
    template: Json = copy.deepcopy(submitter_template(job, cluster["spec"]))
    if injection is not None:
        changes = injected(template, injection)
        template["metadata"] = {**(template.get("metadata") or {}), **changes["metadata"]}
        template["spec"] = {**template["spec"], **changes.get("spec", {})}
    # What is said of the job about how it runs (where pods are only simulated) is said of this pod.
    defaults = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key.startswith("unisono.dev/") and key != "unisono.dev/submitter"
    }
    about = template.setdefault("metadata", {})
    about["annotations"] = {**defaults, **(about.get("annotations") or {})}
    template["spec"]["restartPolicy"] = template["spec"].get("restartPolicy") or "Never"
    container = template["spec"]["containers"][0]
    if not container.get("command"):
        container["command"] = ["/bin/bash", "-c", "--"]
        container["args"] = [_line(job, cluster)]
    address = f"{head_address(cluster)}:{_DASHBOARD}"
    container["env"] = [
        *(container.get("env") or ()),
        {"name": "RAY_DASHBOARD_ADDRESS", "value": address},
        {"name": "RAY_JOB_SUBMISSION_ID", "value": job["status"]["jobId"]},
    ]
    retries = (job["spec"].get("submitterConfig") or {}).get("backoffLimit", _RETRIES)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": _job_name(job),
            "namespace": metadata["namespace"],
            "labels": {"ray.io/originated-from-cr-name": metadata["name"]},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {"backoffLimit": retries, "template": template},
    }


def _job_name(job: Json) -> str:
    """Return the name of the submitter's Job; every attempt has its own."""
    failed = (job.get("status") or {}).get("failed", 0)
    name = str(job["metadata"]["name"])
    return f"{name}-{failed}" if failed else name


def _line(job: Json, cluster: Json) -> str:
    """Return what a shell does: submit unless that was done before, then follow the log."""
    spec, identity = job["spec"], shlex.quote(job["status"]["jobId"])
    address = f"--address http://{head_address(cluster)}:{_DASHBOARD}"
    options = ["--no-wait", f"--submission-id {identity}"]
    environment = spec.get("runtimeEnvYAML")
    if environment:
        options.append(f"--runtime-env-json {shlex.quote(json.dumps(_read(environment)))}")
    if spec.get("metadata"):
        options.append(f"--metadata-json {shlex.quote(json.dumps(spec['metadata']))}")
    for field, flag in (
        ("entrypointNumCpus", "--entrypoint-num-cpus"),
        ("entrypointNumGpus", "--entrypoint-num-gpus"),
    ):
        if spec.get(field):
            options.append(f"{flag} {spec[field]}")
    if spec.get("entrypointResources"):
        options.append(f"--entrypoint-resources {shlex.quote(spec['entrypointResources'])}")
    submit = f"ray job submit {address} {' '.join(options)} -- {spec.get('entrypoint', '')}"
    return (
        f"if ! ray job status {address} {identity} > /dev/null 2>&1; then {submit}; fi;"
        f" ray job logs {address} --follow {identity}"
    )


def _read(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
