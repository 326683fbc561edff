"""A running gang that is told to give up pods: how that stands on its Workload (placement §8.7).

    told ──its job wants fewer pods──▶ surplus pods end ──all gone──▶ a smaller admission

What it keeps is in the message of a condition, so that whoever comes after a crash goes on from
there. The job's controller makes the job smaller, and `jobs/scaling.py` gives quota and places back
once the pods are gone; what the Workload asks for stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.conditions import find, with_condition
from unisono.engine.model.plan import Shrink
from unisono.engine.model.resources import MAX_COUNT
from unisono.kinds.digits import whole_number


def told(workload: Json) -> Mapping[str, int]:
    """Return how many pods of each set a gang keeps; nothing if nobody told it to give up any."""
    found = find((workload.get("status") or {}).get("conditions"), names.SHRINKING)
    if found is None or found["status"] != "True":
        return {}
    kept = (part.partition("=") for part in found["message"].partition(";")[0].split()[1:])
    counts = ((name, whole_number(count, MAX_COUNT)) for name, _, count in kept)
    return {name: count for name, count in counts if count is not None}


def telling(workload: Json, shrink: Shrink, by: str, *, now: float) -> Json:
    """Return the status patch that tells a gang to give up pods."""
    kept = " ".join(f"{one.name}={one.count}" for one in shrink.keeps.pod_sets)
    message = f"keeps {kept}; gives up the others to accommodate {by}"
    return {"status": {"conditions": _with(workload, "True", shrink.reason, message, now)}}


def done(workload: Json, pods: int, now: float) -> list[Json]:
    """Return the conditions of a gang that gave up what it was told to."""
    return _with(workload, "False", "GaveUpPods", f"goes on with {pods} pods", now)


def _with(
    workload: Json, status: Literal["True", "False"], reason: str, message: str, now: float
) -> list[Json]:
    conditions = (workload.get("status") or {}).get("conditions")
    return with_condition(conditions, names.SHRINKING, status, reason, message, now=now)
