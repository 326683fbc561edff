"""Values that stand in a manifest as one string or number but mean something exact.

A scalar keeps the text that the user wrote, so an object can be written out again unchanged.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, Self

import msgspec

from unisono.engine.model.names import Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_DURATION_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION_MS = {
    "ns": Fraction(1, 10**6),
    "us": Fraction(1, 1000),
    "µs": Fraction(1, 1000),
    "μs": Fraction(1, 1000),
    "ms": Fraction(1),
    "s": Fraction(1000),
    "m": Fraction(60_000),
    "h": Fraction(3_600_000),
}
_MAX_DURATION_LENGTH = 64  # enough for every unit twice; keeps the arithmetic cheap
# Go's durations end near 292 years; no timeout is longer.
MAX_DURATION_MS = 2**63 // 10**6


class Scalar(msgspec.Struct, frozen=True):
    """Marks the values that the decoder reads from one string or number (see `ReadsRaw`)."""


class ReadsRaw(Protocol):
    """What every scalar class offers."""

    @classmethod
    def from_raw(cls, raw: object) -> Self:
        """Read the value; raise ValueError with the reason, without the field's name."""

    def to_raw(self) -> object:
        """Return what stands in the manifest."""


class Timestamp(Scalar, frozen=True):
    """An RFC 3339 instant such as 2026-01-31T12:00:00Z, to the millisecond."""

    text: str
    instant: Instant

    @classmethod
    def from_raw(cls, raw: object) -> Timestamp:
        """Read an instant; raise ValueError with the reason."""
        if not isinstance(raw, str):
            raise ValueError("must be a time such as 2026-01-31T12:00:00Z")
        return cls(raw, Instant(instant_ms(raw)))

    def to_raw(self) -> str:
        """Return what the user wrote."""
        return self.text


class Duration(Scalar, frozen=True):
    """A length of time as Go writes it: 90s, 5m, 1h30m."""

    text: str
    ms: int

    @classmethod
    def from_raw(cls, raw: object) -> Duration:
        """Read a duration; raise ValueError with the reason."""
        if not isinstance(raw, str):
            raise ValueError("must be a duration such as 90s, 5m or 1h30m")
        return cls(raw, duration_ms(raw))

    def to_raw(self) -> str:
        """Return what the user wrote."""
        return self.text


def seconds_ms(seconds: int) -> int:
    """Return seconds in milliseconds, at most what a duration can be.

    >>> seconds_ms(90), seconds_ms(2**63 - 1) == MAX_DURATION_MS
    (90000, True)
    """
    return max(-MAX_DURATION_MS, min(seconds * 1000, MAX_DURATION_MS))


@lru_cache(maxsize=4096)  # what happens within a second has one time, and is read many times
def instant_ms(text: str) -> int:
    """Return milliseconds since the epoch; raise ValueError with the reason.

    >>> instant_ms("1970-01-01T01:00:00.5+01:00")
    500
    """
    shape = _RFC3339.fullmatch(text)
    if shape is None:
        raise ValueError(f'"{text}" is not a time; write it like 2026-01-31T12:00:00Z')
    date, clock, fraction, zone = shape.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}{zone}")
        since = whole - _EPOCH
    except (ValueError, OverflowError):
        raise ValueError(f'"{text}" is not a time that exists') from None
    thousandths = int(fraction[1:4].ljust(3, "0")) if fraction else 0
    return since // timedelta(milliseconds=1) + thousandths


def duration_ms(text: str) -> int:
    """Return a Go duration in milliseconds, rounded up; raise ValueError with the reason.

    >>> duration_ms("1h30m"), duration_ms("1.5s"), duration_ms("0")
    (5400000, 1500, 0)
    """
    if text in ("0", "+0", "-0"):
        return 0
    body = text[1:] if text[:1] in ("+", "-") else text
    parts = _DURATION_PART.findall(body) if len(text) <= _MAX_DURATION_LENGTH else []
    if not parts or "".join(number + unit for number, unit in parts) != body:
        raise ValueError(f'"{text}" is not a duration; write it like 90s, 5m or 1h30m')
    exact = sum(
        (Fraction("0" + number) * _DURATION_MS[unit] for number, unit in parts), Fraction(0)
    )
    rounded = -(-exact.numerator // exact.denominator)
    if rounded > MAX_DURATION_MS:
        raise ValueError(f'"{text}" is longer than a duration can be (about 292 years)')
    return -rounded if text.startswith("-") else rounded
