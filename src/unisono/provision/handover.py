"""For whom a machine is being bought, and what becomes of it when they do not need it any more.

    bought for somebody who waits for it           nobody else may have it
    they lost their quota, or are gone             offered to others for the time of released ones
    they could not have the rest of the machines   offered for a moment: they decide anew at once
    it was too slow, or its pool is gone           given back at once

Whoever takes a machine over names it in a purchase of their own; from then on it is theirs, even
before that is written on the claim. Spec provisioning §5.8.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find
from unisono.control.purchases import BY_MACHINE, UNDER_WAY, is_holding, purchase_of
from unisono.control.view import View
from unisono.provision import words
from unisono.provision.claims import state_of

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


def is_adrift(claim: Json, view: View) -> bool:
    """Say whether a machine is on its way, and anybody may take it over."""
    annotations = claim["metadata"].get("annotations") or {}
    if words.HELD_FOR not in annotations or state_of(claim) != "launched":
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
    holder = (claim["metadata"].get("annotations") or {}).get(words.HELD_FOR, "")
    namespace, _, name = holder.partition("/")
    workload = view.peek(names.WORKLOAD, name, namespace) if holder else None
    if workload is None or "deletionTimestamp" in workload["metadata"]:
        return None
    return workload
