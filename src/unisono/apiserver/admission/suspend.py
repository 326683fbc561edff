"""Jobs and pods that a queue has to admit first are held back from the start (spec quota §16).

    a job with the label kueue.x-k8s.io/queue-name      is created suspended
    a pod with it                                       is created with a gate
    a job without it, if the policy has a queue for the
    namespace (`defaultQueues`), or there is a
    LocalQueue named `default`                          gets the label
    a pod without it that names our scheduler           likewise
    either without it, with manageJobsWithoutQueueName  is created suspended, or with a gate

Left alone is what belongs to a job that is itself managed, and everything in namespaces that are
not managed. A job that was admitted keeps its queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from unisono.apiserver.builtin.field_errors import invalid as wrong_value
from unisono.apiserver.builtin.pods.strategy import note_gates
from unisono.apiserver.errors import invalid
from unisono.apiserver.objects import Json, at, child, items, labels_of
from unisono.apiserver.strategy import Context
from unisono.apiserver.times import timestamp
from unisono.kinds.core.pod_groups import COSCHEDULING_LABEL, VOLCANO_ANNOTATIONS
from unisono.kinds.expressions.jsonpath import plain_names
from unisono.kinds.known import KNOWN
from unisono.kinds.managers import other_manager
from unisono.kinds.meta import NAMESPACE_LABEL, wrong_with_subdomain
from unisono.kinds.policy.settings import Settings, is_managed, settings_from
from unisono.kinds.registry import Kind
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kinds.snapshot.candidates import DEFAULT_QUEUE, QUEUE_LABEL, QUEUE_LABEL_PATH

LOCAL_QUEUES = "kueue.x-k8s.io/localqueues"
WORKLOADS = "kueue.x-k8s.io/workloads"
POLICIES = "unisono.dev/policies"
JOBS = "batch/jobs"
RAY_JOBS = "ray.io/rayjobs"
MANAGED_LABEL = "kueue.x-k8s.io/managed"
# A group counts its pods even when they are over; the controller lets them go in the end.
POD_FINALIZER = "kueue.x-k8s.io/managed"
GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"
SCHEDULER = "unisono"
SYSTEM = "system:unisono"  # the name under which our own controllers write


def hold(served: Served, obj: Json, context: Context) -> None:
    """Hold a new job or pod back if a queue has to admit it."""
    key = served.key
    is_pod = key == PODS
    place = _suspend_place(served, context)
    if not is_pod and not place:
        return
    labels = labels_of(obj)
    queue = labels.get(QUEUE_LABEL, "")
    if is_pod and not queue and not is_alone_and_ours(obj):
        return
    namespace = str(at(obj, "metadata").get("namespace") or "")
    settings = read_settings(context)
    if not is_managed(settings, namespace_labels(namespace, context)):
        return
    if managed_owner(obj, context) is not None or other_manager(obj)[1]:
        return
    if key == RAY_JOBS and at(obj, "spec").get("clusterSelector"):
        return  # it runs on a cluster that is there, and asks for nothing of its own
    _refuse_bad_name(served, obj, queue)
    if not queue:
        queue = default_queue(namespace, context)
        if queue:
            child(child(obj, "metadata"), "labels")[QUEUE_LABEL] = queue
    if not queue and not settings.manages_unqueued:
        return
    if is_pod:
        _gate(obj, context.now)
    else:
        _suspend(place, obj)
        if key == JOBS:
            _say_suspended(obj, context.now)


def default_queue(namespace: str, context: Context) -> str:
    """Return the queue of jobs of a namespace that name none; empty if there is no such."""
    given = read_settings(context).default_queue(namespace_labels(namespace, context))
    if given:
        return given
    is_there = context.find(LOCAL_QUEUES, namespace, DEFAULT_QUEUE) is not None
    return DEFAULT_QUEUE if is_there else ""


def is_alone_and_ours(pod: Json) -> bool:
    """Say whether a pod of no group names our scheduler: then it is a job of one pod."""
    spec, metadata = at(pod, "spec"), at(pod, "metadata")
    if spec.get("schedulerName") != SCHEDULER or spec.get("nodeName"):
        return False
    annotations = at(metadata, "annotations")
    in_group = (
        any(label in labels_of(pod) for label in (GROUP_LABEL, COSCHEDULING_LABEL))
        or any(name in annotations for name in VOLCANO_ANNOTATIONS)
        or any(spec.get(field) for field in ("schedulingGroup", "workloadRef"))
    )
    return not in_group and not items(metadata, "ownerReferences")


def _say_suspended(job: Json, now: float) -> None:
    """Write what the job's operator would write in a moment, and spare it that."""
    condition = {
        "type": "Suspended",
        "status": "True",
        "reason": "JobSuspended",
        "message": "Job suspended",
        "lastTransitionTime": timestamp(now),
    }
    child(job, "status")["conditions"] = [condition]


