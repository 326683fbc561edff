"""Amounts, prices, durations and instants as text."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from unisono.engine.model.names import CPU, Instant, ResourceName
from unisono.engine.model.provisioning import MICRO

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def format_amount(amount: int, resource: ResourceName) -> str:
    """Write an amount with its resource.

    >>> format_amount(1500, CPU)
    '1500m cpu'
    >>> format_amount(8, ResourceName("nvidia.com/gpu"))
    '8 nvidia.com/gpu'
    """
    if resource == CPU:
        whole = amount % 1000 == 0
        return f"{amount // 1000} cpu" if whole else f"{amount}m cpu"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        power = 0
        while power < len(_BINARY) - 1 and amount and amount % 1024 == 0:
            amount //= 1024
            power += 1
        return f"{amount}{_BINARY[power]} {resource}"
    return f"{amount} {resource}"


def format_price(micro: int) -> str:
    """Write a price for people.

    >>> format_price(74_089_400), format_price(384_000)
    ('$74.09', '$0.384')
    """
    amount = micro / MICRO
    return f"${amount:.2f}" if amount >= 10 else f"${amount:.4f}".rstrip("0").rstrip(".")


def format_counts(names: Iterable[str]) -> str:
    """Count equal things.

    >>> format_counts(["a", "b", "a"])
    '2 × a, 1 × b'
    """
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} × {name}" for name, count in counts.items())


def format_duration(duration_ms: int) -> str:
    """Write a duration for people: its two largest parts.

    >>> (
    ...     format_duration(90_061_000),
    ...     format_duration(3_600_000),
    ...     format_duration(59_400),
    ...     format_duration(0),
    ... )
    ('1d1h', '1h', '59s', '0s')
    """
    left = duration_ms // 1000
    parts = []
    for letter, seconds in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, seconds)
        if amount:
            parts.append(f"{amount}{letter}")
    return "".join(parts[:2]) or "0s"


# The end of the year 9999: what is further away, as a manifest may say, cannot be written.
_LAST_SECOND = 253_402_300_799


def format_instant(instant: Instant) -> str:
    """Write an instant as Kubernetes does.

    >>> format_instant(Instant(1_767_268_800_000))
    '2026-01-01T12:00:00Z'
    """
    moment = datetime.fromtimestamp(min(max(instant // 1000, 0), _LAST_SECOND), tz=UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
