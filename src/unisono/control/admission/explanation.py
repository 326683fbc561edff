"""An explanation as a Workload's condition has it: every fact with its numbers, as JSON.

The condition QuotaReserved says the same in one line for people. Programs, and `unisono why`, read
the facts here: they are where every client of every Kubernetes can see them, and they are written
together with that line, so the two never disagree.
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, is_true, with_condition
from unisono.engine.explain.messages import message_of, outlook, reason_of, sentence, stage_of
from unisono.engine.model.explanation import Explanation
from unisono.engine.model.resources import UNLIMITED
from unisono.kinds.core.topology import PREFERRED, REQUIRED, SLICE_LEVEL, UNCONSTRAINED

# Half of what a condition's message may have. Only a workload of many pod sets and flavors comes
# near it; then the facts at the end, which matter least, are left out and counted.
_MOST_CHARACTERS = 16_384


def facts_of(explanation: Explanation) -> list[Json]:
    """Return the facts, each with its sentence and what would change it."""
    return [
        {**_counted(msgspec.to_builtins(fact)), "says": sentence(fact), "changes": outlook(fact)}
        for fact in explanation.blockers
    ]


def _counted(value: Any) -> Any:
    """Return what a fact says with numbers that 64 bits hold: sums over a backlog may be larger."""
    match value:
        case bool():
            return value
        case int():
            return max(-UNLIMITED, min(value, UNLIMITED))
        case dict():
            return {key: _counted(one) for key, one in value.items()}
        case list() | tuple():
            return [_counted(one) for one in value]
        case _:
            return value


def written(explanation: Explanation) -> str:
    """Return an explanation as text; `left_off` says how many facts did not fit."""
    facts = facts_of(explanation)
    begin = f'{{"stage":{orjson.dumps(stage_of(explanation)).decode()},"facts":['
    best, size = 0, len(begin)
    texts: list[str] = []
    for kept, fact in enumerate(facts, 1):
        texts.append(orjson.dumps(fact).decode())
        size += len(texts[-1]) + (kept > 1)
        if size > _MOST_CHARACTERS:
            break  # the rest need not be written to know that it does not fit
        if size + len(_end(len(facts) - kept)) <= _MOST_CHARACTERS:
            best = kept
    return begin + ",".join(texts[:best]) + _end(len(facts) - best)


def _end(left_off: int) -> str:
    return f'],"left_off":{left_off}}}' if left_off else "]}"


def waiting_status(workload: Json, explanation: Explanation, *, now: float) -> Json | None:
    """Return the status patch that says why a workload waits; None if it says so already."""
    status = workload.get("status") or {}
    old = find(status.get("conditions"), "QuotaReserved")
    reason, message = _reason(workload, explanation), message_of(explanation)
    if old is not None and (old["status"], old["reason"], old["message"]) == (
        "False",
        reason,
        message,
    ):
        return None
    if is_true(status.get("conditions"), "QuotaReserved"):
        return None  # it has quota still, and is about to release it
    conditions = with_condition(
        status.get("conditions"),
        "QuotaReserved",
        "False",
        reason,
        message,
        now=now,
        generation=workload["metadata"].get("generation"),
    )
    stage = stage_of(explanation).capitalize()
    conditions = with_condition(
        conditions, names.EXPLANATION, "True", stage, written(explanation), now=now
    )
    return {"status": {"conditions": conditions}}


# The reason of a workload that has quota and fits on no nodes, unless it requests a topology:
# Kueue's TopologyPlacementFailed means that request alone.
UNSCHEDULABLE = "Unschedulable"
_TOPOLOGY = (REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_LEVEL)


def _reason(workload: Json, explanation: Explanation) -> str:
    reason = reason_of(explanation)
    if reason == "TopologyPlacementFailed" and not _requests_topology(workload):
        return UNSCHEDULABLE
    return reason


def _requests_topology(workload: Json) -> bool:
    for one in workload["spec"].get("podSets") or ():
        annotations = (one["template"].get("metadata") or {}).get("annotations") or {}
        if one.get("topologyRequest") or any(key in annotations for key in _TOPOLOGY):
            return True
    return False
