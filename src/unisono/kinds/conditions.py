"""`status.conditions`: what was observed of an object, one entry per type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from unisono.engine.model.names import Instant
from unisono.kinds.decode import Int64, Schema
from unisono.kinds.scalar import Timestamp


class Condition(Schema, frozen=True, kw_only=True):
    """One observed fact, and since when it holds."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None
    observed_generation: Int64 = 0

    @property
    def is_true(self) -> bool:
        """Whether it was observed to hold."""
        return self.status == "True"

    @property
    def since(self) -> Instant | None:
        """The instant of its last change, if it was written down."""
        return self.last_transition_time.instant if self.last_transition_time else None


def condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """Return the condition of a type; the last one, should there be several."""
    found = None
    for candidate in conditions:
        if candidate.type == type_:
            found = candidate
    return found


class TimedCondition(Condition, frozen=True, kw_only=True):
    """A condition of a pod, a node, a job: the field names of all of them together."""

    last_probe_time: Timestamp | None = None
    last_update_time: Timestamp | None = None
    last_heartbeat_time: Timestamp | None = None


def holds(conditions: Iterable[Condition], *types: str) -> bool:
    """Say whether a condition of one of these types is true."""
    return any(one.type in types and one.is_true for one in conditions)
