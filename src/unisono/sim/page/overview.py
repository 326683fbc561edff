"""The whole run at a glance: curves, and how much of every band of nodes was in use when.

A picture of at most 96 by 240 cells, whatever the size of the cluster and the length of the run.
Needs recorded nodes; without them, the curve of the utilisation says as much.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from unisono.sim.measures import counts_gpus
from unisono.sim.outcome import Outcome, Spans
from unisono.sim.page.gantt import ALL, node_sizes, run_of
from unisono.sim.trace import FloatArray

ROWS, COLUMNS = 96, 240
_FULL = 255


def overview(shown: Sequence[Outcome]) -> dict[str, Any] | None:
    """Return the window on the whole run; None where it would say nothing new."""
    if len(shown[0].trace) <= ALL or any(outcome.spans is None for outcome in shown):
        return None
    first, last = run_of(shown)
    edges = edges_of(first, last, COLUMNS)
    return {
        "title": "the whole run, node by node",
        "start": first,
        "length": last - first,
        "charts": [_chart(outcome, outcome.spans, edges) for outcome in shown if outcome.spans],
    }


def _chart(outcome: Outcome, spans: Spans, edges: FloatArray) -> dict[str, Any]:
    cells = occupancy(outcome, spans, edges)
    packed = base64.b64encode(np.round(_FULL * np.clip(cells, 0, 1)).astype(np.uint8).tobytes())
    rows = cells.shape[0]
    names = np.array_split(np.array(spans.names, np.str_), rows)
    return {
        "bars": [],
        "jobs": [],
        "columns": COLUMNS,
        "cells": packed.decode(),
        "rows": [str(one[0]) if len(one) == 1 else f"{one[0]} to {one[-1]}" for one in names],
    }


def occupancy(outcome: Outcome, spans: Spans, edges: FloatArray) -> FloatArray:
    """Return the share in use of each band of nodes, in each part of the run."""
    trace = outcome.trace
    rows = min(len(spans.names), ROWS)
    # The same split as that of the names: equal counts of neighbours.
    groups = np.array_split(np.arange(len(spans.names)), rows)
    band = np.concatenate([np.full(len(one), place) for place, one in enumerate(groups)])
    sizes = np.bincount(band, np.asarray(node_sizes(outcome), np.float64), rows)
    each = trace.gpus * trace.gpu_milli if counts_gpus(outcome) else trace.cpu
    amount = (each[spans.job] * spans.pods).astype(np.float64)
    found = np.zeros((rows, len(edges) - 1))
    of_band = band[spans.node]
    order = np.argsort(of_band, kind="stable")
    parts = np.split(order, np.searchsorted(of_band[order], np.arange(1, rows)))
    for row, inside in enumerate(parts):
        times, place = np.unique(
            np.concatenate([spans.start[inside], spans.end[inside]]), return_inverse=True
        )
        change = np.bincount(place, np.concatenate([amount[inside], -amount[inside]]), len(times))
        found[row] = binned(times, np.cumsum(change), edges) / max(sizes[row], 1.0)
    return found


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
