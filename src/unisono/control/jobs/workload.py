"""The Workload of a job: its name, its pod sets, its priority; made once, kept in step."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.jobs.adapter import PodSetOfJob
from unisono.control.view import View
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number
from unisono.kinds.holds import HOLD
from unisono.kinds.job_annotations import BUYING, ON_JOBS
from unisono.kinds.kueue.workload_rules import CAN_SHRINK
from unisono.kinds.notifying import NOTIFYING
from unisono.kinds.policy.multifactor import PREFIX, WORDS, multifactor_texts
from unisono.kinds.times import ACTIVE_DEADLINE, active_seconds
from unisono.kube.mapping import Kind

# Whether a priority class counts in a namespace (`queues.Queues.may_name`).
MayName = Callable[[str, str, View], bool]
MAX_EXECUTION_LABEL = "kueue.x-k8s.io/max-exec-time-seconds"
# Parameters for the autoscaler that is asked for nodes (quota §12).
REQUEST_PREFIX = "provreq.kueue.x-k8s.io/"
_LONGEST_NAME = 253
_HASH_LENGTH = 5
# What of the job's own annotations and labels a decision reads from its Workload.
_CARRIED_ANNOTATIONS = (
    "kueue.x-k8s.io/admission-gated-by",
    "unisono.dev/checkpoint-dir",
    "unisono.dev/recovery-timeout",
    "unisono.dev/provisioning-timeout",
    "unisono.dev/straggler",
    *ON_JOBS,
    *BUYING,
    *NOTIFYING,
)


def workload_name(kind: Kind, name: str, uid: str) -> str:
    """Return the name that Kueue gives a job's Workload.

    >>> workload_name(Kind("batch/v1", "Job"), "train", "8d2c").startswith("job-train-")
    True
    """
    group = kind.api_version.rpartition("/")[0]
    text = "\n".join((kind.kind, group, name, uid))
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:_HASH_LENGTH]
    prefix = f"{kind.kind.lower()}-{name}"[: _LONGEST_NAME - _HASH_LENGTH - 1]
    return f"{prefix}-{digest}"


def new_workload(
    job: Json,
    kind: Kind,
    queue: str,
    sets: Sequence[PodSetOfJob],
    view: View,
    may_name: MayName,
) -> Json:
    """Return the Workload of a job."""
    metadata = job["metadata"]
    class_name, class_kind, priority = priority_of(job, sets, view, may_name)
    spec: Json = {
        **({"queueName": queue} if queue else {}),
        "active": True,
        "podSets": [_pod_set(one) for one in sets],
        "priority": priority,
    }
    if class_name:
        group = "scheduling.k8s.io" if class_kind == "PriorityClass" else "kueue.x-k8s.io"
        spec["priorityClassRef"] = {"group": group, "kind": class_kind, "name": class_name}
    longest = whole_number((metadata.get("labels") or {}).get(MAX_EXECUTION_LABEL), MAX_COUNT)
    if longest:
        spec["maximumExecutionTimeSeconds"] = longest
    later = [one.name for one in sets if one.comes_later]
    return {
        "apiVersion": names.WORKLOAD.api_version,
        "kind": names.WORKLOAD.kind,
        "metadata": {
            "name": workload_name(kind, metadata["name"], metadata["uid"]),
            "namespace": metadata["namespace"],
            "labels": {names.JOB_UID_LABEL: metadata["uid"]},
            "annotations": {
                **carried(job),
                **_priority_keys_of(job),
                **({names.LATER_SETS: ",".join(later)} if later else {}),
            },
            "finalizers": [names.RESOURCE_IN_USE],
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }


def carried(job: Json) -> dict[str, str]:
    """Return what a Workload repeats of its job: what decisions read from there."""
    annotations = job["metadata"].get("annotations") or {}
    # Of the kinds that can run with fewer pods (`Shrinkable`); the others are evicted whole.
    shrinks = (CAN_SHRINK,) if job["apiVersion"] == names.JOB.api_version else ()
    keys = (*_CARRIED_ANNOTATIONS, *shrinks)
    found = {key: annotations[key] for key in keys if key in annotations}
    found |= {key: text for key, text in annotations.items() if key.startswith(REQUEST_PREFIX)}
    active = active_seconds(job)
    return {**found, ACTIVE_DEADLINE: str(active)} if active is not None else found


def new_words(job: Json, workload: Json) -> Json:
    """Return what has to change about a Workload's annotations for it to say what its job says.

    An administrator's hold on the Workload itself stays: the job's owner cannot take it off.
    """
    wanted = {**carried(job), **_priority_keys_of(job)}
    there = workload["metadata"].get("annotations") or {}
    keys = [*ON_JOBS, *NOTIFYING, ACTIVE_DEADLINE, *(PREFIX + word for word in WORDS)]
    if there.get(HOLD) == "admin":
        keys.remove(HOLD)
    return {key: wanted.get(key) for key in keys if wanted.get(key) != there.get(key)}


def _priority_keys_of(job: Json) -> dict[str, str]:
    metadata = job["metadata"]
    return multifactor_texts(metadata.get("labels") or {}, metadata.get("annotations") or {})


def owner_reference(owner: Json, *, blocks: bool = True) -> Json:
    """Return the reference that makes an object belong to another, which controls it."""
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": blocks,
    }


def _pod_set(one: PodSetOfJob) -> Json:
    written: Json = {"name": one.name, "count": one.count, "template": one.template}
    if one.min_count is not None:
        written["minCount"] = one.min_count
    return written


def same_sets(workload: Json, sets: Sequence[PodSetOfJob]) -> bool:
    """Say whether a Workload still asks for what its job asks for."""
    asked = workload["spec"].get("podSets") or ()
    if len(asked) != len(sets):
        return False
    return all(
        one["name"] == new.name
        and one["count"] == new.count
        and one.get("minCount") == new.min_count
        and same_template(one["template"], new.template)
        for one, new in zip(asked, sets, strict=True)
    )


def same_template(old: Json, new: Json) -> bool:
    """Compare what a decision depends on: requests, selection, tolerations and such.

    The API may have filled in defaults on one side, so only what the new one says counts.
    """
    return _says_the_same(old.get("spec") or {}, new.get("spec") or {})


def _says_the_same(old: object, new: object) -> bool:
    if isinstance(new, dict):
        return isinstance(old, dict) and all(
            _says_the_same(old.get(key), value)
            for key, value in new.items()
            if value not in (None, {}, [], "")
        )
    if isinstance(new, list):
        return (
            isinstance(old, list)
            and len(old) == len(new)
            and all(_says_the_same(one, other) for one, other in zip(old, new, strict=True))
        )
    return old == new or str(old) == str(new)


def priority_of(
    job: Json, sets: Sequence[PodSetOfJob], view: View, may_name: MayName
) -> tuple[str, str, int]:
    """Return the class that gives a job its priority, that class's kind, and the number.

    The label of a WorkloadPriorityClass wins, then the class of the first pod set that has one,
    then the cluster's default class. One that is not for its namespace gives it none.
    """
    found = _priority_of(job, sets, view)
    return found if may_name(found[0], job["metadata"]["namespace"], view) else ("", "", 0)


def named_class(job: Json, sets: Sequence[PodSetOfJob]) -> str:
    """Return the priority class that a job names itself; empty if none."""
    label = (job["metadata"].get("labels") or {}).get(names.PRIORITY_LABEL, "")
    classes = ((one.template.get("spec") or {}).get("priorityClassName", "") for one in sets)
    return str(label or next(filter(None, classes), ""))


def _priority_of(job: Json, sets: Sequence[PodSetOfJob], view: View) -> tuple[str, str, int]:
    label = (job["metadata"].get("labels") or {}).get(names.PRIORITY_LABEL, "")
    if label:
        found = view.get(names.WORKLOAD_PRIORITY_CLASS, label)
        return label, "WorkloadPriorityClass", int(found["value"]) if found is not None else 0
    for one in sets:
        name = (one.template.get("spec") or {}).get("priorityClassName", "")
        if name:
            found = view.get(names.PRIORITY_CLASS, name)
            return name, "PriorityClass", int(found["value"]) if found is not None else 0
    for found in view.all(names.PRIORITY_CLASS):
        if found.get("globalDefault"):
            return found["metadata"]["name"], "PriorityClass", int(found["value"])
    return "", "", 0
