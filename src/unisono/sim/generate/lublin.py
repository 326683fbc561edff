"""Rigid jobs of a parallel machine, after the model of Lublin and Feitelson (2003).

Sizes are serial or two-stage uniform in log2, often powers of two; run times come from two gamma
distributions of their logarithm, mixed by size; gaps are gamma, bent by the hour of the day.
"""

from __future__ import annotations

import numpy as np

from unisono.sim.generate.arrivals import arrivals, requests
from unisono.sim.random_source import RandomSource, random_source
from unisono.sim.trace import FINISHED, BadTrace, FloatArray, IntArray, Trace, make_trace

SERIAL = 0.2927
POWER_OF_TWO = 0.6686
LOW_STAGE = 0.86
LOW = 0.8
BEND = 2.5  # the two stages meet this far below log2 of the machine
SHORT = (6.57, 0.823)  # shape and scale of ln(run)
LONG = (639.1, 0.0156)
LONGEST_S = 162_754.0
GAP_SHAPE = 1.0225


def lublin(*, jobs: int = 10_000, processors: int = 256, load: float = 0.8, seed: int = 1) -> Trace:
    """Return jobs whose work is `load` times what the machine can do while they arrive."""
    if jobs < 1 or processors < 1 or not load > 0:
        raise BadTrace("lublin", "needs at least one job, one processor and a load above 0")
    size = _sizes(jobs, processors, random_source(seed, "lublin sizes"))
    run = _runs(size, random_source(seed, "lublin runs"))
    gaps = random_source(seed, "lublin gaps").gamma(GAP_SHAPE, size=jobs)
    span = float((size * run).sum()) / (processors * load)
    return make_trace(
        f"lublin-{jobs}",
        submit=arrivals(gaps, span),
        run=run,
        request=requests(run, random_source(seed, "lublin requests")),
        pods=size,
        cpu=1000,
        status=FINISHED,
        processors=processors,
    )


def _sizes(jobs: int, processors: int, rng: RandomSource) -> IntArray:
    high = np.log2(processors)
    bend = max(high - BEND, LOW)
    is_low = rng.random(jobs) < LOW_STAGE
    logs = np.where(is_low, rng.uniform(LOW, bend, jobs), rng.uniform(bend, max(high, bend), jobs))
    is_power = rng.random(jobs) < POWER_OF_TWO
    size = np.round(2.0 ** np.where(is_power, np.round(logs), logs)).astype(np.int64)
    is_serial = rng.random(jobs) < SERIAL
    return np.where(is_serial, 1, np.clip(size, 1, processors))


def _runs(size: IntArray, rng: RandomSource) -> FloatArray:
    is_short = rng.random(len(size)) < np.clip(-0.0118 * size + 0.9156, 0.0, 1.0)
    logs = np.where(
        is_short,
        rng.gamma(SHORT[0], SHORT[1], len(size)),
        rng.gamma(LONG[0], LONG[1], len(size)),
    )
    return np.minimum(np.exp(logs), LONGEST_S)
