"""Tells people why a workload waits: the condition QuotaReserved, and of pods PodScheduled.

Apart from the scheduler, so that ten thousand sentences never hold up a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.scheduler import record
from unisono.control.scheduler.loop import Scheduler
from unisono.control.scheduler.translate import STRAY
from unisono.control.view import View
from unisono.engine.explain import message_of
from unisono.engine.model.names import WorkloadKey
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class Explainer:
    """Writes what the scheduler found out; woken by it."""

    name = "explainer"
    watches: Sequence[Kind] = ()

    def __init__(self, scheduler: Scheduler) -> None:
        """Take who knows."""
        self._scheduler = scheduler

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Only the scheduler wakes it."""
        return ()

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the explanation of one workload, if it is not there yet."""
        full = WorkloadKey(f"{key.namespace}/{key.name}")
        explanation = self._scheduler.explanations.get(full)
        if explanation is None:
            return
        if key.namespace.startswith(STRAY):
            pod = view.get(names.POD, key.name, key.namespace.removeprefix(STRAY))
            if pod is not None and not pod["spec"].get("nodeName"):
                yield from _unschedulable(pod, message_of(explanation), now)
            return
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        if workload is None:
            return
        changes = record.waiting(workload, explanation, now=now)
        if changes is not None:
            yield Patch(Ref.to(workload), changes, "status")


def _unschedulable(pod: Json, message: str, now: float) -> Steps:
    conditions = (pod.get("status") or {}).get("conditions")
    old = find(conditions, "PodScheduled")
    if old is not None and old.get("message") == message:
        return
    changed = with_condition(conditions, "PodScheduled", "False", "Unschedulable", message, now=now)
    yield Patch(Ref.to(pod), {"status": {"conditions": changed}}, "status")
