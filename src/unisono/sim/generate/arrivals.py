"""Arrival times and requested time limits, as all generators draw them."""

from __future__ import annotations

import numpy as np

from unisono.sim.random_source import RandomSource
from unisono.sim.trace import FloatArray

DAY_S = 86_400.0
_STEPS = 24 * 12  # of a day, five minutes each: fine enough that hours do not show as corners
_SWING = 0.7  # by how much the busiest hour is above the mean, and the quietest below
_BUSIEST_H = 14

_MINUTE, _HOUR = 60.0, 3600.0
# Time limits that users like to write.
POPULAR_S = np.array(
    [5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE]
    + [hours * _HOUR for hours in (1, 2, 3, 4, 6, 8, 12, 18, 24, 48)]
)
LONG_S = np.array([hours * _HOUR for hours in (72, 96, 120, 168, 336, 720)])


def arrivals(gaps: FloatArray, span: float) -> FloatArray:
    """Return arrival times from 0 to `span`, in proportion to the gaps, more of them by day.

    The gaps are walked through at the pace of the hour: an hour of weight 2 passes twice as many
    jobs. The first gap leads to the first job, which stands at 0.
    """
    if len(gaps) < 2:
        return np.zeros(len(gaps))
    walked = np.cumsum(gaps) - gaps[0]
    grid = np.linspace(0.0, span, max(2, int(np.ceil(span / DAY_S * _STEPS)) + 1))
    hours = grid / _HOUR
    # The integral of 1 + swing * cos(2 pi (h - busiest) / 24).
    turn = 2 * np.pi / 24
    passed = hours + _SWING / turn * np.sin(turn * (hours - _BUSIEST_H))
    passed -= passed[0]
    moments: FloatArray = np.interp(walked / walked[-1] * passed[-1], passed, grid)
    return moments


def requests(run: FloatArray, rng: RandomSource, popular: FloatArray = POPULAR_S) -> FloatArray:
    """Return requested times: the smallest popular value at or above run / U(0.05, 1)."""
    wanted = run / rng.uniform(0.05, 1.0, len(run))
    places = np.searchsorted(popular, wanted)
    asked = popular[np.minimum(places, len(popular) - 1)]
    return np.maximum(asked, run)  # beyond the longest popular value users request what they need
