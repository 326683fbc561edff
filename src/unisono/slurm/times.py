"""Times as sbatch takes them: `now+1hour`, `16:00`, `2026-01-31T12:00`, `tomorrow`, `teatime`."""

from __future__ import annotations

import re
import time

_LATER = re.compile(r"now(?:\s*\+\s*(\d{1,9})\s*(seconds?|minutes?|hours?|days?|weeks?)?)?")
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_HOURS = {"midnight": 0, "noon": 12, "fika": 15, "teatime": 16, "elevenses": 11}
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(am|pm)?")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:t(\d{1,2}):(\d{2})(?::(\d{2}))?)?(z)?")
_SHORT_DATE = re.compile(r"(\d{2})/?(\d{2})/?(\d{2})(?:[-t](\d{1,2}):(\d{2}))?")
_DAY = 86_400


class BadTime(ValueError):
    """The text is not a time."""


def parse_time(text: str, now: float) -> float:
    """Return a time in seconds since 1970; clock times are those of this machine's zone.

    >>> parse_time("now+1hour", 1000.0), parse_time("now+90", 1000.0)
    (4600.0, 1090.0)
    >>> parse_time("2026-01-31T12:00:00Z", 0.0)
    1769860800.0
    """
    plain = text.strip().lower()
    later = _LATER.fullmatch(plain)
    if later is not None:
        unit = (later[2] or "second").rstrip("s")
        return now + int(later[1] or 0) * _UNITS[unit]
    today = time.localtime(now)
    if plain in ("today", "tomorrow"):
        return now + (_DAY if plain == "tomorrow" else 0)
    hour = _HOURS.get(plain)
    if hour is not None:
        return _next(today, (hour, 0, 0), now)
    clock = _CLOCK.fullmatch(plain)
    if clock is not None:
        return _next(today, _hours(clock), now)
    date = _DATE.fullmatch(plain)
    if date is not None:
        numbers = [int(one or 0) for one in date.groups()[:6]]
        if date[7]:
            return _universal(*numbers)
        return _local(*numbers)
    short = _SHORT_DATE.fullmatch(plain)
    if short is not None:
        month, day, year, hours, minutes = (int(one or 0) for one in short.groups())
        return _local(2000 + year, month, day, hours, minutes, 0)
    raise BadTime(text)


def _hours(clock: re.Match[str]) -> tuple[int, int, int]:
    hour, minute, second = int(clock[1]), int(clock[2]), int(clock[3] or 0)
    if clock[4]:
        hour = hour % 12 + (12 if clock[4] == "pm" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise BadTime(clock[0])
    return hour, minute, second


def _next(today: time.struct_time, clock: tuple[int, int, int], now: float) -> float:
    at = _local(today.tm_year, today.tm_mon, today.tm_mday, *clock)
    return at if at > now else at + _DAY


def _local(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float:
    try:
        return time.mktime((year, month, day, hour, minute, second, 0, 0, -1))
    except (OverflowError, ValueError):
        raise BadTime(f"{year}-{month}-{day}") from None


def _universal(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float:
    """Return a time of the zone UTC; `calendar` has this, but takes long to load."""
    # Years begin with March here, so that the day of a leap year is the last one.
    year -= month < 3
    month = (month + 9) % 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    return float((days - 719_468) * _DAY + hour * 3600 + minute * 60 + second)


def written(at: float) -> str:
    """Return a time as objects have it.

    >>> written(60.9)
    '1970-01-01T00:01:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def read(text: str) -> float:
    """Return a time of an object; 0 if there is none."""
    found = _DATE.match(text.lower()) if text else None
    if found is None:
        return 0.0
    return _universal(*(int(one or 0) for one in found.groups()[:6]))


def shown(at: float) -> str:
    """Return a time as Slurm's programs print it: of this machine's zone, without saying so."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at))


def dated(at: float) -> str:
    """Return a time as it stands above long tables: `Mon Nov 16 16:01:29 2026`."""
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(at))
