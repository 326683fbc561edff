"""When usage was last set to zero, if the policy says that it is from time to time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal

from unisono.engine.model.names import Instant

Period = Literal["never", "daily", "weekly", "monthly", "quarterly", "yearly"]
_HOUR_MS = 3600 * 1000


def last_reset(period: Period, now: Instant) -> Instant:
    """Return the last instant at which usage became zero; 0 if there was none.

    A day, a week (from Sunday), a month, a quarter and a year begin at midnight in UTC.

    >>> last_reset("monthly", Instant(1_767_268_800_000)) == Instant(1_767_225_600_000)
    True
    """
    if period == "never":
        return Instant(0)
    return _of_hour(period, now // _HOUR_MS)


@lru_cache(maxsize=64)  # a decision asks many times about one hour
def _of_hour(period: Period, hour: int) -> Instant:
    moment = datetime.fromtimestamp(hour * 3600, tz=UTC)
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "weekly":
            day -= timedelta(days=(day.weekday() + 1) % 7)
        case "monthly":
            day = day.replace(day=1)
        case "quarterly":
            day = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "yearly":
            day = day.replace(month=1, day=1)
        case "daily" | "never":
            pass
    return Instant(round(day.timestamp() * 1000))
