"""`status.conditions`: what was observed of an object, one entry per type."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.kinds.views.base import Number, Raw, Text, View, objects_in
from unisono.kinds.views.times import seconds_of


class Condition(View):
    """One observed fact, and since when it holds."""

    __slots__ = ()

    type = Text("type")
    status = Text("status")
    reason = Text("reason")
    message = Text("message")
    last_transition_time = Text("lastTransitionTime")
    observed_generation = Number("observedGeneration")

    @property
    def is_true(self) -> bool:
        """Whether it was observed to hold."""
        return self.raw.get("status") == "True"

    @property
    def is_false(self) -> bool:
        """Whether it was observed not to hold; unknown is neither."""
        return self.raw.get("status") == "False"

    @property
    def since(self) -> float:
        """When its status last changed, in seconds since 1970; 0 if that was not written down."""
        return seconds_of(self.last_transition_time)


class Conditions:
    """The conditions of an object by type; the first one, should there be several of a type."""

    __slots__ = ("raw",)

    def __init__(self, raw: object) -> None:
        """Look at a list of conditions; None is an empty one."""
        self.raw = raw

    def __iter__(self) -> Iterator[Condition]:
        """Every condition, in the order of the object."""
        return map(Condition, objects_in(self.raw, "conditions"))

    def get(self, kind: str) -> Condition | None:
        """Return the condition of a type, or None."""
        found = self._find(kind)
        return Condition(found) if found is not None else None

    def is_true(self, kind: str) -> bool:
        """Say whether a condition is there and holds."""
        found = self._find(kind)
        return found is not None and found.get("status") == "True"

    def is_false(self, kind: str) -> bool:
        """Say whether a condition is there and was observed not to hold."""
        found = self._find(kind)
        return found is not None and found.get("status") == "False"

    def since(self, kind: str, status: str = "True") -> float:
        """Return since when a condition has a status, in seconds since 1970; 0 if it has not."""
        found = self._find(kind)
        if found is None or found.get("status") != status:
            return 0.0
        return Condition(found).since

    def reason(self, kind: str) -> str:
        """Return the reason of a condition; empty without one."""
        found = self._find(kind)
        return Condition(found).reason if found is not None else ""

    def message(self, kind: str) -> str:
        """Return the message of a condition; empty without one."""
        found = self._find(kind)
        return Condition(found).message if found is not None else ""

    def _find(self, kind: str) -> Raw | None:
        found = self.raw
        if type(found) is list:  # the usual case, without a generator
            for one in found:
                if type(one) is not dict:
                    break
                if one.get("type") == kind:
                    return one
            else:
                return None
        for one in objects_in(found, "conditions"):
            if one.get("type") == kind:
                return one
        return None


class Status(View):
    """The status of any kind that has conditions."""

    __slots__ = ()

    observed_generation = Number("observedGeneration")

    @property
    def conditions(self) -> Conditions:
        """What was observed."""
        return Conditions(self.raw.get("conditions"))
