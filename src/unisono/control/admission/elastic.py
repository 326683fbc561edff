"""Gangs that change their size while they run: shrinking ones, and slices of growing jobs.

    shrink decided ──its job wants fewer pods──▶ surplus pods end ──all gone──▶ smaller admission

How many pods it keeps is in the message of a condition, where a restarted controller finds it. The
job's controller makes the job smaller, and `jobs/scaling.py` releases quota and places
once the pods are gone; what the Workload asks for stays as it was (placement §8.7).

A job that grows has two Workloads for a while: what it has, and a slice that asks for all of it. As
long as both hold something, the slice counts for what is new only: the first keeps holding the
rest, also while machines for the new pods are on their way (quota §15). A slice that
`jobs/scaling.py` made is absorbed by the first. Of Workloads that another controller made, the
first ends, as in Kueue (`orphaned_workloads.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, with_condition
from unisono.control.view import View
from unisono.engine.model.names import NodeName
from unisono.engine.model.plan import Shrink
from unisono.engine.model.resources import MAX_COUNT
from unisono.engine.model.workload import AdmittedWorkload, PodSetAssignment
from unisono.kinds.digits import whole_number
from unisono.kinds.kueue.workload_rules import REPLACES


def pods_to_keep(workload: Json) -> Mapping[str, int]:
    """Return how many pods of each set a shrinking gang keeps; empty if it is not shrinking."""
    found = find((workload.get("status") or {}).get("conditions"), names.SHRINKING)
    if found is None or found["status"] != "True":
        return {}
    kept = (part.partition("=") for part in found["message"].partition(";")[0].split()[1:])
    counts = ((name, whole_number(count, MAX_COUNT)) for name, _, count in kept)
    return {name: count for name, count in counts if count is not None}


def shrink_request(workload: Json, shrink: Shrink, by: str, *, now: float) -> Json:
    """Return the status patch that shrinks a gang."""
    kept = " ".join(f"{one.name}={one.count}" for one in shrink.keeps.pod_sets)
    message = f"keeps {kept}; releases its other pods to accommodate {by}"
    return {"status": {"conditions": _with(workload, "True", shrink.reason, message, now)}}


def shrink_done(workload: Json, pods: int, now: float) -> list[Json]:
    """Return the conditions of a gang that has released its surplus pods."""
    return _with(workload, "False", "GaveUpPods", f"continues with {pods} pods", now)


def _with(
    workload: Json, status: Literal["True", "False"], reason: str, message: str, now: float
) -> list[Json]:
    conditions = (workload.get("status") or {}).get("conditions")
    return with_condition(conditions, names.SHRINKING, status, reason, message, now=now)


# ---- slices ------------------------------------------------------------------------------------

SLICE = "-slice"  # after the name of the Workload that it grows out of
SLICE_OF_JOB = "unisono.dev/slice-of-job"  # on slices that `jobs/scaling.py` made
BY_REPLACED = "replaced"  # the index of slices by what they replace


def first_of_slice(workload: Json, view: View) -> Json | None:
    """Return the Workload that a slice grows out of, if there is one."""
    for replaced in replaced_by(workload):
        namespace, _, name = replaced.partition("/")
        return view.peek(names.WORKLOAD, name, namespace)
    return None


def replaced_by(workload: Json) -> tuple[str, ...]:
    """Return the Workload that a slice replaces, as `namespace/name`: the index `BY_REPLACED`."""
    metadata = workload["metadata"]
    replaced = (metadata.get("annotations") or {}).get(REPLACES, "")
    own, _, name = replaced.rpartition("/")
    return (f"{own or metadata['namespace']}/{name}",) if name else ()


def slices_of(workload: Json, view: View) -> list[Json]:
    """Return the slices that grow out of a Workload."""
    metadata = workload["metadata"]
    full = f"{metadata['namespace']}/{metadata['name']}"
    return view.by(names.WORKLOAD, BY_REPLACED, full)


def is_absorbed(slice_: Json) -> bool:
    """Say whether a slice was made for a job of ours, whose first Workload goes on."""
    return SLICE_OF_JOB in (slice_["metadata"].get("annotations") or {})


def holds(workload: Json | None) -> bool:
    """Say whether a Workload has quota."""
    status = (workload or {}).get("status") or {}
    return bool(status.get("admission")) and not is_true(status.get("conditions"), "Finished")


def only_new(slice_: AdmittedWorkload, first: AdmittedWorkload) -> AdmittedWorkload:
    """Return what a slice holds on top of what the first one does."""
    there = {one.name: one for one in first.admission.pod_sets}
    left = tuple(_without(one, there.get(one.name)) for one in slice_.admission.pod_sets)
    admission = msgspec.structs.replace(slice_.admission, pod_sets=left)
    return msgspec.structs.replace(slice_, admission=admission)


def _without(one: PodSetAssignment, there: PodSetAssignment | None) -> PodSetAssignment:
    if there is None:
        return one
    before = dict(there.nodes)
    nodes: list[tuple[NodeName, int]] = []
    devices: list[int] = []
    at = 0
    for name, pods in one.nodes:  # on each node those that run are named first
        old = min(pods, before.get(name, 0))
        if pods > old:
            nodes.append((name, pods - old))
            devices += one.devices[at + old : at + pods]
        at += pods
    count = max(0, one.count - there.count)
    return msgspec.structs.replace(one, count=count, nodes=tuple(nodes), devices=tuple(devices))
