"""Kubernetes' own kinds between versions, as plain dictionaries that are changed in place.

    autoscaling v1                              v2 (v1 knows no other metric)
    spec.targetCPUUtilizationPercentage: 50     spec.metrics: cpu, with averageUtilization: 50
    status.currentCPUUtilizationPercentage      status.currentMetrics: the same

    v1 Event                                    events.k8s.io/v1
    involvedObject                              regarding
    message                                     note
    reportingComponent                          reportingController
    source, count, first- and lastTimestamp     deprecatedSource, deprecatedCount, …

    scheduling.k8s.io/v1alpha2                  v1alpha3, v1beta1
    disruptionMode: Pod, PodGroup               disruptionMode: {single: {}}, {all: {}}
    podGroupTemplateRef.workload:               workloadRef:
      {workloadName, podGroupTemplateName}        {workloadName, templateName}

All other fields of an event have one name. v1alpha1 of `scheduling.k8s.io` has groups inside of
Workloads, which later versions do not know at all; those are left as they are, since our own reader
takes them in every version. `kueue.convert` does the same for Kueue's kinds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.kinds.meta import Json

# ---- autoscaling ---------------------------------------------------------------------------------


def raise_autoscaler(obj: Json) -> None:
    """Turn a v1 HorizontalPodAutoscaler into a v2 one."""
    for part, old, new, word in _AUTOSCALER_FIELDS:
        inside = obj.get(part)
        if not isinstance(inside, dict):
            continue
        percentage = inside.pop(old, None)
        if percentage is not None:
            value: Json = {"averageUtilization": percentage}
            if word == "target":
                value["type"] = "Utilization"
            inside[new] = [{"type": "Resource", "resource": {"name": "cpu", word: value}}]


def lower_autoscaler(obj: Json) -> None:
    """Turn a v2 HorizontalPodAutoscaler into a v1 one."""
    for part, old, new, word in _AUTOSCALER_FIELDS:
        inside = obj.get(part)
        if not isinstance(inside, dict):
            continue
        for metric in inside.pop(new, None) or ():
            percentage = _percentage(metric, word)
            if percentage is not None:
                inside[old] = percentage
                break
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict):
        spec.pop("behavior", None)
    if isinstance(status, dict):
        status.pop("conditions", None)


_AUTOSCALER_FIELDS = (
    ("spec", "targetCPUUtilizationPercentage", "metrics", "target"),
    ("status", "currentCPUUtilizationPercentage", "currentMetrics", "current"),
)


def _percentage(metric: Any, word: str) -> Any:
    resource = metric.get("resource") if isinstance(metric, dict) else None
    if not isinstance(resource, dict) or resource.get("name") != "cpu":
        return None
    value = resource.get(word)
    return value.get("averageUtilization") if isinstance(value, dict) else None


# ---- events --------------------------------------------------------------------------------------

_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}


def to_new_event(event: Json) -> None:
    """Turn an event of the core group into one of `events.k8s.io`, in place."""
    for old, new in _NEW_NAMES.items():
        if old in event:
            event[new] = event.pop(old)


def to_core_event(event: Json) -> None:
    """Turn an event of `events.k8s.io` into one of the core group, in place."""
    for old, new in _NEW_NAMES.items():
        if new in event:
            event[old] = event.pop(new)


# ---- scheduling.k8s.io ---------------------------------------------------------------------------

_MODES = {"Pod": "single", "PodGroup": "all"}


def raise_pod_groups(plural: str, obj: Json) -> None:
    """Turn a v1alpha2 object into a newer one, in place."""
    for group in _groups(plural, obj):
        mode = group.get("disruptionMode")
        if mode in _MODES:
            group["disruptionMode"] = {_MODES[mode]: {}}
        elif isinstance(mode, str):
            del group["disruptionMode"]
        reference = group.get("podGroupTemplateRef")
        inner = reference.get("workload") if isinstance(reference, dict) else None
        if isinstance(inner, dict):
            del group["podGroupTemplateRef"]
            group["workloadRef"] = {
                new: inner[old]
                for old, new in (
                    ("workloadName", "workloadName"),
                    ("podGroupTemplateName", "templateName"),
                )
                if old in inner
            }


def lower_pod_groups(plural: str, obj: Json) -> None:
    """Turn a newer object into a v1alpha2 one, in place."""
    for group in _groups(plural, obj):
        mode = group.pop("disruptionMode", None)
        for old, new in _MODES.items():
            if isinstance(mode, dict) and new in mode:
                group["disruptionMode"] = old
        reference = group.pop("workloadRef", None)
        if isinstance(reference, dict):
            inner = {
                old: reference[new]
                for old, new in (
                    ("workloadName", "workloadName"),
                    ("podGroupTemplateName", "templateName"),
                )
                if new in reference
            }
            group["podGroupTemplateRef"] = {"workload": inner}
        group.pop("preemptionPolicy", None)
        group.pop("parentCompositePodGroupName", None)
    spec = obj.get("spec")
    if plural == "workloads" and isinstance(spec, dict):
        spec.pop("compositePodGroupTemplates", None)


def _groups(plural: str, obj: Json) -> Iterator[Json]:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    if plural == "podgroups":
        yield spec
    elif plural == "workloads":
        for one in spec.get("podGroupTemplates") or ():
            if isinstance(one, dict):
                yield one
