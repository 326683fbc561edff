"""Conditions as the older API groups write them, with further times beside the common fields."""

from __future__ import annotations

from collections.abc import Iterable

from unisono.kinds.conditions import Condition
from unisono.kinds.scalar import Timestamp


class TimedCondition(Condition, frozen=True, kw_only=True):
    """A condition of a pod, a node, a job: the field names of all of them together."""

    last_probe_time: Timestamp | None = None
    last_update_time: Timestamp | None = None
    last_heartbeat_time: Timestamp | None = None


def holds(conditions: Iterable[Condition], *types: str) -> bool:
    """Say whether a condition of one of these types is true."""
    return any(one.type in types and one.is_true for one in conditions)
