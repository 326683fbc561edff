"""The formats of strings that are checked; unknown formats mean nothing, as in Kubernetes."""

from __future__ import annotations

import binascii
import ipaddress
import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime

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
