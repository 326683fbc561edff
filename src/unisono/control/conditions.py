"""Conditions: what is true of an object, since when, and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from unisono.control.actions import Json


def find(conditions: Sequence[Json] | None, kind: str) -> Json | None:
    """Return a condition by its type."""
    for one in conditions or ():
        if one["type"] == kind:
            return one
    return None


def is_true(conditions: Sequence[Json] | None, kind: str) -> bool:
    """Say whether a condition is there and holds."""
    found = find(conditions, kind)
    return found is not None and found["status"] == "True"


def with_condition(
    conditions: Sequence[Json] | None,
    kind: str,
    status: Literal["True", "False"],
    reason: str,
    message: str,
    *,
    now: float,
    generation: int | None = None,
) -> list[Json]:
    """Return the list with one condition set; its time moves only when its status does."""
    old = find(conditions, kind)
    new: Json = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": old["lastTransitionTime"]
        if old is not None and old["status"] == status
        else timestamp(now),
    }
    if generation is not None:
        new["observedGeneration"] = generation
    if old is None:
        return [*(conditions or ()), new]
    return [new if one is old else one for one in conditions or ()]


def timestamp(now: float) -> str:
    """Write a time as statuses have it.

    >>> timestamp(60.9)
    '1970-01-01T00:01:00Z'
    """
    return _written(int(now))


# Few different times are written and read at once, each of them often.
@lru_cache(maxsize=256)
def _written(now: int) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=256)
def seconds(text: str) -> float:
    """Read a time of a status; 0 if it is not one."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
