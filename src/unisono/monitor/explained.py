"""Why a workload waits, as its conditions tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_EXPLANATION = "unisono.dev/Explanation"
_TIMES = ("Planned", "Expected")
# Reasons that do not go away by waiting. A deactivated workload is left out: that is on purpose.
_NEVER = ("ExceedsMaxQuota", "Misconfigured")


class Explained(NamedTuple):
    """What refuses it, in words and as a stage; what would change that; when it starts."""

    stage: str = ""
    says: str = ""
    changes: tuple[str, ...] = ()
    start: float = 0.0  # at the latest, or as far as anybody knows; 0: unknown
    is_promised: bool = False  # a date that is kept free for it, not only an estimate
    limit: float = 0.0  # how long it is expected to run then; 0: unknown
    reason: str = ""  # of its condition QuotaReserved

    @property
    def is_never(self) -> bool:
        """Whether it cannot start however long it waits: it, or its queue, has to be changed."""
        return self.reason in _NEVER


def explained(conditions: Iterable[Mapping[str, Any]] | None) -> Explained:
    """Read the conditions of a workload."""
    found = {one["type"]: one for one in conditions or ()}
    reserved = found.get("QuotaReserved")
    if reserved is not None and reserved["status"] == "True":
        return Explained()
    says = str((reserved or {}).get("message") or "")
    reason = str((reserved or {}).get("reason") or "")
    try:
        told = json.loads(found[_EXPLANATION]["message"])
        facts = [one for one in told["facts"] if isinstance(one, dict)]
        dated = [one for one in facts if one.get("fact") in _TIMES]
        first = min(dated, key=lambda one: float(one["start"]), default={})
        changes = [str(one["changes"]) for one in facts if one.get("changes")]
        return Explained(
            str(told["stage"]),
            says,
            tuple(dict.fromkeys(changes)),
            start=float(first.get("start") or 0) / 1000,
            is_promised=first.get("fact") == "Planned",
            limit=float(first.get("limit_ms") or 0) / 1000,
            reason=reason,
        )
    except (KeyError, ValueError, TypeError):
        # There is no explanation, or one in the form of another version.
        return Explained(reason, says, reason=reason)
