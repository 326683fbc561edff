"""Kueue's objects between versions, as plain dictionaries and without looking at their meaning.

    kind                 v1beta1 (Cohort: also v1alpha1)      v1beta2, which is stored
    ClusterQueue         spec.cohort                          spec.cohortName
                         spec.admissionChecks: [a]            .admissionChecksStrategy: [{name: a}]
                         Borrow, Preempt                      MayStopSearch
                         status.pendingWorkloadsStatus        -
    Cohort               spec.parent (v1alpha1 only)          spec.parentName
    LocalQueue           status.flavorUsage                   status.flavorsUsage
                         status.flavors                       -
    Workload             priorityClassName, -Source           priorityClassRef
                         …PastExexcutionTime…                 …PastExecutionTime…
                         topologyAssignment.domains           .slices
    AdmissionCheck       spec.retryDelayMinutes               -
    MultiKueueCluster    spec.kubeConfig, .clusterProfileRef  the same under spec.clusterSource

What one side does not know is dropped here; the caller keeps it elsewhere
(`apiserver.rest.versions`). `kinds` does the same on typed manifests, for decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unisono.kinds.kueue.topology_assignment import compressed, expanded
from unisono.kinds.meta import Json

Edit = Callable[[Json], None]

STORED = "v1beta2"

_WORKLOAD_CLASS = "kueue.x-k8s.io/workloadpriorityclass"
_POD_CLASS = "scheduling.k8s.io/priorityclass"
_CLASS_OF_SOURCE = {
    _WORKLOAD_CLASS: ("kueue.x-k8s.io", "WorkloadPriorityClass"),
    _POD_CLASS: ("scheduling.k8s.io", "PriorityClass"),
}
_SOURCE_OF_CLASS = {found: source for source, found in _CLASS_OF_SOURCE.items()}


def raise_version(plural: str, obj: Json) -> None:
    """Turn an object of an older version into the stored one, in place."""
    edit = _UP.get(plural)
    if edit is not None:
        edit(obj)


def lower_version(plural: str, obj: Json, version: str) -> None:
    """Turn a stored object into an older version, in place."""
    if plural == "cohorts" and version == "v1alpha1":
        _move(_at(obj, "spec"), "parentName", "parent")
    edit = _DOWN.get(plural)
    if edit is not None:
        edit(obj)


# ---- steps -------------------------------------------------------------------------------------


def _at(obj: Json, *names: str) -> Json:
    found: Any = obj
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _move(obj: Json, old: str, new: str) -> None:
    if old in obj:
        obj[new] = obj.pop(old)


def _reword(obj: Json, field: str, words: Mapping[str, str]) -> None:
    if obj.get(field) in words:
        obj[field] = words[obj[field]]


# ---- ClusterQueue ------------------------------------------------------------------------------


def _raise_queue(obj: Json) -> None:
    spec = _at(obj, "spec")
    _move(spec, "cohort", "cohortName")
    names = spec.pop("admissionChecks", None)
    if isinstance(names, list) and names:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in names]}
    fungibility = _at(spec, "flavorFungibility")
    _reword(fungibility, "whenCanBorrow", {"Borrow": "MayStopSearch"})
    _reword(fungibility, "whenCanPreempt", {"Preempt": "MayStopSearch"})
    _at(obj, "status").pop("pendingWorkloadsStatus", None)
    _drop_consumption(obj)


def _lower_queue(obj: Json) -> None:
    spec = _at(obj, "spec")
    _move(spec, "cohortName", "cohort")
    spec.pop("concurrentAdmissionPolicy", None)


def _drop_consumption(obj: Json) -> None:
    """Recent use is counted per local queue; others never had any."""
    _at(obj, "status", "fairSharing").pop("admissionFairSharingStatus", None)


# ---- Cohort, LocalQueue ------------------------------------------------------------------------


def _raise_cohort(obj: Json) -> None:
    _move(_at(obj, "spec"), "parent", "parentName")
    _drop_consumption(obj)


def _raise_local_queue(obj: Json) -> None:
    status = _at(obj, "status")
    _move(status, "flavorUsage", "flavorsUsage")
    status.pop("flavors", None)


def _lower_local_queue(obj: Json) -> None:
    _move(_at(obj, "status"), "flavorsUsage", "flavorUsage")


# ---- Workload ----------------------------------------------------------------------------------


def _raise_workload(obj: Json) -> None:
    spec, status = _at(obj, "spec"), _at(obj, "status")
    name, source = spec.pop("priorityClassName", ""), spec.pop("priorityClassSource", "")
    if name:
        # A class without a source was written by hand; Kueue's own kind is the likelier one.
        group, kind = _CLASS_OF_SOURCE.get(source, _CLASS_OF_SOURCE[_WORKLOAD_CLASS])
        spec["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    _move(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds")
    _reshape_assignments(status, compressed)


def _lower_workload(obj: Json) -> None:
    spec, status = _at(obj, "spec"), _at(obj, "status")
    reference = spec.pop("priorityClassRef", None)
    if isinstance(reference, dict):
        source = _SOURCE_OF_CLASS.get(
            (str(reference.get("group")), str(reference.get("kind"))), _WORKLOAD_CLASS
        )
        spec["priorityClassName"] = reference.get("name", "")
        spec["priorityClassSource"] = source
    _move(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
    _reshape_assignments(status, expanded)
    spec.pop("preemptionGates", None)
    status.pop("preemptionGates", None)
    for one in spec.get("podSets") or ():
        if isinstance(one, dict):
            _at(one, "topologyRequest").pop("podsetSliceRequiredTopologyConstraints", None)


def _reshape_assignments(status: Json, reshape: Callable[[Any], Any]) -> None:
    for one in _at(status, "admission").get("podSetAssignments") or ():
        if isinstance(one, dict) and "topologyAssignment" in one:
            one["topologyAssignment"] = reshape(one["topologyAssignment"])


# ---- AdmissionCheck, MultiKueue ----------------------------------------------------------------


def _raise_check(obj: Json) -> None:
    _at(obj, "spec").pop("retryDelayMinutes", None)


def _raise_cluster(obj: Json) -> None:
    spec = _at(obj, "spec")
    source = {name: spec.pop(name) for name in ("kubeConfig", "clusterProfileRef") if name in spec}
    if source:
        spec["clusterSource"] = source


def _lower_cluster(obj: Json) -> None:
    spec = _at(obj, "spec")
    source = spec.pop("clusterSource", None)
    if isinstance(source, dict):
        spec.update(source)


def _lower_config(obj: Json) -> None:
    _at(obj, "spec").pop("quotaManagement", None)


_UP: Mapping[str, Edit] = {
    "admissionchecks": _raise_check,
    "clusterqueues": _raise_queue,
    "cohorts": _raise_cohort,
    "localqueues": _raise_local_queue,
    "multikueueclusters": _raise_cluster,
    "workloads": _raise_workload,
}
_DOWN: Mapping[str, Edit] = {
    "clusterqueues": _lower_queue,
    "localqueues": _lower_local_queue,
    "multikueueclusters": _lower_cluster,
    "multikueueconfigs": _lower_config,
    "workloads": _lower_workload,
}
