"""How many pods of each set an admission is about: as it is written, and with those that are done.

What is written is what is charged, as in Kueue: pods that were done for good before a workload was
admitted (`status.reclaimablePods`) are in neither `count` nor `resourceUsage`. Controllers count a
gang's pods with those that are done, as the engine does. A set that may be smaller than it asks for
(`minCount`) is written whole, since its count is all that says how many pods it got.
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.control.actions import Json
from unisono.engine.model.workload import PodSet


def written_count(count: int, asked: PodSet, done: int) -> int:
    """Return how many of so many pods, some of which are done, an admission is written with."""
    return count if asked.min_count is not None else max(0, count - done)


def whole_counts(workload: Json) -> dict[str, int]:
    """Return how many pods of each set an admitted Workload has, with those that are done."""
    status = workload["status"]
    done = {one["name"]: one["count"] for one in status.get("reclaimablePods") or ()}
    sets = (workload.get("spec") or {}).get("podSets") or ()
    asked: Mapping[str, Json] = {one.get("name", "main"): one for one in sets}
    found: dict[str, int] = {}
    for one in status["admission"].get("podSetAssignments") or ():
        name, count = one["name"], one.get("count", 0)
        of = asked.get(name)
        if of is not None:
            count = min(count, of.get("count", 1))  # it may have been made smaller in place
            if of.get("minCount") is None:
                count = max(count, min(count + done.get(name, 0), of.get("count", 1)))
        found[name] = count
    return found
