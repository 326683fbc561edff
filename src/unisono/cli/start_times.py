"""When a workload starts, and how long it runs: read from its Workload.

The scheduler writes reservations and estimates into the condition `unisono.dev/Explanation`; limits
are annotations (spec backfill §1). What was learned from earlier runs is only in the first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from unisono.cli.times import ahead
from unisono.cli.workload_state import condition
from unisono.control.names import EXPLANATION
from unisono.engine.explain.formatting import format_duration, format_instant
from unisono.engine.explain.messages import LIMIT_SOURCES
from unisono.engine.model.names import Instant
from unisono.kinds.digits import whole_number
from unisono.kinds.scalar import instant_ms
from unisono.kinds.times import ACTIVE_DEADLINE, DEFAULT_LIMIT, TIME_LIMIT, limit_ms
from unisono.kube.form import Json

TIMES = ("Planned", "Expected")


def facts_of(workload: Json) -> list[Json]:
    """Return the facts of a workload's explanation; none if there are none that can be read."""
    explained = condition(workload, EXPLANATION)
    try:
        facts = json.loads(explained["message"])["facts"] if explained is not None else []
    except (ValueError, KeyError, TypeError):
        return []  # of another version, or overwritten by a user
    return facts if isinstance(facts, list) else []


def root_cause_of(workload: Json) -> Json | None:
    """Return what would have to change, as the scheduler found it; None if it is not known."""
    explained = condition(workload, EXPLANATION)
    if explained is None:
        return None
    try:
        found: Json | None = json.loads(explained["message"]).get("rootCause")
        says = [one["says"] for one in (*found["inTheWay"], *found["ways"])] if found else []
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # of another version, or overwritten by a user
    return found if says and found is not None and isinstance(found.get("says"), str) else None


def cause_of(workload: Json) -> str:
    """Return why a workload waits as one sentence: its root cause, or its first fact.

    There is no root cause where the first fact says what has to change: a hold, a date.
    """
    root_cause = root_cause_of(workload)
    if root_cause is not None:
        return str(root_cause["says"])
    first = next((one for one in facts_of(workload) if one.get("fact") not in TIMES), None)
    return str(first.get("says", "")).partition("; ")[0] if first is not None else ""


_ASIDE = re.compile(r" \([^()]*\)")
# As much of a sentence as a table has room for.
_MOST_IN_A_CELL = 72


def short_cause(says: str, namespace: str) -> str:
    """Return a root cause as a cell of a table, for a workload of a namespace.

    What is in brackets (amounts, nodes, limits) is left out: `unisono why` has it. So is the
    namespace of jobs that are in the same one.
    """
    says = _ASIDE.sub("", says).replace(f" {namespace}/", " ")
    if len(says) <= _MOST_IN_A_CELL:
        return says
    return says[: _MOST_IN_A_CELL - 1].rstrip(" ,;") + "…"


def start_of(facts: Iterable[Json]) -> Json | None:
    """Return the reservation or the estimate among facts, with the limit that it counts with."""
    for fact in facts:
        if fact.get("fact") in TIMES:
            made: Json = {
                "start": format_instant(Instant(fact["start"])),
                "promised": fact["fact"] == "Planned",
                "position": fact.get("position", 0),
            }
            if fact.get("behind"):
                made["behind"] = fact["behind"]
            return made
    return None


def limit_of(workload: Json, facts: Iterable[Json], *queues: Json | None) -> Json | None:
    """Return the time limit of a workload and its source; `queues`: the LocalQueue first."""
    for fact in facts:
        if fact.get("fact") in TIMES and fact.get("limit_from", "policy") != "policy":
            return _limit(fact["limit_ms"], fact["limit_from"])
    own = _annotations(workload)
    candidates = [
        (_read(own.get(TIME_LIMIT)), "request"),
        (_seconds(own.get(ACTIVE_DEADLINE)), "job"),
    ]
    longest = (workload.get("spec") or {}).get("maximumExecutionTimeSeconds")
    if longest:
        past = (workload.get("status") or {}).get("accumulatedPastExecutionTimeSeconds") or 0
        candidates.append((max(0, longest - past) * 1000, "execution"))
    found = [(limit, source) for limit, source in candidates if limit is not None]
    for queue in queues if not found else ():
        default = _read(_annotations(queue).get(DEFAULT_LIMIT)) if queue is not None else None
        if default is not None:
            found = [(default, "queue")]
            break
    return _limit(*min(found)) if found else None


def until(workload: Json, limit: Json | None) -> str | None:
    """Return when a running workload ends at the latest."""
    admitted = condition(workload, "Admitted")
    if limit is None or admitted is None or admitted["status"] != "True":
        return None
    since = instant_ms(admitted["lastTransitionTime"])
    return format_instant(Instant(since + limit["seconds"] * 1000))


def limit_words(limit: Mapping[str, Any]) -> str:
    """Write a time limit and its source."""
    return f"{format_duration(limit['seconds'] * 1000)} ({LIMIT_SOURCES[limit['from']]})"


def start_words(start: Mapping[str, Any], now: float) -> str:
    """Say when something starts."""
    at = instant_ms(start["start"]) / 1000
    when = ahead(at, now)
    if start.get("bought") and at <= now:
        return "unknown: its machines are late"
    if at <= now:
        when += " (overdue: a running job exceeds its expected run time)"
    behind = f"; after {start['behind']}" if start.get("behind") else ""
    if start.get("bought"):
        return f"starts at about {when}, when its machines are ready"
    if start["promised"]:
        return f"starts by {when} (reserved{behind}), if running jobs keep their time limits"
    if not start["position"]:
        return f"starts at about {when}, if it fits then"
    return f"starts at about {when} (estimate, no reservation{behind})"


def _limit(limit: int, source: str) -> Json:
    return {"seconds": limit // 1000, "from": source}


def _annotations(obj: Json | None) -> Json:
    return (obj["metadata"].get("annotations") or {}) if obj is not None else {}


def _read(text: str | None) -> int | None:
    try:
        return limit_ms(text) if text is not None else None
    except ValueError:
        return None


def _seconds(text: str | None) -> int | None:
    number = whole_number(text)
    return None if number is None else number * 1000
