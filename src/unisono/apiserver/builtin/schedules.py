"""Schedules as cron writes them: five fields, or a word that begins with @."""

from __future__ import annotations

from unisono.kinds.digits import whole_number
from unisono.kinds.scalar import duration_ms

_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 6, _DAYS),
)


def wrong_with_schedule(text: str) -> str:
    """Say why a text is no schedule; empty if it is one.

    >>> wrong_with_schedule("*/5 0-6,22 * * mon-fri"), wrong_with_schedule("99 * * * *")
    ('', 'minute 99 is not between 0 and 59')
    """
    if text.startswith("@every "):
        try:
            return "" if duration_ms(text.removeprefix("@every ")) > 0 else "must be above zero"
        except ValueError as error:
            return str(error)
    if text.startswith("@"):
        return "" if text in _WORDS else f"known words are {', '.join(_WORDS)} and @every"
    fields = text.split()
    if len(fields) != len(_FIELDS):
        return f"has {len(fields)} fields; minute, hour, day, month and weekday are needed"
    for field, rules in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            if wrong := _wrong_with_part(part, *rules):
                return wrong
    return ""


def _wrong_with_part(part: str, name: str, least: int, most: int, words: tuple[str, ...]) -> str:
    span, slash, step = part.partition("/")
    if slash and not whole_number(step, 9999):
        return f"{name} has the step {step!r}, which is not a number above zero"
    if span in ("*", "?"):
        return ""
    first, dash, last = span.partition("-")
    values: list[int] = []
    for end in (first, last) if dash else (first,):
        if end.lower() in words:
            values.append(least + words.index(end.lower()))
        elif (value := whole_number(end, 9999)) is not None:
            values.append(value)
        else:
            return f"{name} has the value {end!r}, which is not a number"
    for value in values:
        if not least <= value <= most:
            return f"{name} {value} is not between {least} and {most}"
    return f"{name} {span} ends before it begins" if values[0] > values[-1] else ""
