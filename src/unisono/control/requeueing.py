"""Workloads on hold after an eviction, and when they may queue again (quota §11).

    evicted because                     queues again when
    the ClusterQueue was stopped        neither it nor the LocalQueue is
    the LocalQueue was stopped          …
    the workload was deactivated        it is active again
    a check failed, pods came late      its `requeueAt` has come, if it has one

A workload that was preempted, or lost a node, is never on hold. A `requeueAt` in the past is taken
off; how often there was one stays, until the workload is deactivated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Patch, Ref, Steps
from unisono.control.admission.kueue_messages import REQUEUED
from unisono.control.conditions import find, seconds, with_condition
from unisono.control.controller import own_key
from unisono.control.queue_status.local_queue import BY_CLUSTER_QUEUE
from unisono.control.view import View
from unisono.kinds.views.workloads import Workload
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

ON_HOLD = "on-hold"


def queue_on_hold(workload: Json) -> Iterable[str]:
    """Index workloads on hold by their queue, as `namespace/queue`."""
    found = Workload(workload)
    return (f"{found.metadata.namespace}/{found.spec.queue_name}",) if _is_on_hold(found) else ()


class Requeueing:
    """Lets workloads queue again once nothing holds them any more."""

    name = "requeues"
    watches: Sequence[Kind] = (names.WORKLOAD, names.LOCAL_QUEUE, names.CLUSTER_QUEUE)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A workload on hold or in a backoff, or the queues that it may be on hold for."""
        match kind:
            case names.WORKLOAD:
                status = obj.get("status") or {}
                if status.get("requeueState") or _is_on_hold(Workload(obj)) or _is_left(obj):
                    yield own_key(obj)
            case names.LOCAL_QUEUE:
                key = own_key(obj)
                for workload in view.by(names.WORKLOAD, ON_HOLD, f"{key.namespace}/{key.name}"):
                    yield own_key(workload)
            case _:
                for lq in view.by(names.LOCAL_QUEUE, BY_CLUSTER_QUEUE, own_key(obj).name):
                    yield from self.touched(names.LOCAL_QUEUE, lq, view)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take a workload off hold if its reason is over, and out of a backoff that has ended."""
        obj = view.get(names.WORKLOAD, key.name, key.namespace)
        if obj is None:
            return
        workload = Workload(obj)
        if workload.metadata.deletion_timestamp or workload.is_finished:
            return
        if _is_left(obj):
            obj = yield Patch(Ref.to(obj), {"status": {"admission": None}}, "status")
            workload = Workload(obj)
        requeues, is_on_hold = obj["status"].get("requeueState") or {}, _is_on_hold(workload)
        if not workload.spec.active:
            if requeues:  # its failures are forgiven
                yield Patch(Ref.to(obj), {"status": {"requeueState": None}}, "status")
            return
        if workload.status.admission is not None and not is_on_hold:
            return  # as in Kueue: `requeueAt` stays until its quota is given back
        due = _backoff_end(requeues)
        if due is not None and not is_on_hold:
            due += _GRACE_S
        if due is not None and now < due:
            yield Again(due)
            return
        changes: Json = {} if due is None else {"requeueState": without_backoff(requeues)}
        reason = _over(workload, view) if is_on_hold else ""
        if reason:
            changes["conditions"] = with_condition(
                obj["status"]["conditions"],
                "Requeued",
                "True",
                reason,
                REQUEUED[reason],
                now=now,
                generation=obj["metadata"].get("generation"),
            )
        if changes:
            yield Patch(Ref.to(obj), {"status": changes}, "status")


def _is_left(workload: Json) -> bool:
    """Say whether an admission is only left of one.

    A foreign controller releases quota by an apply of QuotaReserved=False, and the API server keeps
    the `admission` that another manager, we, wrote.
    """
    status = workload.get("status") or {}
    reserved = find(status.get("conditions"), "QuotaReserved")
    return bool(status.get("admission")) and reserved is not None and reserved["status"] == "False"


def without_backoff(requeues: Json) -> Json | None:
    """Return the change of a `requeueState` whose time has come: its count stays."""
    return {"requeueAt": None} if requeues.get("count") else None


# A workload that only its time holds may be admitted at that time. Its admission clears the time,
# too, so this leaves that the first word.
_GRACE_S = 0.2


def _backoff_end(requeues: Json) -> float | None:
    at = requeues.get("requeueAt")
    return seconds(at) if at else None


_REACTIVATED = "Reactivated"


def _is_on_hold(workload: Workload) -> bool:
    """Say whether a condition keeps a workload out of the queue."""
    return workload.conditions.is_false("Requeued")


def _over(workload: Workload, view: View) -> str:
    """Return why a workload is on hold no more; empty if it still is."""
    reason = workload.conditions.reason("Requeued")
    if not workload.spec.active:
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


def _is_stopped(workload: Workload, view: View) -> bool:
    lq = view.get(names.LOCAL_QUEUE, workload.spec.queue_name, workload.metadata.namespace)
    if lq is None:
        return True
    cq = view.get(names.CLUSTER_QUEUE, lq["spec"]["clusterQueue"])
    return cq is None or _has_stop_policy(lq) or _has_stop_policy(cq)


def _has_stop_policy(queue: Json) -> bool:
    return bool(queue["spec"].get("stopPolicy", "None") != "None")
