"""The child Jobs of a JobSet: their names, labels and templates (jobs §2).

Under gang accounting a child Job does not retry by itself: its first failed pod fails it, and the
JobSet starts all of them again together. Under upstream accounting the template is left as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.gangs.recovery import Record
from unisono.control.jobs.workload import owner_reference

PREFIX = "jobset.sigs.k8s.io/"
ATTEMPT_LABEL = f"{PREFIX}restart-attempt"
REPLICATED_LABEL = f"{PREFIX}replicatedjob-name"
SET_LABEL = f"{PREFIX}jobset-name"
# Labels that Kubernetes itself puts on the pods of a Job.
_OF_JOBS = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
RESTART_COUNT = "UNISONO_RESTART_COUNT"
RESTART_REASON = "UNISONO_RESTART_REASON"


@dataclass(frozen=True, slots=True)
class Child:
    """One Job that a JobSet is to have."""

    name: str
    replicated: str
    index: int
    obj: Json


class _Place(NamedTuple):
    """Where the Jobs of a replicated job stand among all of them (""), and in their group."""

    group: str
    before: Mapping[str, int]
    totals: Mapping[str, int]


def _group_of(replicated: Json) -> str:
    return str(replicated.get("groupName") or "default")


def replicas_of(replicated: Json) -> int:
    """Return how many Jobs a replicated job has."""
    return int(replicated.get("replicas", 1))


def pods_of(replicated: Json) -> int:
    """Return how many pods each of its Jobs runs at once."""
    spec = replicated["template"].get("spec") or {}
    parallelism = int(spec.get("parallelism", 1))
    completions = spec.get("completions", parallelism)
    return min(parallelism, int(completions))


def weight_of(job_set: Json) -> int:
    """Return how many objects a JobSet becomes: its pods, or its Jobs where those have none."""
    return sum(
        replicas_of(one) * max(1, pods_of(one))
        for one in job_set["spec"].get("replicatedJobs") or ()
    )


def runs_at_once(spec: Json) -> bool:
    """Say whether all pods of a Job run at the same time; others come one after another."""
    parallelism = int(spec.get("parallelism", 1))
    return int(spec.get("completions") or parallelism) == parallelism


def subdomain_of(job_set: Json) -> str:
    """Return the name of the Service through which its pods find each other."""
    network = job_set["spec"].get("network") or {}
    return str(network.get("subdomain") or job_set["metadata"]["name"])


def has_names(job_set: Json) -> bool:
    """Say whether its pods are to be found by name."""
    network = job_set["spec"].get("network") or {}
    return network.get("enableDNSHostnames") is not False


def service_of(job_set: Json) -> Json:
    """Return the headless Service of a JobSet."""
    network = job_set["spec"].get("network") or {}
    return {
        "apiVersion": names.SERVICE.api_version,
        "kind": names.SERVICE.kind,
        "metadata": {
            "name": subdomain_of(job_set),
            "namespace": job_set["metadata"]["namespace"],
            "ownerReferences": [owner_reference(job_set)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {SET_LABEL: job_set["metadata"]["name"]},
            "publishNotReadyAddresses": network.get("publishNotReadyAddresses") is not False,
        },
    }


def children_of(
    job_set: Json, attempt: int, *, is_gang: bool, last: Record | None
) -> Iterator[Child]:
    """Yield the Jobs of an attempt, in order; none of them says whether it is suspended.

    There may be more of them than fit in memory: take only what is needed.
    """
    totals: dict[str, int] = {}  # of all, and by group
    for one in job_set["spec"].get("replicatedJobs") or ():
        for group in ("", _group_of(one)):
            totals[group] = totals.get(group, 0) + replicas_of(one)
    before: dict[str, int] = dict.fromkeys(totals, 0)
    for replicated in job_set["spec"].get("replicatedJobs") or ():
        groups = ("", _group_of(replicated))
        place = _Place(groups[1], {group: before[group] for group in groups}, totals)
        for group in groups:
            before[group] += replicas_of(replicated)
        for index in range(replicas_of(replicated)):
            name = f"{job_set['metadata']['name']}-{replicated['name']}-{index}"
            texts = _texts(job_set, replicated, index, name, attempt, place)
            job = _job(job_set, replicated, name, texts)
            if is_gang:
                _tell_attempt(job["spec"], attempt, last)
                if runs_at_once(job["spec"]):
                    _fail_at_once(job["spec"])
            yield Child(name, replicated["name"], index, job)


def _job(job_set: Json, replicated: Json, name: str, texts: Mapping[str, str]) -> Json:
    template = replicated["template"]
    metadata = template.get("metadata") or {}
    spec: Json = {"completionMode": "Indexed", **(template.get("spec") or {})}
    if spec["completionMode"] == "Indexed" and spec.get("completions") is None:
        spec["completions"] = spec.setdefault("parallelism", 1)
    pods = spec.get("template") or {}
    pod_metadata, pod_spec = pods.get("metadata") or {}, dict(pods.get("spec") or {})
    pod_spec.setdefault("restartPolicy", "OnFailure")
    if has_names(job_set):
        pod_spec["subdomain"] = subdomain_of(job_set)
    spec["template"] = {
        "metadata": {
            **pod_metadata,
            "labels": {**(pod_metadata.get("labels") or {}), **texts},
            "annotations": {**(pod_metadata.get("annotations") or {}), **texts},
        },
        "spec": pod_spec,
    }
    return {
        "apiVersion": names.JOB.api_version,
        "kind": names.JOB.kind,
        "metadata": {
            "name": name,
            "namespace": job_set["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), **texts},
            "annotations": {**(metadata.get("annotations") or {}), **texts},
            "ownerReferences": [owner_reference(job_set)],
        },
        "spec": spec,
    }


def _texts(
    job_set: Json, replicated: Json, index: int, name: str, attempt: int, place: _Place
) -> Mapping[str, str]:
    """Return what labels and annotations of a Job and its pods say."""
    metadata, spec = job_set["metadata"], job_set["spec"]
    path = f"{metadata['namespace']}/{name}"
    texts = {
        "jobset-name": metadata["name"],
        "jobset-uid": metadata["uid"],
        "replicatedjob-name": replicated["name"],
        "replicatedjob-replicas": str(replicas_of(replicated)),
        "global-replicas": str(place.totals[""]),
        "job-index": str(index),
        "job-global-index": str(place.before[""] + index),
        "job-key": hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest(),
        "restart-attempt": str(attempt),
        "group-name": place.group,
        "group-replicas": str(place.totals[place.group]),
        "job-group-index": str(place.before[place.group] + index),
    }
    coordinator = spec.get("coordinator")
    if coordinator:
        job = f"{metadata['name']}-{coordinator['replicatedJob']}-{coordinator.get('jobIndex', 0)}"
        pod = coordinator.get("podIndex", 0)
        texts["coordinator"] = f"{job}-{pod}.{subdomain_of(job_set)}"
    return {f"{PREFIX}{key}": value for key, value in texts.items()}


# ---- gangs -------------------------------------------------------------------------------------


def _fail_at_once(spec: Json) -> None:
    """Let the first failed pod fail the Job: retrying it alone would leave its peers behind."""
    spec["backoffLimit"] = 0
    pod = spec["template"]["spec"]
    if pod["restartPolicy"] == "OnFailure":
        pod["restartPolicy"] = "Never"


def _tell_attempt(spec: Json, attempt: int, last: Record | None) -> None:
    """Tell every container how often its job was started before, and why again."""
    variables = [{"name": RESTART_COUNT, "value": str(attempt)}]
    if attempt and last is not None:
        variables.append({"name": RESTART_REASON, "value": last.reason})
    pod = spec["template"]["spec"]
    for part in ("initContainers", "containers"):
        if pod.get(part):
            pod[part] = [_with_variables(one, variables) for one in pod[part]]


def _with_variables(container: Json, variables: Sequence[Json]) -> Json:
    own = container.get("env") or []
    named = {one["name"] for one in own}
    return {**container, "env": [*own, *(one for one in variables if one["name"] not in named)]}


# ---- what may change while a Job is suspended --------------------------------------------------


def directions(job: Json, wanted: Json) -> Json:
    """Return the merge patch that takes a suspended Job's template to what its JobSet says now."""
    now, then = job["spec"]["template"], wanted["spec"]["template"]
    changed: Json = {}
    for part, keys in (("metadata", ("labels", "annotations")), ("spec", ("nodeSelector",))):
        for key in keys:
            old = (now.get(part) or {}).get(key) or {}
            new = (then.get(part) or {}).get(key) or {}
            gone = {one: None for one in old if one not in new and one not in _OF_JOBS}
            fresh = {one: value for one, value in new.items() if old.get(one) != value}
            if gone or fresh:
                changed.setdefault(part, {})[key] = {**gone, **fresh}
    for key in ("tolerations", "schedulingGates"):
        old_list = (now.get("spec") or {}).get(key) or None
        new_list = (then.get("spec") or {}).get(key) or None
        if old_list != new_list:
            changed.setdefault("spec", {})[key] = new_list
    return changed
