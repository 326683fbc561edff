"""The priority of a workload: where it comes from, in order (spec quota §3).

    1. label kueue.x-k8s.io/priority-class          a WorkloadPriorityClass
    2. WorkloadPriorityClass `default`              if there is one and the label is absent
    3. a number that a PodGroup has                 from its class, by the API server
       the job's own class, or its first pod set's  a PriorityClass
    4. the global default PriorityClass             the lowest value, if several claim to be it
    5. 0

A class that does not exist counts as 0, with a warning; Kueue would not create the workload.
"""

from __future__ import annotations

from unisono.kinds.notes import Notes
from unisono.kinds.objects import Entry, Objects

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
DEFAULT_CLASS = "default"
WORKLOAD_CLASS = "WorkloadPriorityClass"
POD_CLASS = "PriorityClass"

# Kubernetes creates these by itself in every cluster.
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def job_priority(entry: Entry, own_class: str, own_number: int | None, objects: Objects) -> int:
    """Return the priority of a job; `own_class` is what the job or its pods name."""
    label = entry.metadata.labels.get(PRIORITY_LABEL, "")
    if label:
        path = f"metadata.labels[{PRIORITY_LABEL}]"
        return class_priority(WORKLOAD_CLASS, label, path, entry.notes, objects)
    default = objects.find(WORKLOAD_CLASS, DEFAULT_CLASS)
    if default is not None:
        return int(default.manifest.value)
    if own_number is not None:
        return own_number
    if own_class:
        return class_priority(POD_CLASS, own_class, "spec", entry.notes, objects)
    return global_default(objects)


def class_priority(kind: str, name: str, path: str, notes: Notes, objects: Objects) -> int:
    """Return the value of a class that is named at `path`; 0 with a warning if there is none."""
    found = objects.find(kind, name)
    if found is not None:
        return int(found.manifest.value)
    if kind == POD_CLASS and name in _BUILT_IN:
        return _BUILT_IN[name]
    if notes.strict:
        notes.misconfigured(f'there is no {kind} "{name}"')
    elif not objects.exists(kind, name):
        message = f'there is no {kind} "{name}"; priority 0'
        notes.warn("WorkloadPriorityClassNotFound", path, message)
    return 0


def global_default(objects: Objects) -> int:
    """Return the priority of pods that name no class."""
    values = [
        int(entry.manifest.value)
        for entry in objects.entries(POD_CLASS)
        if entry.manifest.global_default
    ]
    return min(values, default=0)
