"""Why a workload waits, as its conditions tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_EXPLANATION = "unisono.dev/Explanation"
_TIMES = ("Planned", "Expected")


class Explained(NamedTuple):
    """What refuses it, in words and as a stage; what would change that; when it starts."""

    stage: str = ""
    says: str = ""
    changes: tuple[str, ...] = ()
    start: float = 0.0  # at the latest, or as far as anybody knows; 0: unknown


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
        starts = [float(one["start"]) for one in facts if one.get("fact") in _TIMES]
        changes = [str(one["changes"]) for one in facts if one.get("changes")]
        start = min(starts, default=0.0) / 1000
        return Explained(str(told["stage"]), says, tuple(dict.fromkeys(changes)), start)
    except (KeyError, ValueError, TypeError):
        return Explained(reason, says)  # nobody explained, or in the words of another version
