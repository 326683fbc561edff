"""Curves for a page: step series and columns of any length, as a few hundred points."""

from __future__ import annotations

import numpy as np

from unisono.sim.trace import FloatArray

BINS = 360  # a chart is about 720 pixels wide: two pixels per bin
CDF_POINTS = 120


def edges_of(first: float, last: float, bins: int = BINS) -> FloatArray:
    """Return the edges of equal parts of an interval."""
    edges: FloatArray = np.linspace(first, max(last, first + 1.0), bins + 1)
    return edges


def binned(time: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the mean of a step series in every part; before its first time it is zero.

    >>> binned(np.array([0.0, 1.0]), np.array([4.0, 0.0]), np.array([0.0, 2.0, 4.0])).tolist()
    [2.0, 0.0]
    """
    if not len(time):
        return np.zeros(len(edges) - 1)
    end = max(float(edges[-1]), float(time[-1]) + 1.0)
    times = np.concatenate([[min(float(edges[0]), float(time[0])) - 1.0], time, [end]])
    rates = np.concatenate([[0.0], values])
    area = np.concatenate([[0.0], np.cumsum(rates * np.diff(times))])
    means: FloatArray = np.diff(np.interp(edges, times, area)) / np.diff(edges)
    return means


def peaks(time: FloatArray, values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the largest value of a step series in every part."""
    found = np.zeros(len(edges) - 1)
    if not len(time):
        return found
    before = np.searchsorted(time, edges[:-1], side="right") - 1
    found = np.where(before >= 0, values[np.maximum(before, 0)], 0.0)
    part = np.searchsorted(edges, time, side="right") - 1
    inside = (part >= 0) & (part < len(found))
    np.maximum.at(found, part[inside], values[inside])
    return found


def wait_grid(largest: float) -> FloatArray:
    """Return waits from a second to the largest, equally far apart on a log scale."""
    grid: FloatArray = np.geomspace(1.0, max(largest, 10.0), CDF_POINTS)
    return grid


def shares_up_to(values: FloatArray, grid: FloatArray, count: int) -> FloatArray:
    """Return which share of `count` is at most each point of the grid."""
    return np.searchsorted(np.sort(values), grid, side="right") / max(count, 1)
