"""Jobs and pods that a queue has to admit first are held back from the start (spec quota §16).

    a job with the label kueue.x-k8s.io/queue-name      is created suspended
    a pod with it                                       is created with a gate
    a job without it, if the namespace has a LocalQueue
    named `default`                                     gets the label
    a job without it, with manageJobsWithoutQueueName   is created suspended

Left alone is what belongs to a job that is itself managed, and everything in namespaces that are
not managed. Whoever is not held back any more keeps its queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.admission.job_kinds import (
    GATE,
    PODS,
    SUSPEND_FIELDS,
    is_held,
    managed_owner,
    suspend,
)
from unisono.apiserver.builtin.causes import invalid as wrong_value
from unisono.apiserver.builtin.pod_status import note_gates
from unisono.apiserver.builtin.reach import Json, at, child, items, labels_of
from unisono.apiserver.errors import invalid
from unisono.apiserver.strategy import Surroundings
from unisono.apiserver.times import timestamp
from unisono.kinds.managing import DEFAULT_QUEUE, QUEUE_LABEL, QUEUE_LABEL_PATH
from unisono.kinds.meta import NAMESPACE_LABEL, wrong_with_subdomain
from unisono.kinds.settings import Settings
from unisono.kinds.shapes.served import Served
from unisono.kinds.submission import is_managed, settings_from

LOCAL_QUEUES = "kueue.x-k8s.io/localqueues"
POLICIES = "unisono.dev/policies"
JOBS = "batch/jobs"
MANAGED_LABEL = "kueue.x-k8s.io/managed"
# A group counts its pods even when they are over; the controller lets them go in the end.
POD_FINALIZER = "kueue.x-k8s.io/managed"
GROUP_LABEL = "kueue.x-k8s.io/pod-group-name"


def hold(served: Served, obj: Json, around: Surroundings) -> None:
    """Hold a new job or pod back if a queue has to admit it."""
    key = served.key
    is_pod = key == PODS
    if not is_pod and key not in SUSPEND_FIELDS:
        return
    labels = labels_of(obj)
    queue = labels.get(QUEUE_LABEL, "")
    if is_pod and not queue:
        return
    namespace = str(at(obj, "metadata").get("namespace") or "")
    settings = read_settings(around)
    if not is_managed(settings, namespace_labels(namespace, around)):
        return
    if managed_owner(obj, around) is not None:
        return
    _refuse_bad_name(served, obj, queue)
    if not queue and around.find(LOCAL_QUEUES, namespace, DEFAULT_QUEUE) is not None:
        queue = DEFAULT_QUEUE
        child(child(obj, "metadata"), "labels")[QUEUE_LABEL] = queue
    if is_pod:
        _gate(obj, around.now)
    elif queue or settings.manages_unqueued:
        suspend(key, obj)
        if key == JOBS:
            _say_suspended(obj, around.now)


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
    if key != PODS and key not in SUSPEND_FIELDS:
        return
    before, after = labels_of(old).get(QUEUE_LABEL, ""), labels_of(obj).get(QUEUE_LABEL, "")
    if before == after:
        return
    _refuse_bad_name(served, obj, after)
    if before and not is_held(key, old):
        why = "the queue of a job that is not suspended cannot change"
        raise _invalid(served, obj, wrong_value(QUEUE_LABEL_PATH, after, why))


def read_settings(around: Surroundings) -> Settings:
    """Return what the operator chose; the first policy by name, should there be several."""
    policies = sorted(around.every(POLICIES), key=_name)
    return settings_from(policies[0] if policies else None)


def namespace_labels(namespace: str, around: Surroundings) -> Mapping[str, str]:
    """Return the labels of a namespace; it has at least its name."""
    found = around.find("/namespaces", "", namespace)
    labels = labels_of(found) if found is not None else {}
    return {NAMESPACE_LABEL: namespace, **labels}


def _name(obj: Mapping[str, Any]) -> str:
    return str(at(obj, "metadata").get("name"))


def _gate(pod: Json, now: float) -> None:
    spec, metadata = child(pod, "spec"), child(pod, "metadata")
    if spec.get("nodeName"):
        return  # whoever binds a pod himself has decided already
    gates = items(spec, "schedulingGates")
    if not any(gate.get("name") == GATE for gate in gates):
        spec["schedulingGates"] = [*gates, {"name": GATE}]
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
