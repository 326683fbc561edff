"""Schedules as CronJobs write them, and the times that they name.

    30 2 * * mon-fri      minute, hour, day, month, weekday; lists, ranges, steps, English names
    @daily, @hourly, …    words for common schedules
    @every 90m            so long after the last time

Times are those of a wall clock in one time zone, worked out as Kubernetes works them out: a time
that a change to summer time skips does not come that day, and one that a change back repeats comes
twice. A day must match both day and weekday, or either one if neither field is `*`.

Pure: times are whole seconds since 1970, the zone is a value.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import msgspec

from unisono.kinds.digits import whole_number
from unisono.kinds.scalar import duration_ms

_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 6, _DAYS),
)
_MINUTE, _HOUR = 60, 3600
# A schedule may name a day that no year has. Kubernetes gives up after five years, but 29 February
# is up to eight years away (1896 to 1904, 2096 to 2104).
_MOST_YEARS = 9
_LAST = 250_000_000_000  # the year 9892: later ones do not fit into a date with some more years
_MOST_DIGITS = 9999  # the largest number that is read at all


class Schedule(msgspec.Struct, frozen=True):
    """Which times a schedule names."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    needs_both: bool = True  # day and weekday; else one of them is enough
    every_s: int = 0  # seconds between two times; above zero, nothing else counts

    def after(self, time: float, zone: tzinfo) -> int | None:
        """Return the first time after another; None if there is none in sight.

        >>> at_half_past_two = parse_schedule("30 2 * * *")
        >>> at_half_past_two.after(0, UTC)
        9000
        """
        if self.every_s:
            return int(time) + self.every_s
        found = (int(time) // _MINUTE + 1) * _MINUTE
        end = min(found + _MOST_YEARS * 366 * 24 * _HOUR, _LAST)
        while found <= end:
            local = datetime.fromtimestamp(found, zone)
            later = self._next_try(found, local)
            if later == found:
                return found
            found = later
        return None

    def _next_try(self, found: int, local: datetime) -> int:
        """Return the next time that could match; the same one if it does."""
        if local.month not in self.months:
            next_month = (local.replace(day=1) + timedelta(days=32)).replace(day=1)
            return _midnight(next_month, found)
        if not self._is_day(local):
            return _midnight(local + timedelta(days=1), found)
        if local.hour not in self.hours:
            return found + (60 - local.minute) * _MINUTE
        if local.minute not in self.minutes:
            more = min((one for one in self.minutes if one > local.minute), default=60)
            return found + (more - local.minute) * _MINUTE
        return found

    def _is_day(self, local: datetime) -> bool:
        is_day, is_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return is_day and is_weekday if self.needs_both else is_day or is_weekday


def _midnight(day: datetime, now: int) -> int:
    """Return when a day begins; where a change of the clock skips midnight, the first minute."""
    begins = day.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    return max(int(begins.timestamp()), now + _MINUTE)


# ---- reading -------------------------------------------------------------------------------------


@lru_cache(maxsize=256)  # more schedules than a cluster has; each is read at every look at its job
def parse_schedule(text: str) -> Schedule:
    """Read a schedule; raise ValueError with what is wrong."""
    if text.startswith(_EVERY):
        duration = duration_ms(text.removeprefix(_EVERY))
        if duration <= 0:
            raise ValueError("must be above zero")
        return Schedule(every_s=max(1, duration // 1000))
    if text.startswith("@") and text not in _WORDS:
        raise ValueError(f"known words are {', '.join(_WORDS)} and @every")
    fields = _WORDS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        wanted = "minute, hour, day, month and weekday are needed"
        raise ValueError(f"has {len(fields)} fields; {wanted}")
    minutes, hours, days, months, weekdays = (
        frozenset(number for part in field.split(",") for number in _numbers(part, *rules))
        for field, rules in zip(fields, _FIELDS, strict=True)
    )
    needs_both = any(_is_any(part) for field in (fields[2], fields[4]) for part in field.split(","))
    return Schedule(minutes, hours, days, months, weekdays, needs_both)


def wrong_with_schedule(text: str) -> str:
    """Say why a text is no schedule; empty if it is one.

    >>> wrong_with_schedule("*/5 0-6,22 * * mon-fri"), wrong_with_schedule("99 * * * *")
    ('', 'minute 99 is not between 0 and 59')
    """
    try:
        parse_schedule(text)
    except ValueError as error:
        return str(error)
    return ""


def _is_any(part: str) -> bool:
    """Say whether a field is left open; `*/2` names some days, so it is not."""
    span, _, step = part.partition("/")
    return span in ("*", "?") and step in ("", "1")


def _numbers(part: str, name: str, least: int, most: int, words: tuple[str, ...]) -> Iterator[int]:
    span, slash, step_text = part.partition("/")
    step = whole_number(step_text, _MOST_DIGITS) if slash else 1
    if not step:
        raise ValueError(f"{name} has the step {step_text!r}, which is not a number above zero")
    if span in ("*", "?"):
        return iter(range(least, most + 1, step))
    first_text, dash, last_text = span.partition("-")
    first = _number(first_text, name, least, most, words)
    # `5/15` goes on to the end: from 5 on, every 15th.
    last = _number(last_text, name, least, most, words) if dash else most if slash else first
    if first > last:
        raise ValueError(f"{name} {span} ends before it begins")
    return iter(range(first, last + 1, step))


def _number(text: str, name: str, least: int, most: int, words: tuple[str, ...]) -> int:
    if text.lower() in words:
        return least + words.index(text.lower())
    value = whole_number(text, _MOST_DIGITS)
    if value is None:
        raise ValueError(f"{name} has the value {text!r}, which is not a number")
    if not least <= value <= most:
        raise ValueError(f"{name} {value} is not between {least} and {most}")
    return value


# ---- time zones ----------------------------------------------------------------------------------


def wrong_with_zone(name: str) -> str:
    """Say why a name is no time zone; empty if it is one.

    >>> wrong_with_zone("Europe/Berlin"), wrong_with_zone("Mars/Olympus")
    ('', 'unknown time zone Mars/Olympus')
    """
    if not name:
        return "must be nil or non-empty string"
    if name.lower() == "local":
        return "must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if _zone(name) is not None else f"unknown time zone {name}"


def zone_named(name: str | None) -> tzinfo | None:
    """Return a time zone by its IANA name; that of no name is UTC; None if it is unknown."""
    if not name:
        return UTC
    return None if wrong_with_zone(name) else _zone(name)


@lru_cache(maxsize=64)
def _zone(name: str) -> tzinfo | None:
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None  # unknown, or no name of a zone at all, such as a path


# ---- missed times --------------------------------------------------------------------------------

MANY_MISSED = 100  # so many in a row deserve a warning, as in Kubernetes


class Due(msgspec.Struct, frozen=True):
    """What is due."""

    latest: int | None = None  # the last time that has come since
    missed: int = 0  # about how many have come since, that one included
    next: int | None = None  # the first one that is still to come


def due(schedule: Schedule, zone: tzinfo, since: float, now: float) -> Due:
    """Return which times have come since a time.

    In one step, however long ago that was: one run is made for all that were missed.

    >>> due(parse_schedule("@hourly"), UTC, 0, 9000)
    Due(latest=7200, missed=2, next=10800)
    """
    first = schedule.after(since, zone)
    if first is None or first > now:
        return Due(next=first)
    second = schedule.after(first, zone)
    if second is None or second > now:
        return Due(first, 1, second)
    missed = int(now - first) // (second - first) + 1  # as if all distances were that of the first
    if schedule.every_s:
        latest = first + (missed - 1) * schedule.every_s
        return Due(latest, missed, latest + schedule.every_s)
    # Halve the stretch of time in which the last one lies: thirty steps for decades.
    before, late = first - 1, int(now)
    while late - before > 1:
        middle = (before + late) // 2
        found = schedule.after(middle, zone)
        if found is not None and found <= now:
            before = middle
        else:
            late = middle
    return Due(schedule.after(before, zone), missed, schedule.after(now, zone))
