"""Why a job waits, in Slurm's words: the first fact of its Workload's explanation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find

_WORD = re.compile(r"[A-Z][A-Za-z]+")

# Facts that have one word of Slurm.
_WORDS: Mapping[str, str] = {
    "ArrayLimit": "JobArrayTaskLimit",
    "BehindInQueue": "Priority",
    "ClaimedThisCycle": "Resources",
    "Deactivated": "JobHeldAdmin",
    "DeadlineMissed": "DeadLine",
    "DependencyNeverSatisfied": "DependencyNeverSatisfied",
    "DependencyPending": "Dependency",
    "ExceedsMaximum": "PartitionNodeLimit",
    "FlavorMismatch": "ReqNodeNotAvail",
    "GangDoesNotFit": "Resources",
    "Gated": "JobHeldAdmin",
    "Misconfigured": "BadConstraints",
    "NamespaceNotSelected": "AccountNotAllowed",
    "NotBefore": "BeginTime",
    "OnHold": "JobHeldAdmin",
    "Quarantined": "BadConstraints",
    "QueueInactive": "PartitionInactive",
    "QueueMissing": "PartitionInactive",
    "QueueStopped": "PartitionDown",
    "QuotaExhausted": "Resources",
    "Reserved": "Reservation",
    "ResourceNotCovered": "ReqNodeNotAvail",
    "WaitingForPods": "Resources",
    "WaitingForVictims": "Resources",
    "WouldDelay": "Priority",
}


_TIMES = ("Planned", "Expected")
# Facts about who has what: only the first in line waits for resources, the others for their turn.
_SHORT = ("ClaimedThisCycle", "GangDoesNotFit", "QuotaExhausted")


class Why(NamedTuple):
    """Why a job waits: the word, the sentence, when it is to start (0: nobody says), and where."""

    word: str
    message: str = ""
    start: float = 0.0
    nodes: tuple[str, ...] = ()


def reason_of(workload: Json | None) -> Why:
    """Return why a job waits, given its Workload."""
    if workload is None:
        return Why("None")
    conditions = (workload.get("status") or {}).get("conditions") or []
    quota = find(conditions, "QuotaReserved")
    message = str(quota.get("message", "")) if quota is not None else ""
    facts = _facts(find(conditions, names.EXPLANATION))
    timed = next((one for one in facts if one.get("fact") in _TIMES), {})
    start = float(timed.get("start") or 0) / 1000
    nodes = tuple(map(str, timed.get("nodes") or ()))
    first = next((one for one in facts if one.get("fact") not in _TIMES), None)
    if first is None:
        return Why("Priority" if facts else "None", message, start, nodes)
    return Why(_word(first, int(timed.get("position") or 1)), message, start, nodes)


def _word(fact: Json, position: int) -> str:
    name, code = str(fact.get("fact")), str(fact.get("code") or "")
    if name == "Held":
        return "JobHeldAdmin" if fact.get("by") == "admin" else "JobHeldUser"
    if code and _WORD.fullmatch(code):
        return code
    if name in _SHORT and position > 1:
        return "Priority"
    return _WORDS.get(name, "Resources")


def _facts(condition: Json | None) -> list[Json]:
    """Return the facts that a condition carries as JSON in its message."""
    if condition is None:
        return []
    try:
        found = json.loads(condition.get("message") or "null")
    except ValueError:
        return []
    facts = found.get("facts") if isinstance(found, dict) else None
    return [one for one in facts or () if isinstance(one, dict)]
