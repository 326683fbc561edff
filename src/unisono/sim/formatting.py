"""Figures as people read them: few digits, units that fit, a dash for nothing."""

from __future__ import annotations

import math

NOTHING = "-"
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


def number(value: float) -> str:
    """Return three or four digits that mean something.

    >>> [number(value) for value in (6351.49, 86.3712, 1.05, 0.0123, 978078.47, float("nan"))]
    ['6,351', '86.4', '1.05', '0.0123', '978,078', '-']
    """
    if not math.isfinite(value):
        return NOTHING
    size = abs(value)
    if size >= 1000 or value == int(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"


def duration(seconds: float) -> str:
    """Return a time in the unit that fits.

    >>> [duration(seconds) for seconds in (0, 59.5, 90, 6351.5, 218832)]
    ['0 s', '59.5 s', '1.50 min', '1.76 h', '2.53 d']
    """
    if not math.isfinite(seconds):
        return NOTHING
    for size, unit in _UNITS:
        if abs(seconds) >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds)} s"


def percent(share: float) -> str:
    """Return a share of one in percent.

    >>> percent(0.6841), percent(float("nan"))
    ('68.4 %', '-')
    """
    return f"{100 * share:.1f} %" if math.isfinite(share) else NOTHING


def dollars(amount: float) -> str:
    """Return an amount of money.

    >>> dollars(1234567.8), dollars(12.345), dollars(float("nan"))
    ('$1,234,568', '$12.35', '-')
    """
    if not math.isfinite(amount):
        return NOTHING
    return f"${amount:,.0f}" if abs(amount) >= 1000 else f"${amount:,.2f}"
