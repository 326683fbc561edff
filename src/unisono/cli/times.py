"""Times for people: short, local, and with the distance from now; machine output keeps RFC 3339."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_NEAR_S = 18 * _HOUR  # within that, the time of day says enough


def clock_time(at: float, now: float) -> str:
    """Return a time in seconds since 1970 as people read it, in local time.

    `14:02` if that is less than 18 hours away, else `Nov 18 14:02`, or with the year if that is
    another one.
    """
    moment, today = (datetime.fromtimestamp(each, UTC).astimezone() for each in (at, now))
    if abs(at - now) < _NEAR_S:
        return f"{moment:%H:%M}"
    return f"{moment:%b} {moment.day} {moment:%H:%M}" + (
        "" if moment.year == today.year else f" {moment.year}"
    )


_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def local_times(text: str, now: float) -> str:
    """Return a sentence of the engine with its instants as people read them."""
    return _INSTANT.sub(
        lambda found: ahead(datetime.fromisoformat(found[0]).timestamp(), now), text
    )


def in_words(seconds: float) -> str:
    """Write a duration: its two largest units.

    >>> in_words(45), in_words(9 * 60), in_words(5280), in_words(273_600)
    ('45 s', '9 min', '1 h 28 min', '3 d 4 h')
    """
    whole = max(0, int(seconds))
    units = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s"))
    for place, (unit, name) in enumerate(units):
        if whole >= unit:
            text = f"{whole // unit} {name}"
            smaller = units[place + 1 : place + 2]
            rest = whole % unit // smaller[0][0] if smaller else 0
            return f"{text} {rest} {smaller[0][1]}" if rest else text
    return "0 s"


def ahead(at: float, now: float) -> str:
    """Return a coming time with its distance, as in `02:13, in 1 h 28 min`; what is past, alone."""
    text = clock_time(at, now)
    return f"{text}, in {in_words(at - now)}" if at > now else text