def refuse_changes(served: Served, obj: Json, old: Json) -> None:
    """A job that was let go stays in its queue: its quota is counted there."""
    key = served.key
    if key != PODS and key not in _SUSPEND_FIELDS:
        return
    before, after = labels_of(old).get(QUEUE_LABEL, ""), labels_of(obj).get(QUEUE_LABEL, "")
    if before == after:
        return
    _refuse_bad_name(served, obj, after)
    if before and not _is_held(_SUSPEND_FIELDS.get(key, ()), old):
        why = "the queue of a job that is not suspended cannot change"
        raise _invalid(served, obj, wrong_value(QUEUE_LABEL_PATH, after, why))


def keep_held(served: Served, obj: Json, old: Json, context: Context) -> None:
    """Keep a job suspended that waits in a queue; warn if its author resumes it.

    Not refused: a manifest that says `suspend: false` may be applied again and again.
    """
    place = _suspend_place(served, context)
    if not place or context.user.name == SYSTEM:
        return
    if not _is_held(place, old) or managed_owner(obj, context) is not None:
        return
    namespace = str(at(obj, "metadata").get("namespace") or "")
    settings, before = read_settings(context), labels_of(old).get(QUEUE_LABEL, "")
    is_ours = is_managed(settings, namespace_labels(namespace, context))
    queue = labels_of(obj).get(QUEUE_LABEL, "") or default_queue(namespace, context)
    if not is_ours or not (queue or before or settings.manages_unqueued):
        return
    if not queue and not settings.manages_unqueued:
        context.warn(f"{QUEUE_LABEL_PATH}: names no queue any more; nothing holds the job to quota")
    elif not _is_held(place, obj) and not _is_admitted(
        str(at(old, "metadata").get("uid")), namespace, context
    ):
        _suspend(place, obj)
        path, by = ".".join(place), f"queue {queue}" if queue else "a queue"
        context.warn(f"{path}: stays true; the job starts when {by} admits it")


def _is_admitted(uid: str, namespace: str, context: Context) -> bool:
    """Say whether a job has a Workload that was admitted: then others may let it go, too."""
    for workload in context.every(WORKLOADS, namespace, saying=uid.encode()):
        owners = items(at(workload, "metadata"), "ownerReferences")
        conditions = items(at(workload, "status"), "conditions")
        if any(owner.get("uid") == uid for owner in owners) and any(
            one.get("type") == "Admitted" and one.get("status") == "True" for one in conditions
        ):
            return True
    return False


def read_settings(context: Context) -> Settings:
    """Return what the operator chose; the first policy by name, should there be several."""
    policies = sorted(context.every(POLICIES), key=_name)
    return settings_from(policies[0] if policies else None)


def namespace_labels(namespace: str, context: Context) -> Mapping[str, str]:
    """Return the labels of a namespace; it has at least its name."""
    found = context.find("/namespaces", "", namespace)
    labels = labels_of(found) if found is not None else {}
    return {NAMESPACE_LABEL: namespace, **labels}


def _name(obj: Mapping[str, Any]) -> str:
    return str(at(obj, "metadata").get("name"))


def _gate(pod: Json, now: float) -> None:
    spec, metadata = child(pod, "spec"), child(pod, "metadata")
    if spec.get("nodeName"):
        return  # a pod that is bound already is decided about
    gates = items(spec, "schedulingGates")
    if not any(gate.get("name") == _GATE for gate in gates):
        spec["schedulingGates"] = [*gates, {"name": _GATE}]
    child(metadata, "labels")[MANAGED_LABEL] = "true"
    finalizers = metadata.get("finalizers") or []
    if labels_of(pod).get(GROUP_LABEL) and POD_FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, POD_FINALIZER]
    note_gates(pod, now)


