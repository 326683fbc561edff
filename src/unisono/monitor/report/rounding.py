"""Whole units whose sum is the rounded sum: how exact amounts become cents and minutes.

Rounding every part on its own loses what is small: a thousand jobs of 0.4 cents each would cost
nothing. Here the remainder of a part is carried to the next one. So all parts together are the
rounded total, any run of neighbours is within one unit of its exact amount, and a total that is
made of parts is never rounded again.
"""

from __future__ import annotations

from collections.abc import Iterable


def carried(parts: Iterable[int], unit: int) -> list[int]:
    """Return amounts in whole units, remainders carried along.

    >>> carried([4_000] * 5, 10_000), carried([36_000], 10_000)
    ([0, 1, 0, 1, 0], [4])
    """
    found: list[int] = []
    exact = told = 0
    for part in parts:
        exact += part
        now = (2 * exact + unit) // (2 * unit)
        found.append(now - told)
        told = now
    return found


def carried_within(parts: Iterable[int], wholes: Iterable[int], unit: int) -> list[int]:
    """Return the same for parts of wholes that are in units already: none is more than its whole.

    >>> carried_within([4_000, 4_000, 4_000], [0, 0, 1], 10_000)
    [0, 0, 1]
    """
    found: list[int] = []
    rest = 0
    for part, whole in zip(parts, wholes, strict=True):
        rest += part
        now = min(max(0, (2 * rest + unit) // (2 * unit)), whole)
        rest -= now * unit
        found.append(now)
    return found
