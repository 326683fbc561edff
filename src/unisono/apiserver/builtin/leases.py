"""Leases: who leads at the moment, and until when."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.causes import invalid
from unisono.apiserver.builtin.reach import Json, at
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.apiserver.times import micro_timestamp, seconds
from unisono.kinds.overriding import override


class LeaseStrategy(Strategy):
    """A Lease."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Write times with microseconds, as everybody who compares them expects."""
        to_micros(at(obj, "spec"), "acquireTime", "renewTime")

    @override
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """Yield durations that make no sense."""
        spec = at(obj, "spec")
        duration = spec.get("leaseDurationSeconds")
        if isinstance(duration, int) and duration <= 0:
            yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
        transitions = spec.get("leaseTransitions")
        if isinstance(transitions, int) and transitions < 0:
            yield invalid("spec.leaseTransitions", transitions, "must be greater or equal than 0")


def to_micros(obj: Json, *fields: str) -> None:
    """Write times with six digits behind the point; what is no time is left to the schema."""
    for field in fields:
        text = obj.get(field)
        moment = seconds(text) if isinstance(text, str) else None
        if moment is not None:
            obj[field] = micro_timestamp(moment)