def _refuse_bad_name(served: Served, obj: Json, queue: str) -> None:
    wrong = wrong_with_subdomain(queue) if queue else ""
    if wrong:
        raise _invalid(served, obj, wrong_value(QUEUE_LABEL_PATH, queue, wrong))


def _invalid(served: Served, obj: Json, cause: Any) -> Exception:
    return invalid(served.kind, _name(obj), [cause], group=served.group)


# ---- kinds of jobs -------------------------------------------------------------------------------
#
# The kinds of jobs, and where each keeps whether it is held back.

_GATE = "kueue.x-k8s.io/admission"
PODS = "/pods"

_RUN_POLICY = ("spec", "runPolicy", "suspend")
_SPEC = ("spec", "suspend")
# A Volcano job has no such field; its pods are withheld instead.
_SUSPEND_FIELDS: Mapping[str, tuple[str, ...]] = {
    "batch/jobs": _SPEC,
    "jobset.x-k8s.io/jobsets": _SPEC,
    "trainer.kubeflow.org/trainjobs": _SPEC,
    "ray.io/rayclusters": _SPEC,
    "ray.io/rayjobs": _SPEC,
    "kubeflow.org/jaxjobs": _RUN_POLICY,
    "kubeflow.org/mpijobs": _RUN_POLICY,
    "kubeflow.org/paddlejobs": _RUN_POLICY,
    "kubeflow.org/pytorchjobs": _RUN_POLICY,
    "kubeflow.org/tfjobs": _RUN_POLICY,
    "kubeflow.org/xgboostjobs": _RUN_POLICY,
}


def job_kind(served: Served) -> Kind | None:
    """Return the typed manifest of a kind of which one object is one workload, or None."""
    kind = KNOWN.kinds.get((served.api_version, served.kind))
    return kind if kind is not None and kind.job is not None else None


def _suspend_place(served: Served, context: Context) -> tuple[str, ...]:
    """Return where a kind of jobs keeps whether it is held back; nothing of any other kind."""
    place = _SUSPEND_FIELDS.get(served.key, ())
    if place or served.key in _known_keys():
        return place
    for declared in context.every("unisono.dev/workloadkinds"):
        spec = at(dict(declared), "spec")
        if (spec.get("apiVersion"), spec.get("kind")) == (served.api_version, served.kind):
            return plain_names(str(spec.get("suspend"))) or ()
    return ()


@cache
def _known_keys() -> frozenset[str]:
    return frozenset(one.key for one in served_kinds())


def _suspend(place: tuple[str, ...], obj: Json) -> None:
    """Hold a job back."""
    *parents, last = place
    at_ = obj
    for name in parents:
        at_ = child(at_, name)
    at_[last] = True


def _is_held(place: tuple[str, ...], obj: Json) -> bool:
    """Say whether a job is suspended, or a pod, which has no such place, has our gate."""
    if not place:
        return any(gate.get("name") == _GATE for gate in items(at(obj, "spec"), "schedulingGates"))
    *parents, last = place
    return at(obj, *parents).get(last) is True


@cache
def _keys() -> Mapping[tuple[str, str], str]:
    """Find where objects of a job kind are stored by what an owner reference says of them."""
    return {
        (served.api_version, served.kind): served.key
        for served in served_kinds()
        if job_kind(served) is not None
    }


@cache
def _keys_of(keys: tuple[str, ...]) -> Mapping[tuple[str, str], str]:
    """Find the same of some kinds that are no jobs."""
    return {(one.api_version, one.kind): one.key for one in served_kinds() if one.key in keys}


def managed_owner(obj: Json, context: Context) -> Mapping[str, Any] | None:
    """Return the job that an object belongs to; what is decided about that one counts for it."""
    return controlling_owner(obj, context)


def controlling_owner(
    obj: Json, context: Context, more: tuple[str, ...] = ()
) -> Mapping[str, Any] | None:
    """Return the job that an object belongs to, or an owner of some more kinds, by their keys."""
    metadata = at(obj, "metadata")
    for owner in items(metadata, "ownerReferences"):
        named = str(owner.get("apiVersion")), str(owner.get("kind"))
        key = _keys().get(named) or _keys_of(more).get(named)
        if key is not None and owner.get("controller") is True:
            found = context.find(key, str(metadata.get("namespace")), str(owner.get("name")))
            if found is not None:
                return found
    return None
