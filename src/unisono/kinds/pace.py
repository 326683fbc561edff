"""How fast the ranks of a gang are, compared with each other (semantics monitoring §8).

Each rank counts with the median of its last steps, t. Over a gang:

    M = median(t)      s = max(1.4826 · median(|t - M|), 2 % of M)      score = (t - M) / s

so that a score says how unusual a rank is among its own, not how slow the program is. A rank holds
the others up if its score is over 3 and it is a tenth slower than the median: where all are nearly
alike, a high score means nothing by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple

from unisono.kinds.json_texts import read_json

PROGRESS = "unisono.dev/progress"
# As many steps of a rank are remembered.
MOST_STEPS = 20
_TO_DEVIATION = 1.4826  # of a normal distribution, from the median of absolute deviations
_LEAST_PART = 0.02  # what less than that differs by is noise
_HIGH = 3.0
_SLOWER = 1.1


class Pace(NamedTuple):
    """How far a rank is, and how long its steps took lately."""

    step: int
    at: str  # when that was reported
    steps: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """How long a step takes; 0 if that is not known."""
        return median(self.steps) if self.steps else 0.0


class Rank(NamedTuple):
    """How one rank does among the others."""

    seconds: float
    score: float
    factor: float  # of the median

    @property
    def is_slow(self) -> bool:
        """Whether it holds the others up."""
        return self.score > _HIGH and self.factor > _SLOWER


def pace_of(annotations: Mapping[str, str] | None) -> Pace | None:
    """Read what a pod says; None if it says nothing that can be read."""
    text = (annotations or {}).get(PROGRESS)
    if not text:
        return None
    try:
        report = read_json(text)
        steps = tuple(float(one) for one in report.get("paces") or ())[-MOST_STEPS:]
        return Pace(int(report["step"]), str(report["at"]), tuple(filter(_is_time, steps)))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def _is_time(seconds: float) -> bool:
    return math.isfinite(seconds) and seconds > 0


def ranked(times: Mapping[str, float]) -> dict[str, Rank]:
    """Compare ranks by the seconds that a step takes each of them.

    >>> steps = (1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01, 1.25)
    >>> [round(one.score, 2) for one in ranked(dict(zip("abcdefgh", steps))).values()][-2:]
    [0.25, 12.19]
    """
    if not times:
        return {}
    middle = median(times.values())
    deviation = median(abs(one - middle) for one in times.values())
    scale = max(_TO_DEVIATION * deviation, _LEAST_PART * middle)
    if scale <= 0:
        return {}
    return {name: Rank(one, (one - middle) / scale, one / middle) for name, one in times.items()}
