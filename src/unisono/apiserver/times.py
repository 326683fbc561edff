"""Times as the API writes them, and ages as people read them.

Times are in UTC, in whole seconds, or in microseconds where a field says so.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

# A longer grace than this means forever.
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def timestamp(now: float) -> str:
    """Write a time of metadata and most statuses; what is too late to write is the last second.

    >>> timestamp(0.75), timestamp(1e20)
    ('1970-01-01T00:00:00Z', '9999-12-31T23:59:59Z')
    """
    return _written(int(min(now, _LAST)))


# Bursts of objects are made in the same second.
@lru_cache(maxsize=64)
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(now: float) -> str:
    """Write a time of Leases and Events.

    >>> micro_timestamp(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(text: str) -> float | None:
    """Read a time that the API wrote; None if it is not one.

    >>> seconds("1970-01-01T00:01:00Z")
    60.0
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# ---- age -----------------------------------------------------------------------------------------
#
# How long something took or how long ago it was, in at most two units.
#
#     under     2 minutes 10 minutes 3 hours 8 hours 2 days 8 days 2 years 8 years, and beyond
#     as in     90s       5m30s      119m    3h20m   26h    3d4h   400d    2y35d    9y
#
# The smaller unit is left out when there is none of it.

UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

# Up to what age, in which unit, and in which smaller one beside it.
_STEPS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def age(moment: object, now: float) -> str:
    """Say how long ago a time of the API was; `<unknown>` if there is none.

    >>> age("1970-01-01T00:00:00Z", 330.0)
    '5m30s'
    """
    if not isinstance(moment, str) or not moment:
        return UNKNOWN
    since = seconds(moment)
    return UNKNOWN if since is None else duration(now - since)


def duration(length: float) -> str:
    """Write a length of time in seconds.

    >>> duration(119 * 60), duration(8 * 3600), duration(75 * 3600)
    ('119m', '8h', '3d3h')
    """
    # Clocks differ a little: what seems to lie in the future by less than two seconds is now.
    return INVALID if length <= -2 else _in_units(max(0, int(length)))


# Objects are made in bursts, so many of a list have the same age.
@lru_cache(maxsize=4096)
def _in_units(whole: int) -> str:
    for limit, unit, name, smaller, smaller_name in _STEPS:
        if whole < limit:
            count, rest = divmod(whole, unit)
            beside = rest // smaller if smaller else 0
            return f"{count}{name}{beside}{smaller_name}" if beside else f"{count}{name}"
    return f"{whole // _YEAR}y"
