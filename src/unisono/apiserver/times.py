"""Times as the API writes them: UTC, whole seconds, or microseconds where a field says so."""

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
