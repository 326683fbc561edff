"""The formats and patterns of strings; unknown formats mean nothing, as in Kubernetes."""

from __future__ import annotations

import binascii
import ipaddress
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache, lru_cache
from typing import Protocol, cast

from unisono.kinds.short_texts import cached_if_short

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9}\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DURATION = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)([a-zµμ]+)", re.ASCII)

# Texts that are longer are no time, address or number of anything.
_MAX_LENGTH = 128


def instant(text: str) -> datetime | None:
    """Return the moment that an RFC 3339 text names, or None."""
    if len(text) > _MAX_LENGTH or _TIME.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        return None


def duration_seconds(text: str) -> float | None:
    """Return how long `1h30m` is in seconds, or None if the text is not a duration."""
    if len(text) > _MAX_LENGTH or _DURATION.fullmatch(text) is None:
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return -seconds if text[0] == "-" else seconds


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_base64(text: str) -> bool:
    try:
        b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_address(text: str, read: Callable[[str], object]) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


# Format → how to tell, and what to call it in a message.
FORMATS: Mapping[str, tuple[Callable[[str], bool], str]] = {
    "date-time": (lambda text: instant(text) is not None, "a time such as 2026-01-31T08:00:00Z"),
    "date": (_is_date, "a date such as 2026-01-31"),
    "duration": (lambda text: duration_seconds(text) is not None, "a duration such as 1h30m"),
    "byte": (_is_base64, "base64"),
    "uuid": (lambda text: _UUID.fullmatch(text) is not None, "a UUID"),
    "ipv4": (lambda text: _is_address(text, ipaddress.IPv4Address), "an IPv4 address"),
    "ipv6": (lambda text: _is_address(text, ipaddress.IPv6Address), "an IPv6 address"),
    "cidr": (
        lambda text: (
            "/" in text and _is_address(text, lambda text: ipaddress.ip_network(text, strict=False))
        ),
        "a network such as 10.0.0.0/8",
    ),
}

# Format of a number → the smallest and the largest that fit.
RANGES: Mapping[str, tuple[int, int]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}


# ---- patterns ------------------------------------------------------------------------------------
#
# Regular expressions as schemas write them: in RE2's syntax, matched in linear time.
#
# Kubernetes matches with Go's engine, which is RE2's: no pattern takes long, whatever the text. So
# RE2 itself reads and matches here (ADR 0033); Python's `re` may take forever on `^(a+)+$` and
# means something else by `$`. A match takes some 2 µs, a repeated one half of one. RE2 is loaded at
# the first pattern.

# A pattern that is longer is a mistake or an attack; the longest in use have some 300 characters.
_MAX_PATTERN = 4096


class _Found(Protocol):
    """Where a pattern was found."""

    def group(self) -> bytes:
        """Return what was found."""


class _Pattern(Protocol):
    """A pattern that RE2 has read."""

    def search(self, text: bytes) -> _Found | None:
        """Return the first place that the pattern matches, from left to right."""


def pattern_problem(pattern: str) -> str:
    """Say why a schema must not use a pattern; empty if it may.

    >>> pattern_problem("^[a-z]+$"), pattern_problem("a(?=b)")
    ('', 'is not a regular expression: invalid perl operator: (?=')
    """
    try:
        _compile(pattern)
    except ValueError as problem:
        return str(problem)
    return ""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return what says whether a text contains the pattern; raise ValueError if it is none."""
    _compile(pattern)
    return lambda text: _matches(pattern, text)


def finder(pattern: str) -> Callable[[str], str]:
    """Return what finds the first occurrence in a text, or an empty text."""
    search = _compile(pattern).search

    def find(text: str) -> str:
        found = search(text.encode())
        return found.group().decode() if found is not None else ""

    return find


@cached_if_short(4096)  # names, amounts and images repeat
def _matches(pattern: str, text: str) -> bool:
    return _compile(pattern).search(text.encode()) is not None


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> _Pattern:
    if len(pattern) > _MAX_PATTERN:
        raise ValueError(f"has {len(pattern)} characters; at most {_MAX_PATTERN} are allowed")
    compile_bytes, error = load_engine()
    try:
        # Patterns and texts go in as UTF-8: with `str`, each match costs 5 µs for offsets.
        return compile_bytes(pattern.encode())
    except error as problem:
        reason = problem.args[0]
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"is not a regular expression: {text}") from None


@cache
def load_engine() -> tuple[Callable[[bytes], _Pattern], type[Exception]]:
    """Load RE2, which takes 5 ms; return what compiles a pattern, and what that raises."""
    import re2

    options = re2.Options()
    options.log_errors = False  # a pattern that is refused is for its author, not for stderr

    def compile_bytes(pattern: bytes) -> _Pattern:
        return cast(_Pattern, re2.compile(pattern, options))

    return compile_bytes, re2.error
