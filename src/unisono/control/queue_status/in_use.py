"""Queues and flavors that are used stay until they are not: a finalizer, as Kueue has it.

A ClusterQueue gets it with the first workload that holds its quota, a ResourceFlavor with the first
ClusterQueue that lists it. Once told to go they are closed at once, and gone with the last user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.controller import Reads
from unisono.control.jobs.workload import IN_USE
from unisono.control.queue_status.cluster_queue import BY_REFERENCE, referred_to
from unisono.control.queue_status.tally import Tally, counted_of
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# Both kinds are of no namespace; their keys tell them apart by one.
_QUEUE, _FLAVOR = "queue", "flavor"


class InUse:
    """Keeps the finalizers."""

    name = "in-use"
    watches: Sequence[Kind] = (names.CLUSTER_QUEUE, names.FLAVOR, names.WORKLOAD)
    minds: Mapping[Kind, Reads] = {names.WORKLOAD: counted_of}

    def __init__(self, tally: Tally) -> None:
        """Take what counts the workloads of each queue."""
        self._tally = tally

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A queue or a flavor that may be another's, or the queue of a workload."""
        if kind == names.FLAVOR:
            yield Key(_FLAVOR, obj["metadata"]["name"])
        elif kind == names.CLUSTER_QUEUE:
            yield Key(_QUEUE, obj["metadata"]["name"])
            for reference in referred_to(obj):
                prefix, _, name = reference.partition("/")
                if prefix == _FLAVOR:
                    yield Key(_FLAVOR, name)
        else:
            admission = (obj.get("status") or {}).get("admission") or {}
            if admission.get("clusterQueue"):
                yield Key(_QUEUE, admission["clusterQueue"])

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Set the finalizer on what is used; take it off what is to go and is used no more."""
        is_queue = key.namespace == _QUEUE
        found = view.get(names.CLUSTER_QUEUE if is_queue else names.FLAVOR, key.name)
        if found is None:
            return
        finalizers = found["metadata"].get("finalizers") or []
        is_used = (
            self._tally.of_queue(key.name).reserving > 0
            if is_queue
            else bool(view.by(names.CLUSTER_QUEUE, BY_REFERENCE, f"{_FLAVOR}/{key.name}"))
        )
        is_going = "deletionTimestamp" in found["metadata"]
        if is_used and not is_going and IN_USE not in finalizers:
            yield Patch(Ref.to(found), {"metadata": {"finalizers": [*finalizers, IN_USE]}})
        elif is_going and not is_used and IN_USE in finalizers:
            left = [one for one in finalizers if one != IN_USE]
            yield Patch(Ref.to(found), {"metadata": {"finalizers": left}})
