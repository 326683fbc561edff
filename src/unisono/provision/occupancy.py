"""Which workload a machine is kept for or used by, and for how long it stays without one.

    bought for a workload that waits for it        no other workload may use it
    that workload lost its quota or is gone        offered to other workloads for the reuse time
    the rest of its purchase could not be had      offered for a moment, until the next decision
    it was too slow, or its pool is gone           given back at once

A workload that takes a machine over names it in its own purchase. From then on the machine belongs
to it, even before that is written on the claim. Spec provisioning §5.8.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.admission.placement import hosts_of
from unisono.control.admission.purchases import BY_MACHINE, UNDER_WAY, is_holding, purchase_of
from unisono.control.conditions import find, is_true
from unisono.control.view import View
from unisono.kinds.scalar import duration_ms
from unisono.provision import keys
from unisono.provision.claims import created_at, state_of

# Long enough to decide anew, and short enough to cost next to nothing.
_A_MOMENT = 5.0


def holder_of(claim: Json, view: View) -> Json | None:
    """Return the workload that a machine is being bought for, as long as that is so."""
    name = claim["metadata"]["name"]
    for taker in view.by(names.WORKLOAD, BY_MACHINE, name):
        if is_holding(taker) and "deletionTimestamp" not in taker["metadata"]:
            return taker
    workload = _bought_for(claim, view)
    found = purchase_of(workload) if workload is not None else None
    return workload if found is not None and name in found[1].nodes else None


def is_coming_for(claim: Json, view: View) -> Json | None:
    """Return the workload that still waits for a machine."""
    workload = holder_of(claim, view)
    found = purchase_of(workload) if workload is not None else None
    if workload is None or found is None or found[0] not in UNDER_WAY:
        return None
    return workload if is_holding(workload) else None


def is_orphaned(claim: Json, view: View) -> bool:
    """Say whether a machine is on its way, and any workload may take it over."""
    annotations = claim["metadata"].get("annotations") or {}
    if keys.HELD_FOR not in annotations or state_of(claim) != "launched":
        return False
    return is_coming_for(claim, view) is None and offered_for(claim, view, reuse=1.0) > 0


def offered_for(claim: Json, view: View, *, reuse: float) -> float:
    """Return for how many seconds a machine on its way is offered to others."""
    if state_of(claim) != "launched":
        return 0.0  # it costs nothing yet, or it cannot be had
    workload = _bought_for(claim, view)
    if workload is None:
        return reuse
    status = workload.get("status") or {}
    if is_holding(workload):
        return min(reuse, _A_MOMENT)  # they have decided without it
    planned = find(status.get("conditions"), names.CAPACITY_PLANNED)
    why = planned["reason"] if planned is not None and planned["status"] == "False" else ""
    if why in ("Timeout", "PoolGone"):
        return 0.0
    return min(reuse, _A_MOMENT) if why == "StockOut" else reuse


def _bought_for(claim: Json, view: View) -> Json | None:
    """Return the workload that a claim names, as long as it is there."""
    holder = (claim["metadata"].get("annotations") or {}).get(keys.HELD_FOR, "")
    namespace, _, name = holder.partition("/")
    workload = view.peek(names.WORKLOAD, name, namespace) if holder else None
    if workload is None or "deletionTimestamp" in workload["metadata"]:
        return None
    return workload


NEVER = float("inf")


def is_empty(node: Json, view: View) -> bool:
    """Say whether no pod is on a node, agents apart, and no workload is admitted to it."""
    for pod in view.by(names.POD, "node", node["metadata"]["name"]):
        is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not is_over and not _is_agent(pod):
            return False
    return not any(is_on(workload, node) for workload in view.all(names.WORKLOAD))


def only_user_of(node: Json, workload: Json, view: View) -> bool:
    """Say whether one workload alone uses a node, and no pod there forbids disruption."""
    own = workload["metadata"]
    for pod in view.by(names.POD, "node", node["metadata"]["name"]):
        is_over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if is_over or _is_agent(pod):
            continue
        about = pod["metadata"].get("annotations") or {}
        is_own = about.get(names.WORKLOAD_ANNOTATION) == own["name"]
        if not is_own or pod["metadata"]["namespace"] != own["namespace"]:
            return False
        if about.get(keys.DO_NOT_DISRUPT) == "true":
            return False
    return not any(
        is_on(other, node)
        for other in view.all(names.WORKLOAD)
        if (other["metadata"]["namespace"], other["metadata"]["name"])
        != (own["namespace"], own["name"])
    )


def _is_agent(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] in ("DaemonSet", "Node") for owner in owners)


def is_on(workload: Json, node: Json) -> bool:
    """Say whether a workload has, or is to have, pods on a node."""
    status = workload.get("status") or {}
    if not status.get("admission") or is_true(status.get("conditions"), "Finished"):
        return False
    name = node["metadata"]["name"]
    host = (node["metadata"].get("labels") or {}).get(names.HOSTNAME, name)
    return any(place in (name, host) for place, _ in hosts_of(workload))


def stays_for(claim: Json, pool: Json | None, *, reuse: float) -> float:
    """Return how long an empty node stays, in seconds."""
    if (claim["metadata"].get("annotations") or {}).get(keys.RELEASED):
        return reuse
    disruption = ((pool or {}).get("spec") or {}).get("disruption") or {}
    return _seconds(str(disruption.get("consolidateAfter") or "0s"))


def expires_at(claim: Json) -> float:
    """Return when a node is too old for new gangs."""
    return created_at(claim) + _seconds(str(claim["spec"].get("expireAfter") or "Never"))


def ends_at(claim: Json) -> float:
    """Return when a node that is too old is removed even if it is in use."""
    grace = claim["spec"].get("terminationGracePeriod")
    return expires_at(claim) + _seconds(str(grace)) if grace else NEVER


def _seconds(text: str) -> float:
    if text == "Never":
        return NEVER
    try:
        return duration_ms(text) / 1000
    except ValueError:
        return NEVER
