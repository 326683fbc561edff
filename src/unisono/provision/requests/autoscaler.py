"""Fulfils ProvisioningRequests on a cluster whose machines exist only here.

The nodes of a workload are decided with its quota, so a request is a mirror of that decision: it is
provisioned when the workload has nodes that are there, and says how far they are until then. A
purchase that was too slow is a request that failed. Spec provisioning §5.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.admission.purchases import UNDER_WAY, is_holding, purchase_of
from unisono.control.conditions import find, is_true, with_condition
from unisono.control.controller import own_key, owner_key
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision.requests.requesting import BY_OWNER


class SimulatedAutoscaler:
    """Says of requests what became of them."""

    name = "autoscaler"
    watches: Sequence[Kind] = (names.PROVISIONING_REQUEST, names.WORKLOAD)
    idle_without: Kind = names.PROVISIONING_REQUEST

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A request, or those of a workload."""
        if kind == names.PROVISIONING_REQUEST:
            yield own_key(obj)
            return
        full = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        for request in view.by(names.PROVISIONING_REQUEST, BY_OWNER, full):
            yield own_key(request)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write the status of one request."""
        request = view.get(names.PROVISIONING_REQUEST, key.name, key.namespace)
        if request is None or "deletionTimestamp" in request["metadata"]:
            return
        old = (request.get("status") or {}).get("conditions") or []
        if is_true(old, "Failed") or is_true(old, "Provisioned"):
            return
        made = _conditions(old, self._owner(request, view), now)
        if made != old:
            yield Patch(Ref.to(request), {"status": {"conditions": made}}, "status")

    def _owner(self, request: Json, view: View) -> Json | None:
        for key in owner_key(request, names.WORKLOAD):
            return view.get(names.WORKLOAD, key.name, key.namespace)
        return None


def _conditions(old: list[Json], workload: Json | None, now: float) -> list[Json]:
    if workload is None:
        text = "only requests of workloads are fulfilled here"
        return with_condition(old, "Failed", "True", "NoWorkload", text, now=now)
    made = with_condition(
        old, "Accepted", "True", "Accepted", "ProvisioningRequest is accepted", now=now
    )
    found = purchase_of(workload)
    told = find(workload["status"].get("conditions"), names.CAPACITY_PLANNED)
    text = told["message"] if told is not None else ""
    if found is not None and found[0] == "TimedOut":
        return with_condition(made, "Failed", "True", "Timeout", text, now=now)
    if not is_holding(workload):
        return made
    if found is not None and found[0] in UNDER_WAY:
        return with_condition(made, "Provisioned", "False", "Provisioning", text, now=now)
    text = "Capacity is found in the cluster" if found is None else text
    return with_condition(made, "Provisioned", "True", "Provisioned", text, now=now)
