"""Disruption budgets: how many nodes of a pool may be disrupted at a time, for one reason, now.

allowed(reason) = the least, over all budgets that are active and name the reason (or none), of a
number or a share of the pool's ready nodes (rounded up), less those that are going or not ready.
A budget with a schedule is active for its duration after each hit. Spec provisioning §5.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.nodes import is_ready
from unisono.control.view import View
from unisono.kinds.digits import whole_number
from unisono.kinds.scalar import duration_ms
from unisono.provision import keys
from unisono.provision.claims import node_name

Reason = Literal["Empty", "Drifted", "Underutilized"]
_DEFAULT = ({"nodes": "10%"},)
_NO_END = 2**31
# A budget lasts at most a week after a hit; longer ones are looked for no further back.
_MOST_MINUTES = 7 * 24 * 60
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def allowed(pool: Json, reason: Reason, view: View, now: float) -> int:
    """Return how many nodes of a pool may go now."""
    name = pool["metadata"]["name"]
    ready = going = unready = 0
    for claim in view.by(names.NODE_CLAIM, "pool", name):
        node = view.get(names.NODE, node_name(claim)) if node_name(claim) else None
        if node is None:
            continue
        is_leaving = is_going(node)
        if is_leaving or "deletionTimestamp" in claim["metadata"]:
            going += 1
            ready += is_leaving and "deletionTimestamp" not in claim["metadata"]
        elif is_ready(node):
            ready += 1
        else:
            unready += 1
    return most(pool, reason, ready, now) - going - unready


def is_going(node: Json) -> bool:
    """Say whether a node is about to go, and not only when the gang on it has ended."""
    return any(
        taint["key"] == keys.DISRUPTED and taint.get("value") != keys.WHEN_EMPTY
        for taint in node["spec"].get("taints") or ()
    )


def most(pool: Json, reason: Reason, nodes: int, now: float) -> int:
    """Return how many of so many nodes may be away at a time, by the budgets of a pool."""
    disruption = (pool.get("spec") or {}).get("disruption") or {}
    budgets: Sequence[Json] = disruption.get("budgets") or _DEFAULT
    bounds = [
        _bound(budget, nodes, now)
        for budget in budgets
        if not budget.get("reasons") or reason in budget["reasons"]
    ]
    return min(bounds, default=_NO_END)


def _bound(budget: Json, nodes: int, now: float) -> int:
    schedule = budget.get("schedule")
    if schedule:
        try:
            if not is_active(str(schedule), str(budget.get("duration") or "0s"), now):
                return _NO_END
        except ValueError:
            return 0  # an unreadable schedule must not release nodes
    text = str(budget.get("nodes", "10%"))
    number = whole_number(text.removesuffix("%"))
    if number is None:
        return 0  # nor must an unreadable number
    return -(-number * nodes // 100) if text.endswith("%") else number


def is_active(schedule: str, duration: str, now: float) -> bool:
    """Say whether a schedule hit within the last `duration`; raise ValueError if it is broken.

    >>> is_active("@daily", "10m", 5 * 60), is_active("@daily", "10m", 15 * 60)
    (True, False)
    """
    fields = _NAMED.get(schedule, schedule).split()
    if len(fields) != 5:
        raise ValueError(f'"{schedule}" is not a schedule of five fields')
    ranges = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
    minutes, hours, days, months, weekdays = (
        _values(field, *bounds) for field, bounds in zip(fields, ranges, strict=True)
    )
    moment = datetime.fromtimestamp(now, UTC).replace(second=0, microsecond=0)
    lasts = min(duration_ms(duration) // 60_000, _MOST_MINUTES)
    for back in range(lasts + 1):
        hit = moment - timedelta(minutes=back)
        if now - hit.timestamp() > lasts * 60:
            break
        weekday = hit.isoweekday() % 7
        is_day = hit.day in days
        is_weekday = weekday in weekdays or (weekday == 0 and 7 in weekdays)
        # As cron does: with both fields given, either will do.
        free = fields[2] == "*" or fields[4] == "*"
        is_date = (is_day and is_weekday) if free else (is_day or is_weekday)
        if hit.minute in minutes and hit.hour in hours and hit.month in months and is_date:
            return True
    return False


def _values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        start = low if first == "*" else int(first)
        end = high if first == "*" else int(last) if last else high if step else start
        if not low <= start <= end <= high:
            raise ValueError(f'"{field}" is not between {low} and {high}')
        found.update(range(start, end + 1, int(step) if step else 1))
    return found
