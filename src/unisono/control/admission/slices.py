"""A job that grows has two Workloads for a while: what it has, and a slice that asks for all of it.

As long as both hold something, the slice counts for what is new only: the first goes on holding the
rest, also while machines for the new pods are on their way. Spec quota §15.
"""

from __future__ import annotations

import msgspec

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import is_true
from unisono.control.view import View
from unisono.engine.model.names import NodeName
from unisono.engine.model.workload import Holding, PodSetAssignment
from unisono.kinds.kueue.workload_rules import REPLACES

SLICE = "-slice"  # after the name of the Workload that it grows out of


def first_of_slice(workload: Json, view: View) -> Json | None:
    """Return the Workload that a slice grows out of, if there is one."""
    replaced = (workload["metadata"].get("annotations") or {}).get(REPLACES, "")
    if not replaced:
        return None
    own, _, name = replaced.rpartition("/")
    return view.peek(names.WORKLOAD, name, own or workload["metadata"]["namespace"])


def slice_of(workload: Json, view: View) -> Json | None:
    """Return the slice that grows out of a Workload that holds something, if there is one."""
    metadata = workload["metadata"]
    if not holds(workload):
        return None
    return view.peek(names.WORKLOAD, metadata["name"] + SLICE, metadata["namespace"])


def holds(workload: Json | None) -> bool:
    """Say whether a Workload has quota."""
    status = (workload or {}).get("status") or {}
    return bool(status.get("admission")) and not is_true(status.get("conditions"), "Finished")


def only_new(slice_: Holding, first: Holding) -> Holding:
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
