"""The PodGroup that a runtime asks for, for the gang scheduler it was written for (jobs §1.4).

Initializers never run at the same time as the trainers, so a group that counted them could never be
whole. Its size is that of the largest set of pods that start together.
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.control.actions import Json
from unisono.control.job_kinds.jobset.rules import stages_of
from unisono.control.job_kinds.trainjob.parts import Draft, change_pods, pod_template
from unisono.control.jobs.workload import owner_reference
from unisono.kinds.quantity import Quantity, format_amount

_COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
_VOLCANO_ANNOTATION = "scheduling.k8s.io/group-name"
_VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
_TIMEOUT_SECONDS = 60


def group_pods(draft: Draft) -> None:
    """Add the PodGroup to what is made, and name it in the pods."""
    policy = draft.runtime.get("podGroupPolicy") or {}
    coscheduling, volcano = policy.get("coscheduling"), policy.get("volcano")
    if coscheduling is not None:
        _mark(draft, {"labels": {_COSCHEDULING_LABEL: draft.name}})
        timeout = coscheduling.get("scheduleTimeoutSeconds", _TIMEOUT_SECONDS)
        spec = {**_sums(draft), "scheduleTimeoutSeconds": timeout}
        draft.extras.append(_group(draft, "scheduling.x-k8s.io/v1alpha1", spec))
    elif volcano is not None:
        _mark(draft, {"annotations": {_VOLCANO_ANNOTATION: draft.name}})
        spec = _sums(draft)
        for key, value in (
            ("queue", _queue(draft)),
            ("priorityClassName", _priority(draft)),
            ("networkTopology", volcano.get("networkTopology")),
        ):
            if value:
                spec[key] = value
        draft.extras.append(_group(draft, "scheduling.volcano.sh/v1beta1", spec))


def _mark(draft: Draft, metadata: Json) -> None:
    for replicated in draft.jobs:
        change_pods(replicated, {"metadata": metadata})


def _group(draft: Draft, api_version: str, spec: Json) -> Json:
    return {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": draft.name,
            "namespace": draft.namespace,
            "ownerReferences": [owner_reference(draft.train_job)],
        },
        "spec": spec,
    }


def _sums(draft: Draft) -> Json:
    """Return how many pods start together, and what they request."""
    stages = stages_of(draft.job_set["spec"])
    sizes: dict[int, int] = {}
    totals: dict[int, dict[str, int]] = {}
    for replicated in draft.jobs:
        stage, count = stages[replicated["name"]], draft.counts[replicated["name"]]
        sizes[stage] = sizes.get(stage, 0) + count
        total = totals.setdefault(stage, {})
        for name, amount in _requests(replicated).items():
            total[name] = total.get(name, 0) + amount * count
    largest = max(sizes, key=lambda stage: (sizes[stage], stage), default=0)
    needs = totals.get(largest, {})
    return {
        "minMember": sizes.get(largest, 0),
        "minResources": {name: format_amount(amount, name) for name, amount in needs.items()},
    }


def _requests(replicated: Json) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for container in pod_template(replicated)["spec"].get("containers") or ():
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, value in wanted.items():
            found[name] = found.get(name, 0) + Quantity.from_raw(value).amount(name)
    return found


def _queue(draft: Draft) -> str:
    own = draft.train_job["metadata"].get("annotations") or {}
    said = draft.train_job["spec"].get("annotations") or {}
    runtime = draft.job_set["metadata"].get("annotations") or {}
    return str(
        said.get(_VOLCANO_QUEUE) or own.get(_VOLCANO_QUEUE) or runtime.get(_VOLCANO_QUEUE, "")
    )


def _priority(draft: Draft) -> str:
    for replicated in draft.jobs:
        name = pod_template(replicated)["spec"].get("priorityClassName")
        if name:
            return str(name)
    return ""
