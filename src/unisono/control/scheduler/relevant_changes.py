"""Which changes matter to the scheduler: those of fields that a decision reads.

The statuses of queues change whenever a workload does, and a workload's own changes at every step
of its pods. Hearing of each would mean to read it again and to decide again, ten times for every
gang that starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.controller import own_key
from unisono.control.health.progress import PROGRESS
from unisono.control.health.stragglers import KNOWN
from unisono.control.scheduler.missing_nodes import is_repairing
from unisono.control.scheduler.time_limits import default_text
from unisono.control.view import View
from unisono.kinds.kueue.waiting import WAITING
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# Conditions that are for people, or for controllers that carry decisions out.
_FOR_OTHERS = frozenset(
    {
        names.PLACEMENT,
        names.EXPLANATION,
        WAITING,
        names.EVICTION,
        names.PURCHASE,
        names.CAPACITY_PLANNED,
    }
)
_READINESS = "PodsReady"
# Parts of a status that are compared by themselves, or that nothing is decided by.
_TOLD = frozenset({"conditions", "resourceRequests"})


class RelevantChanges:
    """Remembers the last relevant content of each object."""

    def __init__(self, *, reads_readiness: bool = True) -> None:
        """Begin with nothing seen; not every policy depends on whether pods are ready."""
        self._seen: dict[tuple[Kind, Key], object] = {}
        self._ignored = _FOR_OTHERS if reads_readiness else _FOR_OTHERS | {_READINESS}
        self._matters: Mapping[Kind, Callable[[Json, View], object]] = {
            names.CLUSTER_QUEUE: _of_queue,
            names.LOCAL_QUEUE: _of_queue,
            names.COHORT: _of_queue,
            names.WORKLOAD: self._of_workload,
            names.POD: _of_pod,
        }

    def is_relevant(self, kind: Kind, obj: Json, view: View) -> bool:
        """Say whether an object is different in anything that a decision reads."""
        matters_of = self._matters.get(kind)
        if matters_of is None:
            return True
        key = own_key(obj)
        now = view.get(kind, key.name, key.namespace)
        if now is None:
            self._seen.pop((kind, key), None)
            return True
        matters = matters_of(now, view)
        if self._seen.get((kind, key)) == matters:
            return False
        if matters is None:
            del self._seen[kind, key]
        else:
            self._seen[kind, key] = matters
        return True

    def _of_workload(self, workload: Json, view: View) -> object:
        """A number instead of the fields: there may be a hundred thousand workloads."""
        metadata, status = workload["metadata"], workload.get("status") or {}
        # No decision depends on a condition's message, or on the time since when a workload waits.
        conditions = [
            (one["type"], one["status"], one["reason"], one["lastTransitionTime"])
            if one["type"] != "QuotaReserved" or one["status"] == "True"
            else (one["type"], one["status"])
            for one in status.get("conditions") or ()
            if one["type"] not in self._ignored
        ]
        parts = (
            metadata.get("uid"),
            metadata.get("generation"),
            metadata.get("deletionTimestamp"),
            "deletionTimestamp" in metadata and metadata.get("finalizers"),
            metadata.get("labels"),
            {**(metadata.get("annotations") or {}), PROGRESS: None, KNOWN: None},
            conditions,
            is_repairing(workload),
            [one for one in status.items() if one[0] not in _TOLD],
        )
        return hash(orjson.dumps(parts))


def _of_queue(queue: Json, view: View) -> object:
    """Counts decide nothing, except what a local queue used lately."""
    metadata, status = queue["metadata"], queue.get("status") or {}
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("deletionTimestamp"),
        default_text(queue),
        (status.get("fairSharing") or {}).get("admissionFairSharingStatus"),
    )


def _of_pod(pod: Json, view: View) -> object:
    """A pod of a workload is counted there: only whether it is, and where it runs, matters.

    One that was told to end may be elsewhere than its workload is placed by now.

    None as long as a pod does not count: it has no node, and either a workload will find it
    one or a gate holds it back.
    """
    metadata, spec = pod["metadata"], pod["spec"]
    name = (metadata.get("annotations") or {}).get(names.WORKLOAD_ANNOTATION)
    if not spec.get("nodeName") and (name or spec.get("schedulingGates")):
        return None
    if not name:
        return metadata.get("resourceVersion")
    workload = view.peek(names.WORKLOAD, name, metadata["namespace"])
    is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return (
        metadata.get("uid"),
        spec.get("nodeName"),
        is_over,
        "deletionTimestamp" in metadata and not is_over,
        workload is not None and bool((workload.get("status") or {}).get("admission")),
    )
