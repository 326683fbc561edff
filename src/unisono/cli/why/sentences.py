"""Sentences of `unisono why` about others: who holds the quota, who is ahead, who is leaving."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.apiserver.tables.age import age
from unisono.engine.explain.formatting import format_duration
from unisono.kinds.scalar import instant_ms

Json = dict[str, Any]

# How a job stands that another one depends on.
_STANDING = {
    "waiting": "waits itself",
    "deactivated": "is deactivated",
    "checked": "waits for admission checks",
    "buying": "waits for machines",
    "starting": "starts",
    "running": "runs",
    "repairing": "lost nodes and waits for others",
    "leaving": "is stopping",
    "finished": "is over",
}


def around_words(answer: Json, now: float) -> Iterator[str]:
    """Say what there is to say about others."""
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
            yield f"{pods} of {name} {_are(one['pods'])} still stopping{_latest(one['until'], now)}"
    on = answer.get("dependsOn")
    if on:
        yield f"{on['job']} {_STANDING[on['state']]}, since {on['since']} ({age(on['since'], now)})"


# Reasons with which nothing starts, whoever ends.
_NEVER = ("Deactivated", "ExceedsMaxQuota", "Misconfigured")

# Why nobody can say when a workload starts, by what it waits for.
_UNKNOWN = {
    "GangDoesNotFit": "time limits of those who run would tell (unisono.dev/time-limit)",
    "CannotBuy": "nobody knows when there are machines again",
    "DependencyPending": "it starts after another job, and nobody knows when that is",
    "ArrayLimit": "it starts when enough others of its array have ended",
    "LimitReached": "it starts when enough others have ended that count for the same limit",
    "Quarantined": "the scheduler goes on without it until it changes",
    "Held": "nobody says when it will be released",
    "OnHold": "nobody says when its queue goes on",
    "QueueStopped": "nobody says when its queue goes on",
    "Gated": "somebody else has to lift its gates",
}


def guess_words(answer: Json, now: float) -> str:
    """Say when a workload without an estimate may start, or why nobody knows."""
    if answer.get("reason") in _NEVER:
        return "never, as things are: see what would change it"
    leaving = [one["until"] for one in answer.get("leaving") or () if one["pods"]]
    if leaving and all(leaving):
        when = _latest(max(leaving), now, "by")
        return f"starts{when} at the latest, when their pods are gone"
    if answer.get("use"):  # it waits for the end of somebody who does not say when that is
        return "not known: those who run there give no time limit (unisono.dev/time-limit)"
    for fact in answer.get("facts") or ():
        if fact["fact"] in _UNKNOWN:
            return f"not known: {_UNKNOWN[fact['fact']]}"
    behind = (answer.get("position") or {}).get("behind")
    return f"not known: {behind} goes first, and has no date either" if behind else "not known"


def ahead_words(position: Json) -> Iterator[str]:
    """Say who is first in line, and why that keeps others from being looked at."""
    first, ahead = position["behind"], position["ahead"]
    place = f"number {position['place']} of {position['of']}"
    told = f"{place}: {first} (priority {ahead['priority']}) is first"
    if ahead["strict"]:
        yield f"{told}, and the queue is StrictFIFO: nobody may pass it"
    else:
        yield f"{told}; this one was not examined yet"
    if ahead["message"]:
        yield f"{first} waits: {ahead['message']}"


def passing_words(position: Json) -> Iterator[str]:
    """Say what would let a workload pass those ahead of it."""
    first, ahead = position["behind"], position["ahead"]
    ways = [f"{first} starts or leaves", f"a priority above {ahead['priority']}"]
    if ahead["strict"]:
        ways.append("queueingStrategy BestEffortFIFO, with which smaller ones may pass")
    yield ", ".join(ways[:-1]) + f", or {ways[-1]}"


def repair_words(answer: Json, now: float) -> str:
    """Say what a gang that lost nodes needs, and what happens if it does not come."""
    lost = answer["lost"]
    pods = f"{lost['pods']} pod{'s' if lost['pods'] != 1 else ''}"
    text = (
        f"room for {pods}: a node that joins or becomes free, or {' or '.join(lost['nodes'])} back"
    )
    if answer.get("keptUntil"):
        text += f"; else all of it queues again{_latest(answer['keptUntil'], now, word='at')}"
    return text


def _latest(moment: str, now: float, word: str = "until") -> str:
    if not moment:
        return ""
    left = instant_ms(moment) - round(now * 1000)
    soon = f" (in {format_duration(left)})" if left > 0 else ""
    return f" {word} {moment}{soon}" + (" at the latest" if word == "until" else "")


def _are(count: int) -> str:
    return "are" if count != 1 else "is"
