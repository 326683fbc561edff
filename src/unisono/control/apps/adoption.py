"""Gives pods without an owner to the set whose selector matches them, as Kubernetes does.

`kubectl delete --cascade=orphan` leaves pods behind; a set of the same selector takes them over,
before it counts what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Read, Ref, Steps, Together
from unisono.control.apps import DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET
from unisono.control.apps.members import controller_uid, is_active, is_its_own
from unisono.control.controller import own_key
from unisono.control.jobs.pods import AT_ONCE, is_deleting
from unisono.control.jobs.workload import owner_reference
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# The order decides where several match.
SETS = (REPLICA_SET, STATEFUL_SET, DAEMON_SET, REPLICATION_CONTROLLER)
# The index of pods that belong to nothing, by namespace.
ORPHANS = "orphans"


def orphaned(pod: Json) -> Iterable[str]:
    """Index pods that nothing controls."""
    return () if controller_uid(pod) else (pod["metadata"].get("namespace", ""),)


class Adoption:
    """Finds owners for pods."""

    name = "adoption"
    watches: Sequence[Kind] = (names.POD, *SETS)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A pod without an owner, or those around a set."""
        if kind != names.POD:
            if is_deleting(obj):
                return
            for pod in view.by(names.POD, ORPHANS, obj["metadata"]["namespace"]):
                if is_its_own(obj, pod):
                    yield own_key(pod)
        elif not controller_uid(obj) and is_active(obj) and any(map(view.is_any, SETS)):
            yield own_key(obj)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Give a pod to the first set that matches it."""
        pod = view.get(names.POD, key.name, key.namespace)
        if pod is None or controller_uid(pod) or not is_active(pod):
            return
        for kind in SETS:
            for owner in view.within(kind, key.namespace):
                if not is_deleting(owner) and is_its_own(owner, pod):
                    yield from adopt(owner, view)
                    return


def adopt(owner: Json, view: View) -> Steps:
    """Make an owner that of the pods which it selects, and which have none."""
    namespace = owner["metadata"]["namespace"]
    found = [
        pod
        for pod in view.by(names.POD, ORPHANS, namespace)
        if is_active(pod) and is_its_own(owner, pod)
    ]
    if not found:
        return
    # It may just be on its way out: pods that it orphans are not taken back.
    kind = Kind(owner["apiVersion"], owner["kind"])
    there = yield Read(kind, namespace, owner["metadata"]["name"])
    if there is None or there["metadata"]["uid"] != owner["metadata"]["uid"] or is_deleting(there):
        return
    yield Together([_adopted(owner, pod) for pod in found[:AT_ONCE]])


def _adopted(owner: Json, pod: Json) -> Patch:
    owners = [*(pod["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
    return Patch(Ref.to(pod), {"metadata": {"ownerReferences": owners}})
