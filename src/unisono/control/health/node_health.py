"""Taints failed nodes: quarantine closes a node, suspicion makes it the last choice.

    unisono.dev/quarantine=REASON:NoSchedule       nothing new comes here, see below
    unisono.dev/suspect=REASON:PreferNoSchedule    only if there is nowhere else: an error worth
                                                   watching, or jobs of two owners failed here
                                                   within an hour, or it holds gangs up

Pods on such a node run on. The engine reads taints, so it needs to know nothing of this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from unisono.control import names
from unisono.control.actions import Again, Json, Note, Patch, Ref, Steps
from unisono.control.conditions import seconds, timestamp
from unisono.control.controller import own_key
from unisono.control.gangs.recovery import Record as Incident
from unisono.control.health.stragglers import REASON, suspected_until, to_leave
from unisono.control.view import View
from unisono.kinds.device_faults import HEALTH, Fault, fault_of, most_closed
from unisono.kinds.json_texts import read_json
from unisono.kinds.views import Node, Object, ObjectMeta, Pod
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

SUSPECT = "unisono.dev/suspect"
BY_INCIDENT = "incident-node"
_MOST_PODS_NAMED = 5
_MACHINE_TYPE = "node.kubernetes.io/instance-type"
_SUSPICION_SECONDS = 3600.0
_MOST_FAILED_JOBS = 2


def failed_on(job_set: Json) -> Iterable[str]:
    """Index JobSets by the node on which they last failed by themselves."""
    incident = Incident.of(Object(job_set).metadata.annotations)
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
        if node is None or Object(node).is_terminating:
            return
        fault = fault_of(node)
        leaving = to_leave(node, now)
        before = Record.of(Object(node).metadata.annotations)
        seen = Seen(
            fault=fault,
            away_since=_away_since(node),
            is_tainted=_is_tainted(node),
            drags=leaving[0] if leaving is not None else "",
            may_be_closed=lambda: _may_be_closed(node, view),
        )
        outcome = follow(before, seen, now)
        suspicion, suspicion_ends = _suspicion(node, fault, outcome.record, view, now)
        changes = _changes(node, outcome.record, before, suspicion)
        if changes:
            yield Patch(Ref.to(node), changes)
        for reason, message in outcome.events:
            is_good = reason in ("NodeReleased", "NodeOnProbation", "QuarantineLifted")
            if reason in ("NodeQuarantined", LIMIT_REACHED):
                message += _running_on(key.name, view)
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
        changes["metadata"] = {"annotations": {_RECORD: text}, "labels": {names.QUARANTINE: label}}
    return changes


def _plain(taints: Sequence[Json]) -> list[tuple[str, str, str]]:
    return sorted((one["key"], one.get("value", ""), one["effect"]) for one in taints)


def _is_tainted(node: Json) -> bool:
    return any(one.key == names.QUARANTINE for one in Node(node).spec.taints)


def _away_since(node: Json) -> float | None:
    ready = Node(node).conditions.get("Ready")
    return None if ready is None or ready.is_true else ready.since


def _may_be_closed(node: Json, view: View) -> bool:
    """Say whether one more node of its type may be out: a bad rule must not empty a cluster."""
    own = Object(node).metadata
    others = [
        one
        for one in view.all(names.NODE)
        if _machine_type(metadata := Object(one).metadata) == _machine_type(own)
        and metadata.name != own.name
    ]
    out = sum(1 for one in others if _is_tainted(one))
    return out + 1 <= most_closed(len(others) + 1)


def _running_on(node: str, view: View) -> str:
    """Name the pods that are on a broken node, as the end of a sentence."""
    pods = [pod for pod in map(Pod, view.by(names.POD, "node", node)) if not pod.is_over]
    found = sorted(f"{pod.namespace}/{pod.name}" for pod in pods)
    if not found:
        return ""
    more = len(found) - _MOST_PODS_NAMED
    named = ", ".join(found[:_MOST_PODS_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"; on it: {named}"


def _machine_type(metadata: ObjectMeta) -> str:
    return metadata.labels.get(_MACHINE_TYPE, "")


def _suspicion(
    node: Json, fault: Fault | None, record: Record, view: View, now: float
) -> tuple[str, float | None]:
    """Return why a node is suspect, empty if it is not, and when that has to be asked again."""
    if record.over_limit:
        return record.doubted, None  # open, but the last choice
    if fault is not None and fault.severity == "suspect":
        return fault.reason, None
    times = [
        seconds(incident.at)
        for job_set in view.by(names.JOB_SET, BY_INCIDENT, Object(node).name)
        if (incident := Incident.of(Object(job_set).metadata.annotations)) is not None
    ]
    recent = sorted(one for one in times if one > now - _SUSPICION_SECONDS)
    if len(recent) >= _MOST_FAILED_JOBS:
        return "JobsFailed", recent[-_MOST_FAILED_JOBS] + _SUSPICION_SECONDS
    slow_until = suspected_until(node, now)
    return ("", None) if slow_until is None else (REASON, slow_until)


# ---- quarantine ----------------------------------------------------------------------------------
#
# A record on the node, and what follows from it.
#
#     well ──a device is broken──▶ quarantine ──mended──▶ ten minutes more ──▶ well
#     well ──lost────────────────▶ quarantine ──back────▶ 1, 10, 100 … minutes more ──▶ well
#
# Each quarantine is a strike, and strikes count for a day. With the second one for a broken device
# only a person lets the node back in, by taking the taint off; that forgets all strikes, and the
# fault that is still reported is believed no more until it is gone.
#
# Pure: the record and what is seen now go in, the new record and its events come out.

_RECORD = HEALTH
LIMIT_REACHED = "QuarantineLimitReached"
_LIMIT_SECONDS = 60.0  # how often it is asked again whether the limit leaves room
# Not ready for so long, a node has lost its pods; a shorter absence is no reason to worry.
_LOST_SECONDS = 10.0
LOST = "NodeLost"
NEVER = "never"
_STRIKES_SECONDS = 86_400.0
_MOST_STRIKES = 2
_PROBATION_SECONDS = 600.0
_FIRST_ABSENCE_SECONDS = 60.0
_ABSENCE_GROWS = 10.0


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of a node, as in its annotation."""

    reason: str = ""  # why it is in quarantine; empty: it is not
    since: str = ""
    until: str = ""  # empty: as long as it is broken or away; `never`: until a person lifts it
    doubted: str = ""  # a fault that is not acted on: a person said so, or too many nodes are out
    over_limit: str = ""  # since when it is the latter
    strikes: tuple[str, ...] = ()

    def text(self) -> str:
        """Write it as an annotation."""
        return json.dumps({key: value for key, value in asdict(self).items() if value})

    @staticmethod
    def of(annotations: Mapping[str, str] | None) -> Record:
        """Read it; an empty one if there is none that can be read."""
        try:
            read = read_json((annotations or {}).get(_RECORD) or "{}")
            keys = ("reason", "since", "until", "doubted", "over_limit")
            texts = {key: str(read.get(key) or "") for key in keys}
            return Record(**texts, strikes=tuple(str(one) for one in read.get("strikes") or ()))
        except (ValueError, AttributeError, TypeError):
            return Record()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """How a node is now."""

    fault: Fault | None
    away_since: float | None  # since when it is not ready
    is_tainted: bool
    drags: str = ""  # the gang that it holds up and that is to leave it; empty: none
    may_be_closed: Callable[[], bool]  # not too many others of its type are out already


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What becomes of a record, its events, and when to look again."""

    record: Record
    events: tuple[tuple[str, str], ...] = ()
    again_at: float | None = None


def follow(record: Record, seen: Seen, now: float) -> _Outcome:
    """Take a record a step further."""
    record = replace(record, strikes=_lately(record.strikes, now))
    wrong = _wrong(seen, now)
    if record.doubted and record.doubted not in wrong:
        record = replace(record, doubted="", over_limit="")
    if record.over_limit and seen.may_be_closed():
        record = replace(record, doubted="", over_limit="")
    if record.reason and not seen.is_tainted:
        message = "the taint was removed by hand: earlier failures are forgotten"
        return _Outcome(Record(doubted=next(iter(wrong), "")), (("QuarantineLifted", message),))
    if record.reason:
        return _in_time(record, is_over=record.reason not in wrong, now=now)
    for reason, message in wrong.items():
        if reason != record.doubted:
            return _close(record, reason, message, seen, now)
    at = now + _LIMIT_SECONDS if record.over_limit else None
    return _Outcome(record, again_at=_lost_at(seen, now) or at)


def _wrong(seen: Seen, now: float) -> dict[str, str]:
    """Return what is wrong with a node now, and how to say it."""
    found: dict[str, str] = {}
    if seen.fault is not None and seen.fault.severity == "broken":
        found[seen.fault.reason] = seen.fault.message
    if seen.drags:
        found[REASON] = f"slows {seen.drags} down, which moves to other nodes"
    if seen.away_since is not None and _lost_at(seen, now) is None:
        found[LOST] = "does not respond"
    return found


def _lost_at(seen: Seen, now: float) -> float | None:
    """Return when a node that is away will count as lost; None if it does, or is there."""
    at = None if seen.away_since is None else seen.away_since + _LOST_SECONDS
    return at if at is not None and at > now else None


def _close(record: Record, reason: str, message: str, seen: Seen, now: float) -> _Outcome:
    """Put a node in quarantine."""
    if not seen.may_be_closed():
        kept = replace(record, doubted=reason, over_limit=timestamp(now))
        return _Outcome(kept, (_too_many(reason, message),), now + _LIMIT_SECONDS)
    strikes = (*record.strikes, timestamp(now))
    is_last = reason != LOST and len(strikes) >= _MOST_STRIKES
    until = NEVER if is_last else ""
    record = replace(record, reason=reason, since=timestamp(now), until=until, strikes=strikes)
    lifted = "until the taint is removed by hand" if is_last else "until it recovers"
    event = f"{message}; it gets no pods {lifted}"
    return _Outcome(record, (("NodeQuarantined", event),), _lost_at(seen, now))


def _in_time(record: Record, *, is_over: bool, now: float) -> _Outcome:
    """Let time pass: a node that is well again is on probation, and then as good as any."""
    if record.until == NEVER:
        return _Outcome(record)
    if not is_over:
        if not record.until or record.reason == LOST:
            return _Outcome(replace(record, until=""))
        # Broken again before its time was up.
        strikes = (*record.strikes, timestamp(now))
        return _Outcome(replace(record, until=NEVER, strikes=strikes))
    if not record.until:
        wait = _probation(record)
        message = f"has recovered; it gets no pods for another {_spoken(wait)}"
        changed = replace(record, until=timestamp(now + wait))
        return _Outcome(changed, (("NodeOnProbation", message),), now + wait)
    if now < seconds(record.until):
        return _Outcome(record, again_at=seconds(record.until))
    changed = replace(record, reason="", since="", until="")
    return _Outcome(changed, (("NodeReleased", "gets pods again"),), now)


def _probation(record: Record) -> float:
    """Return how long a node has to stay well: each time longer if it comes and goes."""
    if record.reason != LOST:
        return _PROBATION_SECONDS
    times = max(1, len(record.strikes))
    return min(_FIRST_ABSENCE_SECONDS * _ABSENCE_GROWS ** (times - 1), _STRIKES_SECONDS)


def _lately(strikes: tuple[str, ...], now: float) -> tuple[str, ...]:
    return tuple(one for one in strikes if seconds(one) > now - _STRIKES_SECONDS)


def _too_many(reason: str, message: str) -> tuple[str, str]:
    said = message if reason in message else f"{reason}: {message}"
    return (
        LIMIT_REACHED,
        f"{said}; not quarantined, as too many nodes of its instance type are: it is used last,"
        " but still gets pods; check the node",
    )


def _spoken(length: float) -> str:
    minutes = int(length // 60)
    return f"{minutes} minute{'s' if minutes != 1 else ''}"
