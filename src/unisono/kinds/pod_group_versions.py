"""PodGroups and Workloads of `scheduling.k8s.io` in v1alpha2 and later, as plain dictionaries.

    v1alpha2                                        v1alpha3, v1beta1
    disruptionMode: Pod, PodGroup                   disruptionMode: {single: {}}, {all: {}}
    podGroupTemplateRef.workload:                   workloadRef:
      {workloadName, podGroupTemplateName}            {workloadName, templateName}

v1alpha1 has groups inside of Workloads, which later versions do not know at all; those are left as
they are, since our own reader takes them in every version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

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
