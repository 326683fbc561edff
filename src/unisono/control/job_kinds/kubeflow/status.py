"""What a job of kubeflow's says of itself.

The last condition of the list is what `kubectl get` shows, so a state that comes true is put last,
and those that it excludes are taken out or said to be false.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.control.actions import Json
from unisono.control.conditions import find, timestamp
from unisono.control.job_kinds.kubeflow.replicas import Replicas, selector_of

ENDS = ("Succeeded", "Failed")
_EXCLUDES = {
    "Running": ("Restarting",),
    "Restarting": ("Running",),
    "Suspended": ("Running", "Restarting"),
}


def with_state(
    conditions: Sequence[Json] | None, state: str, reason: str, message: str, now: float
) -> list[Json]:
    """Return conditions in which a state is true and the last; unchanged if it was so before."""
    old = find(conditions, state)
    if old is not None and old["status"] == "True" and (conditions or ())[-1] is old:
        return list(conditions or ())
    gone = (state, *_EXCLUDES.get(state, ()))
    kept = [one for one in conditions or () if one["type"] not in gone]
    over = (
        ("Running", "Restarting") if state in ENDS else ("Suspended",) if state == "Running" else ()
    )
    kept = [_false(one, now) if one["type"] in over else one for one in kept]
    return [*kept, _condition(state, "True", reason, message, now)]


def _false(condition: Json, now: float) -> Json:
    if condition["status"] == "False":
        return condition
    return {**condition, "status": "False", "lastTransitionTime": timestamp(now)}


def _condition(state: str, status: str, reason: str, message: str, now: float) -> Json:
    return {
        "type": state,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }


def counts_of(job: Json, replicas: Sequence[Replicas]) -> Json:
    """Return how many pods of each type are in which phase, and of which attempt."""
    return {
        one.type: {
            "active": one.in_phase("Pending", "Running"),
            "succeeded": one.in_phase("Succeeded"),
            "failed": one.in_phase("Failed"),
            "selector": selector_of(job, one),
        }
        for one in replicas
    }
