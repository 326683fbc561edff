"""Shaking: a trace with every arrival moved a little, to see how much a result depends on them.

Results of a single trace are known to be fragile: a job that comes a second later may fit a gap it
missed before, and everything after it changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unisono.sim.dice import dice
from unisono.sim.trace import Trace

UP_TO_S = 30.0
REPLICAS = 20


def shaken(trace: Trace, *, seed: int, up_to_s: float = UP_TO_S) -> Trace:
    """Return the trace with every arrival moved by up to so much, either way, but not before 0."""
    moved = dice(seed, "shaking").uniform(-up_to_s, up_to_s, len(trace))
    earliest = min(0.0, float(trace.submit[0])) if len(trace) else 0.0
    return trace.with_submits(np.maximum(trace.submit + moved, earliest))


def replicas(trace: Trace, *, seed: int, count: int = REPLICAS) -> Iterator[tuple[int, Trace]]:
    """Yield shaken replicas with a seed of each."""
    for number in range(seed, seed + count):
        yield number, shaken(trace, seed=number)
