"""PriorityClasses: a name for a number that never changes."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.causes import forbidden, not_supported
from unisono.apiserver.builtin.priorities import CLASSES, PREEMPTS, SYSTEM_CLASSES
from unisono.apiserver.builtin.reach import Json, at, fill_text
from unisono.apiserver.errors import Cause
from unisono.apiserver.errors import forbidden as refuse
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.overriding import override

_HIGHEST = 1_000_000_000  # what is above belongs to the system itself
_POLICIES = ("Never", PREEMPTS)


class PriorityClassStrategy(Strategy):
    """A PriorityClass."""

    @override
    def default(self, obj: Json) -> None:
        """Fill in that its pods may make others leave, and 0 for a number that was left out."""
        fill_text(obj, preemptionPolicy=PREEMPTS)
        obj.setdefault("value", 0)

    @override
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """Yield names and numbers that belong to the system, and changes of the number."""
        name, value = str(at(obj, "metadata").get("name")), obj.get("value")
        if name.startswith("system-"):
            if SYSTEM_CLASSES.get(name) != value:
                why = "priority class names with 'system-' prefix are reserved for system use only"
                yield forbidden("metadata.name", why)
        elif isinstance(value, int) and value > _HIGHEST:
            yield forbidden(
                "value", f"maximum allowed value of a user defined priority is {_HIGHEST}"
            )
        if obj.get("preemptionPolicy") not in _POLICIES:
            yield not_supported("preemptionPolicy", obj.get("preemptionPolicy"), _POLICIES)
        if old is not None:
            for field in ("value", "preemptionPolicy"):
                if obj.get(field) != old.get(field):
                    yield forbidden(field, "may not be changed in an update.")
        if obj.get("globalDefault") is True:
            _refuse_second_default(name, around)

    @override
    def generation_moves(self, obj: Json, old: Json) -> bool:
        """Nothing of it is ever acted upon anew."""
        return False


def _refuse_second_default(name: str, around: Surroundings) -> None:
    for other in around.every(CLASSES):
        known = other["metadata"]["name"]
        if other.get("globalDefault") is True and known != name:
            why = f"PriorityClass {known} is already marked as default; only one can be"
            raise refuse("priorityclasses", name, why, group="scheduling.k8s.io")
