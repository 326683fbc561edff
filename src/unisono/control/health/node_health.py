"""Taints failed nodes: quarantine closes a node, suspicion makes it the last choice.

    unisono.dev/quarantine=REASON:NoSchedule       nothing new comes here, see `quarantine.py`
    unisono.dev/suspect=REASON:PreferNoSchedule    only if there is nowhere else: an error worth
                                                   watching, or jobs of two owners failed here
                                                   within an hour, or it holds gangs up

Pods on such a node run on. The engine reads taints, so it needs to know nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import find, seconds
from unisono.control.controller import own_key
from unisono.control.gangs.recovery import Record as Incident
from unisono.control.health.quarantine import RECORD, Record, Seen, follow
from unisono.control.health.stragglers import REASON, suspected_until, to_leave
from unisono.control.view import View
from unisono.kinds.device_faults import Fault, fault_of
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

SUSPECT = "unisono.dev/suspect"
BY_INCIDENT = "incident-node"
# So much of one sort of machine may be out at a time; one node always may.
_MOST_SHARE = 0.2
_SORT = "node.kubernetes.io/instance-type"
_SUSPICION_SECONDS = 3600.0
_MOST_FAILED_JOBS = 2


def failed_on(job_set: Json) -> Iterable[str]:
    """Index JobSets by the node on which they last failed by themselves."""
    incident = Incident.of(job_set["metadata"].get("annotations"))
    return (incident.node,) if incident is not None and incident.cause in ("app", "hang") else ()


class NodeHealth:
    """Watches nodes, and the jobs that failed on them."""

    name = "node-health"
    watches: Sequence[Kind] = (names.NODE, names.JOB_SET)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """A node, or the one that a JobSet failed on."""
        if kind == names.NODE:
            return (own_key(obj),)
        return (Key("", node) for node in failed_on(obj) if node)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Take one node a step further."""
        node = view.get(names.NODE, key.name)
        if node is None or "deletionTimestamp" in node["metadata"]:
            return
        fault = fault_of(node)
        leaving = to_leave(node, now)
        before = Record.of(node["metadata"].get("annotations"))
        seen = Seen(
            fault=fault,
            away_since=_away_since(node),
            is_tainted=_is_tainted(node),
            drags=leaving[0] if leaving is not None else "",
            may_be_closed=lambda: _may_be_closed(node, view),
        )
        outcome = follow(before, seen, now)
        suspicion, suspicion_ends = _suspicion(node, fault, view, now)
        changes = _changes(node, outcome.record, before, suspicion)
        if changes:
            yield Patch(Ref.to(node), changes)
        for reason, message in outcome.events:
            is_good = reason in ("NodeReleased", "NodeOnProbation", "QuarantineLifted")
            yield Note(Ref.to(node), reason, message, "Normal" if is_good else "Warning")
        left_at = leaving[1] if leaving is not None else None
        for at in (outcome.again_at, suspicion_ends, left_at):
            if at is not None:
                yield Again(at)


def _changes(node: Json, record: Record, before: Record, suspicion: str) -> Json:
    """Return the patch that makes taints, label and record say the same; empty if they do."""
    taints = (node.get("spec") or {}).get("taints") or []
    ours = (SUSPECT, *((names.QUARANTINE,) if record.reason or before.reason else ()))
    kept = [one for one in taints if one["key"] not in ours]
    if record.reason:
        taint = {"key": names.QUARANTINE, "value": record.reason, "effect": "NoSchedule"}
        kept.append(taint)
    if suspicion:
        kept.append({"key": SUSPECT, "value": suspicion, "effect": "PreferNoSchedule"})
    changes: Json = {}
    if _plain(kept) != _plain(taints):
        changes["spec"] = {"taints": kept or None}
    if record != before:
        text = record.text() if record != Record() else None
        label = record.reason or None
        changes["metadata"] = {"annotations": {RECORD: text}, "labels": {names.QUARANTINE: label}}
    return changes


def _plain(taints: Sequence[Json]) -> list[tuple[str, str, str]]:
    return sorted((one["key"], one.get("value", ""), one["effect"]) for one in taints)


def _is_tainted(node: Json) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(one["key"] == names.QUARANTINE for one in taints)


def _away_since(node: Json) -> float | None:
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    if ready is None or ready["status"] == "True":
        return None
    return seconds(ready.get("lastTransitionTime") or "")


def _may_be_closed(node: Json, view: View) -> bool:
    """Say whether one more node of its sort may be out: a bad rule must not empty a cluster."""
    sort = (node["metadata"].get("labels") or {}).get(_SORT, "")
    others = [
        one
        for one in view.all(names.NODE)
        if (one["metadata"].get("labels") or {}).get(_SORT, "") == sort
        and one["metadata"]["name"] != node["metadata"]["name"]
    ]
    out = sum(1 for one in others if _is_tainted(one))
    return out + 1 <= max(1, int((len(others) + 1) * _MOST_SHARE))


def _suspicion(node: Json, fault: Fault | None, view: View, now: float) -> tuple[str, float | None]:
    """Return why a node is suspect, empty if it is not, and when that has to be asked again."""
    if fault is not None and fault.severity == "suspect":
        return fault.reason, None
    times = [
        seconds(incident.at)
        for job_set in view.by(names.JOB_SET, BY_INCIDENT, node["metadata"]["name"])
        if (incident := Incident.of(job_set["metadata"].get("annotations"))) is not None
    ]
    recent = sorted(one for one in times if one > now - _SUSPICION_SECONDS)
    if len(recent) >= _MOST_FAILED_JOBS:
        return "JobsFailed", recent[-_MOST_FAILED_JOBS] + _SUSPICION_SECONDS
    slow_until = suspected_until(node, now)
    return ("", None) if slow_until is None else (REASON, slow_until)
