"""Times as objects have them, in seconds since 1970."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache


@lru_cache(maxsize=1024)  # what happens within a second has one time, and is read many times
def seconds_of(text: str) -> float:
    """Return an RFC 3339 time in seconds since 1970; 0 if it is empty or no time.

    >>> seconds_of("1970-01-01T00:01:00Z"), seconds_of(""), seconds_of("soon")
    (60.0, 0.0, 0.0)
    """
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
