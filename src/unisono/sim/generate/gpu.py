"""Training jobs of a shared GPU cluster, calibrated on summaries of five published ones.

Philly, Helios, PAI, Seren and Kalos have this in common: most jobs want one GPU and end within
minutes, a few want hundreds and run for days, and those few take most of the GPU time; every third
job or so fails or is cancelled on the way.
"""

from __future__ import annotations

import numpy as np

from unisono.sim.generate.arrivals import LONG_S, POPULAR_S, arrivals, requests
from unisono.sim.random_source import RandomSource, random_source
from unisono.sim.trace import (
    CANCELLED,
    FAILED,
    FINISHED,
    BadTrace,
    FloatArray,
    IntArray,
    Trace,
    make_trace,
    split_gpus,
)

# GPUs of a job, and how many of a thousand jobs want so many.
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
PER_MILLE = np.array([700, 80, 70, 100, 25, 12, 8, 3.5, 0.5, 0.5, 0.5])
MEDIAN_S, SIGMA = 200.0, 2.6
TAIL, TAIL_MEDIAN_S, TAIL_SIGMA = 0.02, 86_400.0, 1.0
LONGEST_S = 30 * 86_400.0
FAILING, CANCELLING = 0.30, 0.10
USERS, ZIPF = 200, 1.2
# CPU and memory per GPU on common training machines.
CPU_PER_GPU, MEMORY_PER_GPU = 8000, 64 * 1024


def gpu(
    *, jobs: int = 10_000, gpus: int = 8000, load: float = 0.9, teams: int = 4, seed: int = 1
) -> Trace:
    """Return jobs for a cluster of so many GPUs; a job never wants more than there are."""
    if jobs < 1 or gpus < 1 or teams < 1 or not load > 0:
        raise BadTrace("gpu", "needs at least one job, one GPU, one team and a load above 0")
    wanted = _sizes(jobs, gpus, random_source(seed, "gpu sizes"))
    planned = _runs(jobs, random_source(seed, "gpu runs"))
    run, status = _cut_short(planned, random_source(seed, "gpu failures"))
    user = _users(jobs, random_source(seed, "gpu users"))
    pods, each = split_gpus(wanted)
    gaps = random_source(seed, "gpu gaps").exponential(size=jobs)
    span = float((wanted * run).sum()) / (gpus * load)
    return make_trace(
        f"gpu-{jobs}",
        submit=arrivals(gaps, span),
        run=run,
        # Users request the time of the whole job, not the time until it fails.
        request=requests(
            planned, random_source(seed, "gpu requests"), np.concatenate([POPULAR_S, LONG_S])
        ),
        pods=pods,
        cpu=each * CPU_PER_GPU,
        memory=each * MEMORY_PER_GPU,
        gpus=each,
        user=np.char.add("user-", (user + 1).astype(np.str_)),
        queue=np.char.add("team-", (user % teams + 1).astype(np.str_)),
        status=status,
        processors=gpus,
    )


def _sizes(jobs: int, gpus: int, rng: RandomSource) -> IntArray:
    possible = gpus >= SIZES
    weights = PER_MILLE[possible] / PER_MILLE[possible].sum()
    return rng.choice(SIZES[possible], size=jobs, p=weights).astype(np.int64)


def _runs(jobs: int, rng: RandomSource) -> FloatArray:
    is_tail = rng.random(jobs) < TAIL
    median = np.where(is_tail, TAIL_MEDIAN_S, MEDIAN_S)
    sigma = np.where(is_tail, TAIL_SIGMA, SIGMA)
    run: FloatArray = median * np.exp(sigma * rng.standard_normal(jobs))
    return np.minimum(np.maximum(run, 1.0), LONGEST_S)


def _cut_short(planned: FloatArray, rng: RandomSource) -> tuple[FloatArray, IntArray]:
    """Return true run times: failed and cancelled jobs end at a uniform fraction."""
    fate = rng.random(len(planned))
    status = np.where(
        fate < FAILING, FAILED, np.where(fate < FAILING + CANCELLING, CANCELLED, FINISHED)
    )
    fraction = np.where(status == FINISHED, 1.0, rng.random(len(planned)))
    return np.maximum(planned * fraction, 1.0), status


def _users(jobs: int, rng: RandomSource) -> IntArray:
    weights = 1.0 / np.arange(1, USERS + 1) ** ZIPF
    return rng.choice(USERS, size=jobs, p=weights / weights.sum()).astype(np.int64)
