"""Sentences of `unisono why` about other workloads: holders of quota, those ahead, victims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unisono.apiserver.times import age
from unisono.cli.times import ahead as time_ahead
from unisono.kinds.scalar import instant_ms

if TYPE_CHECKING:
    from unisono.kube.form import Json

# The state of a job that another one depends on.
_STATES = {
    "waiting": "is pending",
    "deactivated": "is deactivated",
    "checked": "waits for admission checks",
    "buying": "waits for machines",
    "starting": "is starting",
    "running": "is running",
    "repairing": "waits for replacement nodes",
    "leaving": "is being evicted",
    "finished": "has finished",
}


def around_words(answer: Json, now: float) -> Iterator[str]:
    """Say what other workloads have to do with it."""
    use = answer.get("use")
    if use:
        unit = use["resource"]
        held = [f"{one['job']} holds {one['amount']}" for one in use["holders"]]
        held += [f"{use['more']} more hold the rest"] if use["more"] else []
        yield f"{use['of']} uses {use['used']} of {use['nominal']} {unit}: {', '.join(held)}"
    for one in answer.get("leaving") or ():
        name = one.get("job", one["workload"])
        if one["pods"]:
            pods = f"{one['pods']} pod{'s' if one['pods'] != 1 else ''}"
            limit = f" (gone by {_ahead(one['until'], now)})" if one["until"] else ""
            yield f"{pods} of {name} {_are(one['pods'])} terminating{limit}"
    on = answer.get("dependsOn")
    if on:
        yield f"{on['job']} {_STATES[on['state']]} (for {age(on['since'], now)})"


# Reasons that no ending workload removes.
_NEVER = ("Deactivated", "ExceedsMaxQuota", "Misconfigured")

# Why the start of a workload is unknown, by what it waits for.
_UNKNOWN = {
    "GangDoesNotFit": "running jobs state no time limit (unisono.dev/time-limit)",
    "CannotBuy": "the clouds do not say when machines are available again",
    "DependencyPending": "it starts after another job, which has no end time",
    "ArrayLimit": "it starts when enough tasks of its array have ended",
    "LimitReached": "it starts when enough jobs under the same limit have ended",
    "Quarantined": "the scheduler skips it until it changes",
    "Held": "it is held without a release time",
    "OnHold": "its queue is stopped without a time to resume",
    "QueueStopped": "its queue is stopped without a time to resume",
    "Gated": "another controller has to remove its scheduling gates",
}


def guess_words(answer: Json, now: float) -> str:
    """Say when a workload without an estimate may start, or why that is unknown."""
    if answer.get("reason") in _NEVER:
        return "never in this cluster as it is; see what would change it"
    leaving = [one["until"] for one in answer.get("leaving") or () if one["pods"]]
    if leaving and all(leaving):
        return f"starts by {_ahead(max(leaving), now)}, when the pods of its victims are gone"
    if answer["state"] == "checked":
        return "unknown: admission checks have no end time"
    position = answer.get("position") or {}
    behind = position.get("behindJob")
    if behind and str((position.get("ahead") or {}).get("message", "")).startswith("never"):
        ahead = position["ahead"]
        if ahead["strict"]:
            return f"never as things are: {behind} is ahead of it and can never start"
    root_cause = answer.get("rootCause")
    if root_cause is not None:
        return _by_root_cause(root_cause, behind, now)
    if answer.get("use", {}).get("areLimited"):
        return "not made yet; starts are estimated once a minute"
    if answer.get("use"):
        return "unknown: a job that holds the quota has no time limit (unisono.dev/time-limit)"
    for fact in answer.get("facts") or ():
        begin = fact.get("begin") if fact["fact"] == "NotBefore" else fact.get("until")
        if fact["fact"] in ("NotBefore", "OnHold") and isinstance(begin, int):
            return f"not before {time_ahead(begin / 1000, now)}"
        if fact["fact"] in _UNKNOWN:
            again = fact.get("retry_at")
            retried = f"; tried again at {time_ahead(again / 1000, now)}" if again else ""
            return f"unknown: {_UNKNOWN[fact['fact']]}{retried}"
    return f"unknown: {behind} is ahead of it and has no start time either" if behind else "unknown"


# Why the start of a workload is unknown, by what is in its way.
_UNKNOWN_BY_CAUSE = {
    "OtherPod": "a pod outside of all queues is in its way, and no time limit is known",
    "NodeOut": "it depends on nodes that are out",
    "Ahead": "another workload goes first, and has to start or leave",
    "Condition": "it depends on a change of the configuration",
}


def _by_root_cause(root_cause: Json, behind: str | None, now: float) -> str:
    """Say when what is in the way of a workload is gone at the latest, or why that is unknown."""
    if root_cause.get("startsBy"):
        when = _ahead(root_cause["startsBy"], now)
        return f"starts by {when} at the latest, if no other workload goes first"
    endless = [
        one["workload"]
        for one in root_cause["inTheWay"]
        if one.get("workload") and not one.get("ends")
    ]
    if endless:
        more = f" and {len(endless) - 1} more" if len(endless) > 1 else ""
        have = "have" if more else "has"
        return f"unknown: {endless[0]}{more} {have} no time limit (unisono.dev/time-limit)"
    kinds = {one.get("cause") for one in root_cause["inTheWay"]}
    if behind and kinds == {"Ahead"}:
        return f"unknown: {behind} is ahead of it and has no start time either"
    why = next((text for kind, text in _UNKNOWN_BY_CAUSE.items() if kind in kinds), "")
    return f"unknown: {why}" if why else "unknown"


def ahead_words(position: Json) -> Iterator[str]:
    """Say which workload is at the head of the queue, and why nothing passes it."""
    first, ahead = position["behindJob"], position["ahead"]
    place = f"position {position['place']} of {position['of']}"
    position_text = f"{place}: {first} (priority {ahead['priority']}) is at the head"
    if ahead["strict"]:
        yield f"{position_text}, and in a StrictFIFO queue no workload passes the head"
    else:
        yield f"{position_text}; this one is not evaluated yet"
    if ahead["message"]:
        yield f"{first} waits: {ahead['message']}"


def passing_words(position: Json) -> Iterator[str]:
    """Say what would let a workload pass the head of its queue."""
    first, ahead = position["behindJob"], position["ahead"]
    ways = [f"{first} starts or is deleted", f"a priority above {ahead['priority']}"]
    if ahead["strict"]:
        ways.append("queueingStrategy BestEffortFIFO, which lets smaller workloads pass")
    yield ", ".join(ways[:-1]) + f", or {ways[-1]}"


def repair_words(answer: Json, now: float) -> str:
    """Say what a gang that lost nodes needs, and what happens without it."""
    lost = answer["lost"]
    pods = f"{lost['pods']} pod{'s' if lost['pods'] != 1 else ''}"
    nodes = " or ".join(lost["nodes"])
    text = f"room for {pods}: a node that joins or becomes free, or {nodes} coming back"
    if answer.get("keptUntil"):
        text += f"; otherwise the whole job is requeued at {_ahead(answer['keptUntil'], now)}"
    return text


def _ahead(moment: str, now: float) -> str:
    return time_ahead(instant_ms(moment) / 1000, now)


def _are(count: int) -> str:
    return "are" if count != 1 else "is"
