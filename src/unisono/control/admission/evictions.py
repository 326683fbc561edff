"""What every eviction writes, with any author: Evicted, its count, and checks that begin anew.

    decided by                              reason of Evicted
    the engine                              Preempted, PodsReadyTimeout, AdmissionCheck, …
    the engine, for good                    Deactivated, DeactivatedDueTo…
    gangs that lost a node                  NodeFailures
    purchases, consolidation, `scontrol`    their own

It is written while the workload still holds its quota, and stays true after the controller of its
job has given that back: a job of a kind that we do not know has a controller that knows nothing of
checks and retries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from unisono.control.actions import Json
from unisono.control.admission import kueue_messages
from unisono.control.conditions import find, seconds, timestamp, with_condition

# Why a workload is deactivated, in Kueue's words, where that is not the reason of the eviction.
_CAUSES: Mapping[str, str] = {"PodsReadyTimeout": "RequeuingLimitExceeded"}
_DEACTIVATED = "Deactivated"


def deactivated(reason: str) -> str:
    """Return the reason of Evicted of a workload that is evicted for good.

    >>> deactivated("PodsReadyTimeout"), deactivated("Deactivated")
    ('DeactivatedDueToRequeuingLimitExceeded', 'Deactivated')
    """
    if reason.startswith(_DEACTIVATED):
        return reason
    return f"{_DEACTIVATED}DueTo{_CAUSES.get(reason, reason)}"


def evicted_for(workload: Json, reason: str, message: str, *, now: float) -> Json:
    """Return the status changes of an eviction."""
    status = workload.get("status") or {}
    conditions = with_condition(
        status.get("conditions"),
        "Evicted",
        "True",
        reason,
        message,
        now=now,
        generation=workload["metadata"].get("generation"),
    )
    return {
        "conditions": conditions,
        "schedulingStats": with_eviction(status, reason, _cause(reason, status)),
        **checks_after(status, now),
    }


def with_eviction(status: Json, reason: str, cause: str = "") -> Json:
    """Return the history of a workload with one eviction more; `cause` is what led to it.

    One for good is counted as `Deactivated`, and what it was due to is its cause.
    """
    if not cause and reason.startswith(f"{_DEACTIVATED}DueTo"):
        reason, cause = _DEACTIVATED, reason.removeprefix(f"{_DEACTIVATED}DueTo")
    old = (status.get("schedulingStats") or {}).get("evictions") or []
    counts = {(one["reason"], one.get("underlyingCause", "")): one["count"] for one in old}
    counts[reason, cause] = counts.get((reason, cause), 0) + 1
    return {
        "evictions": [
            {"reason": name, "underlyingCause": because, "count": count}
            for (name, because), count in counts.items()
        ]
    }


def _cause(reason: str, status: Json) -> str:
    """Return what Kueue names as the cause: pods that never were ready, or are not any more."""
    if reason != "PodsReadyTimeout":
        return ""
    ready = find(status.get("conditions"), "PodsReady") or {}
    return "WaitForRecovery" if ready.get("reason") == "WaitForRecovery" else "WaitForStart"


def checks_after(status: Json, now: float) -> Json:
    """Return what an eviction changes about checks: all wait again, and a retry is counted.

    The longest pause that a check asked for is when the workload may queue again, unless something
    else asked for a longer one.
    """
    states = status.get("admissionChecks") or []
    reset = [_reset(one, now) for one in states]
    changes: Json = {} if reset == states else {"admissionChecks": reset}
    pause = max(
        (one.get("requeueAfterSeconds") or 0 for one in states if one["state"] == "Retry"),
        default=0,
    )
    if pause:
        before = (status.get("requeueState") or {}).get("requeueAt")
        at = max(math.ceil(now + pause), seconds(before) if before else 0.0)
        changes["requeueState"] = {"requeueAt": timestamp(at)}
    return changes


def _reset(state: Json, now: float) -> Json:
    if state["state"] == "Pending":
        return state
    made: Json = {
        "name": state["name"],
        "state": "Pending",
        "message": kueue_messages.reset_check(state["state"]),
        "lastTransitionTime": timestamp(now),
    }
    if state.get("requeueAfterSeconds") is not None:
        made["requeueAfterSeconds"] = state["requeueAfterSeconds"]
    if state["state"] == "Retry":
        made["retryCount"] = (state.get("retryCount") or 0) + 1
    return made
