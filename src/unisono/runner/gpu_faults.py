"""Reports injected GPU faults as an agent on a real node would: a condition, and fewer devices.

    unisono.dev/gpu-faults on a node ──▶ condition GPUProblem, and allocatable without GPUs off the
    bus

What follows is decided elsewhere: to the controllers this looks like a broken device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, is_true, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.resources import bounded, is_gpu
from unisono.kinds.quantity import Quantity
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.monitor.gpu_faults import Faults, fault_at, faults_of, problem_of

CONDITION = "GPUProblem"
_WELL = ("NoGPUProblem", "all GPUs are healthy")


class GpuFaults:
    """Watches the nodes of an embedded cluster."""

    name = "gpu-faults"
    watches: Sequence[Kind] = (names.NODE,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A node."""
        return (own_key(obj),)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the faults of a node's devices into its status."""
        node = view.get(names.NODE, key.name)
        if node is None or "deletionTimestamp" in node["metadata"]:
            return
        status = node.get("status") or {}
        faults = faults_of(node["metadata"].get("annotations"))
        reason, message = problem_of(faults)
        changes: Json = {}
        allocatable = _allocatable(status, faults)
        if allocatable != status.get("allocatable"):
            changes["allocatable"] = allocatable
        conditions = status.get("conditions")
        current = find(conditions, CONDITION)
        is_news = (
            (current or {}).get("reason") != reason if reason else is_true(conditions, CONDITION)
        )
        if is_news:
            condition = (reason, message) if reason else _WELL
            changes["conditions"] = with_condition(
                conditions, CONDITION, "True" if reason else "False", *condition, now=now
            )
        if changes:
            yield Patch(Ref.to(node), {"status": changes}, "status", exact=True)


def _allocatable(status: Json, faults: Faults) -> Json | None:
    """Return what a node can give out: its GPUs are those that did not fall off the bus.

    A node that was never reported is left alone: it may offer less for reasons of its own.
    """
    allocatable: Json | None = status.get("allocatable")
    capacity = status.get("capacity") or {}
    if not faults and not is_true(status.get("conditions"), CONDITION):
        return allocatable
    resource = next((name for name in capacity if is_gpu(name)), None)
    if resource is None or allocatable is None:
        return allocatable
    there = bounded(resource, Quantity.from_raw(capacity[resource]).units)
    lost = sum(
        1
        for index in range(there)
        if (fault := fault_at(faults, index)) is not None and fault.fallen_off
    )
    left = str(there - lost)
    return allocatable if allocatable.get(resource) == left else {**allocatable, resource: left}
