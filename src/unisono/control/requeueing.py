"""Workloads on hold after an eviction, and when they may queue again (quota §11).

    evicted because                     queues again when
    the ClusterQueue was stopped        neither it nor the LocalQueue is
    the LocalQueue was stopped          …
    the workload was deactivated        it is active again
    a check failed, pods came late      at once; `requeueAt` keeps the time, if there is one

A workload that was preempted, or lost a node, is never on hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.admission.kueue_messages import REQUEUED
from unisono.control.conditions import find, is_true, with_condition
from unisono.control.controller import own_key
from unisono.control.queue_status.local_queue import BY_CLUSTER_QUEUE
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

ON_HOLD = "on-hold"


def queue_on_hold(workload: Json) -> Iterable[str]:
    """Index workloads on hold by their queue, as `namespace/queue`."""
    if _hold(workload) is None:
        return ()
    return (f"{workload['metadata']['namespace']}/{workload['spec'].get('queueName', '')}",)


class Requeueing:
    """Lets workloads queue again once nothing holds them any more."""

    name = "requeues"
    watches: Sequence[Kind] = (names.WORKLOAD, names.LOCAL_QUEUE, names.CLUSTER_QUEUE)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload on hold, or the queues that it may be on hold for."""
        match kind:
            case names.WORKLOAD:
                if _hold(obj) is not None:
                    yield own_key(obj)
            case names.LOCAL_QUEUE:
                full = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
                for workload in view.by(names.WORKLOAD, ON_HOLD, full):
                    yield own_key(workload)
            case _:
                for door in view.by(names.LOCAL_QUEUE, BY_CLUSTER_QUEUE, obj["metadata"]["name"]):
                    yield from self.touched(names.LOCAL_QUEUE, door, view)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take a workload off hold if its reason is over."""
        workload = view.get(names.WORKLOAD, key.name, key.namespace)
        hold = _hold(workload) if workload is not None else None
        if workload is None or hold is None or "deletionTimestamp" in workload["metadata"]:
            return
        status = workload["status"]
        reason = _over(workload, hold["reason"], view)
        if status.get("admission") or is_true(status["conditions"], "Finished") or not reason:
            return
        conditions = with_condition(
            status["conditions"], "Requeued", "True", reason, REQUEUED[reason], now=now
        )
        changes: Json = {"conditions": conditions}
        if reason == _REACTIVATED:
            changes["requeueState"] = None  # its failures are forgiven
        yield Patch(Ref.to(workload), {"status": changes}, "status")


_REACTIVATED = "Reactivated"


def _hold(workload: Json) -> Json | None:
    """Return the condition that keeps a workload out of the queue; None if none does."""
    found = find((workload.get("status") or {}).get("conditions"), "Requeued")
    return found if found is not None and found["status"] == "False" else None


def _over(workload: Json, reason: str, view: View) -> str:
    """Return why a reason to be on hold is one no more; empty if it still is."""
    if not workload["spec"].get("active", True):
        return ""
    if reason.startswith("Deactivated"):
        return _REACTIVATED
    match reason:
        case "ClusterQueueStopped" | "LocalQueueStopped":
            restarted = reason.replace("Stopped", "Restarted")
            return "" if _is_stopped(workload, view) else restarted
        case "AdmissionCheck" | "PodsReadyTimeout":
            return "BackoffFinished"
        case _:
            return ""


def _is_stopped(workload: Json, view: View) -> bool:
    name, namespace = workload["spec"].get("queueName", ""), workload["metadata"]["namespace"]
    door = view.get(names.LOCAL_QUEUE, name, namespace)
    if door is None:
        return True
    queue = view.get(names.CLUSTER_QUEUE, door["spec"]["clusterQueue"])
    return queue is None or _is_shut(door) or _is_shut(queue)


def _is_shut(queue: Json) -> bool:
    return bool(queue["spec"].get("stopPolicy", "None") != "None")
