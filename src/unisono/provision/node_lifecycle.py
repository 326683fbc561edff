"""The lifecycle of a machine: which workload holds it, which may use it next, when it is removed.

    held      bought for a gang that waits for the rest of its machines; closed to other workloads
    used      pods of a workload are on it
    idle      open to any workload that fits; removed after a while
    going     tainted, checked once more, and given back

A node with a pod of a running gang never goes, whatever the pool says: one that is too old, or not
what its pool says any more, takes no new gang, and goes when the last one has ended. Spec
provisioning §5.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Again, Delete, Json, Note, Patch, Ref, Steps, Wake
from unisono.control.admission.placement import hosts_of
from unisono.control.admission.purchases import is_holding, purchase_of
from unisono.control.conditions import seconds, timestamp
from unisono.control.controller import own_key
from unisono.control.nodes import node_name as node_of_host
from unisono.control.view import View
from unisono.kinds.policy.provisioning import BuyingTimes
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision import keys
from unisono.provision.claims import drift_of, node_name, pool_name, state_of, with_drift
from unisono.provision.disruption_budgets import Reason, allowed, is_going, most
from unisono.provision.occupancy import (
    NEVER,
    ends_at,
    expires_at,
    holder_of,
    is_coming_for,
    is_empty,
    offered_for,
    stays_for,
)

BY_NODE = "node"
BY_POOL = "pool"
# The scheduler may not have seen the taint yet; a second later it has.
_SECOND_LOOK = 1.0
# A gang that was told to move has left by then, or is not going to.
_MOVING_SECONDS = 600.0
# So long before a machine in use ends, an event announces it.
_ANNOUNCED_SECONDS = 3600.0


def node_of_claim(claim: Json) -> Iterable[str]:
    """Index claims by the node that they are."""
    node = node_name(claim)
    return (node,) if node else ()


def pool_of_claim(claim: Json) -> Iterable[str]:
    """Index claims by their pool."""
    pool = pool_name(claim)
    return (pool,) if pool else ()


class NodeLifecycle:
    """Keeps one machine in order."""

    name = "machines"
    watches: Sequence[Kind] = (
        names.NODE_CLAIM,
        names.NODE,
        names.POD,
        names.WORKLOAD,
        names.NODE_POOL,
    )
    idle_without: Kind = names.NODE_CLAIM

    def __init__(self, times: BuyingTimes, *, gives_back: bool) -> None:
        """With `gives_back` empty machines are ours to give back; Karpenter does it itself."""
        self._times = times
        self._gives_back = gives_back

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A claim; that of a node, or of the node that a pod is on; those of a pool or purchase."""
        if kind == names.NODE_CLAIM:
            yield own_key(obj)
        elif kind == names.NODE_POOL:
            for claim in view.by(names.NODE_CLAIM, BY_POOL, obj["metadata"]["name"]):
                yield own_key(claim)
        elif kind == names.NODE:
            for claim in view.by(names.NODE_CLAIM, BY_NODE, obj["metadata"]["name"]):
                yield own_key(claim)
        elif kind == names.POD:
            node = obj["spec"].get("nodeName")
            for claim in view.by(names.NODE_CLAIM, BY_NODE, node) if node else ():
                yield own_key(claim)
        elif view.is_any(names.NODE_CLAIM):
            found = purchase_of(obj)
            for name in found[1].nodes if found is not None else ():
                yield Key("", name)
            if (obj.get("status") or {}).get("admission"):
                for host, _ in hosts_of(obj):
                    for claim in view.by(names.NODE_CLAIM, BY_NODE, node_of_host(host, view)):
                        yield own_key(claim)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one machine a step further."""
        claim = view.get(names.NODE_CLAIM, key.name)
        if claim is None or "deletionTimestamp" in claim["metadata"]:
            return
        node = view.get(names.NODE, node_name(claim)) if node_name(claim) else None
        if is_coming_for(claim, view) is not None:
            yield from _update_holder(claim, node)
            return
        annotations = claim["metadata"].get("annotations") or {}
        if keys.HELD_FOR in annotations:
            is_consumed = _is_consumed(claim, view)
            if not is_consumed and (state_of(claim) != "ready" or node is None):
                yield from self._offer(claim, view, now)
                return
            yield from self._release(claim, node, is_consumed=is_consumed, now=now)
            return
        if node is None or "deletionTimestamp" in node["metadata"]:
            return
        if self._gives_back:
            yield from self._idle(claim, node, view, now)
        elif keys.DO_NOT_DISRUPT in (node["metadata"].get("annotations") or {}):
            if is_empty(node, view):
                yield Patch(Ref.to(node), _unprotected())

    def _offer(self, claim: Json, view: View, now: float) -> Steps:
        """Keep a machine of a failed purchase for a while: another workload may take it over."""
        lasts = offered_for(claim, view, reuse=self._times.reuse)
        since = (claim["metadata"].get("annotations") or {}).get(keys.RELEASED)
        if lasts > 0 and since is None:
            since = timestamp(now)
            claim = yield Patch(Ref.to(claim), _note({keys.RELEASED: since}))
        if since is None or now >= seconds(since) + lasts:
            yield Delete(Ref.to(claim))
        else:
            yield Again(seconds(since) + lasts)

    def _release(self, claim: Json, node: Json | None, *, is_consumed: bool, now: float) -> Steps:
        """Open a machine: to the workload that it was bought for, or to all."""
        if node is not None:
            taints = (node["spec"].get("taints")) or []
            kept = [one for one in taints if one["key"] != keys.HELD_FOR]
            changes: Json = {"metadata": {"annotations": {keys.HELD_FOR: None}}}
            if kept != taints:
                changes["spec"] = {"taints": kept or None}
            if not is_consumed:
                changes["metadata"]["annotations"][keys.DO_NOT_DISRUPT] = None
            yield Patch(Ref.to(node), changes)
        about: dict[str, str | None] = dict.fromkeys(
            (keys.HELD_FOR, keys.PLAN_SIZE, keys.DO_NOT_DISRUPT)
        )
        if not is_consumed and keys.RELEASED not in claim["metadata"]["annotations"]:
            about[keys.RELEASED] = timestamp(now)
        yield Patch(Ref.to(claim), {"metadata": {"annotations": about}})
        if not is_consumed:
            message = "offered to other workloads: its purchase did not complete"
            yield Note(Ref.to(claim), "CapacityReused", message)

    # ---- idle machines ----------------------------------------------------------------------

    def _idle(self, claim: Json, node: Json, view: View, now: float) -> Steps:
        pool = view.get(names.NODE_POOL, pool_name(claim))
        is_old = now >= expires_at(claim)
        drift = drift_of(claim, node, pool)
        marked = with_drift(claim, drift, now)
        if marked is not None:
            claim = yield Patch(Ref.to(claim), {"status": {"conditions": marked}}, "status")
        if not is_empty(node, view):
            why = "NodeExpired" if is_old else ""
            if drift and pool is not None and not why and most(pool, "Drifted", 1, now) > 0:
                why = "NodeDrifted"
            yield from self._in_use(claim, node, now, why)
            yield from _hard_stop(claim, now)
            return
        annotations = claim["metadata"].get("annotations") or {}
        since = annotations.get(keys.IDLE_SINCE)
        if since is None:
            # A machine that was not taken over while launching has been idle all along.
            since = annotations.get(keys.RELEASED) or timestamp(now)
            yield Patch(Ref.to(claim), _note({keys.IDLE_SINCE: since}))
        if keys.STATIC in annotations and pool is not None and not drift and not is_old:
            yield Wake("node-pools", "", pool_name(claim))  # it may have one too many
            return
        due = seconds(since) + stays_for(claim, pool, reuse=self._times.reuse)
        is_leaving = is_going(node)
        is_left = is_leaving and keys.CONSOLIDATING in annotations
        if is_old or drift or pool is None or is_left:
            due = min(due, now)
        if now < due:
            if due < NEVER:
                yield Again(due)
            return
        if not is_leaving:
            reason: Reason = "Drifted" if drift else "Empty"
            if pool is not None and not is_old and allowed(pool, reason, view, now) < 1:
                yield Again(now + 10)
                return
            yield Patch(Ref.to(node), _tainted(node, now))
            yield Again(now + _SECOND_LOOK)
            return
        if now < _tainted_at(node) + _SECOND_LOOK:
            yield Again(_tainted_at(node) + _SECOND_LOOK)
            return
        message = "replaced: its NodePool was changed" if drift else "not needed"
        yield Note(Ref.to(claim), "NodeReclaimed", f"{node['metadata']['name']} {message}")
        yield Delete(Ref.to(claim))

    def _in_use(self, claim: Json, node: Json, now: float, why: str) -> Steps:
        """Keep a machine in use; one that has to go takes no new workload."""
        is_closed = _has_taint(node, keys.DISRUPTED)
        if why and not is_closed:
            yield Patch(Ref.to(node), _tainted(node, now, keys.WHEN_EMPTY))
            yield Note(Ref.to(claim), why, "removed when the workload on it ends", "Warning")
        elif is_closed and not why and not _is_moving(claim, now):
            taints = [one for one in node["spec"]["taints"] if one["key"] != keys.DISRUPTED]
            yield Patch(Ref.to(node), {"spec": {"taints": taints or None}})
        annotations = claim["metadata"].get("annotations") or {}
        marks = [keys.IDLE_SINCE, keys.RELEASED]
        if keys.CONSOLIDATING in annotations and not _is_moving(claim, now):
            marks.append(keys.CONSOLIDATING)
        if any(mark in annotations for mark in marks):
            yield Patch(Ref.to(claim), _note(dict.fromkeys(marks)))


def _is_consumed(claim: Json, view: View) -> bool:
    """Say whether the gang that a machine was bought for has all of its machines."""
    workload = holder_of(claim, view)
    found = purchase_of(workload) if workload is not None else None
    if workload is None or found is None:
        return False
    return is_holding(workload) and found[0] == "Ready"


def _update_holder(claim: Json, node: Json | None) -> Steps:
    """Update the holder on the node, if it changed since the node registered."""
    holder = (claim["metadata"].get("annotations") or {}).get(keys.HELD_FOR)
    own = (node["metadata"].get("annotations") or {}) if node is not None else {}
    if node is not None and own.get(keys.HELD_FOR, holder) != holder:
        yield Patch(Ref.to(node), _note({keys.HELD_FOR: holder}))


def _is_moving(claim: Json, now: float) -> bool:
    """Say whether the gang on a machine is about to leave it."""
    since = (claim["metadata"].get("annotations") or {}).get(keys.CONSOLIDATING, "")
    return bool(since) and now < seconds(since) + _MOVING_SECONDS


def _hard_stop(claim: Json, now: float) -> Steps:
    """End a machine that is too old although it is in use, where its pool says so."""
    old, end = expires_at(claim), ends_at(claim)
    if now >= end:
        yield Note(Ref.to(claim), "NodeExpired", "its terminationGracePeriod is over", "Warning")
        yield Delete(Ref.to(claim))
        return
    announced = end - _ANNOUNCED_SECONDS
    if announced <= now < end:
        yield Note(Ref.to(claim), "NodeExpires", f"it ends at {timestamp(end)}", "Warning")
    for at in (old, announced, end):
        if now < at < NEVER:
            yield Again(at)
            return


def _note(annotations: dict[str, str | None]) -> Json:
    return {"metadata": {"annotations": annotations}}


def _unprotected() -> Json:
    return _note({keys.DO_NOT_DISRUPT: None})


def _has_taint(node: Json, key: str) -> bool:
    return any(taint["key"] == key for taint in node["spec"].get("taints") or ())


def _tainted(node: Json, now: float, value: str = "") -> Json:
    """Close a node that is about to go; the time is for the second check."""
    taint = {"key": keys.DISRUPTED, "effect": "NoSchedule", "timeAdded": timestamp(now)}
    if value:
        taint["value"] = value
    others = [one for one in node["spec"].get("taints") or () if one["key"] != keys.DISRUPTED]
    return {"spec": {"taints": [*others, taint]}}


def _tainted_at(node: Json) -> float:
    """Return when a node was closed, as far as known."""
    for taint in node["spec"].get("taints") or ():
        if taint["key"] == keys.DISRUPTED:
            return seconds(taint.get("timeAdded") or "")
    return 0.0
