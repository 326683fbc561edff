"""Generators: traces drawn from a seed, all columns at once.

lublin      rigid jobs of a parallel machine, after the model of Lublin and Feitelson (2003): sizes
            are serial or two-stage uniform in log2, often powers of two; run times come from two
            gamma distributions of their logarithm, mixed by size; gaps are gamma, bent by the hour
            of the day
gpu         training jobs of a shared GPU cluster, calibrated on summaries of five published ones.
            Philly, Helios, PAI, Seren and Kalos have this in common: most jobs want one GPU and end
            within minutes, a few want hundreds and run for days, and those few take most of the GPU
            time; every third job or so fails or is cancelled on the way
kueue_perf  the load of Kueue's own scheduler test: many small workloads, and nothing random. Five
            cohorts of six queues; each queue gets 350 small, 100 medium and 50 large workloads of
            one pod
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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

# ---- lublin --------------------------------------------------------------------------------------

SERIAL = 0.2927
POWER_OF_TWO = 0.6686
LOW_STAGE = 0.86
LOW = 0.8
BEND = 2.5  # the two stages meet this far below log2 of the machine
SHORT = (6.57, 0.823)  # shape and scale of ln(run)
LONG = (639.1, 0.0156)
LUBLIN_LONGEST_S = 162_754.0
GAP_SHAPE = 1.0225


def lublin(*, jobs: int = 10_000, processors: int = 256, load: float = 0.8, seed: int = 1) -> Trace:
    """Return jobs whose work is `load` times what the machine can do while they arrive."""
    if jobs < 1 or processors < 1 or not load > 0:
        raise BadTrace("lublin", "needs at least one job, one processor and a load above 0")
    size = _lublin_sizes(jobs, processors, random_source(seed, "lublin sizes"))
    run = _lublin_runs(size, random_source(seed, "lublin runs"))
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


def _lublin_sizes(jobs: int, processors: int, rng: RandomSource) -> IntArray:
    high = np.log2(processors)
    bend = max(high - BEND, LOW)
    is_low = rng.random(jobs) < LOW_STAGE
    logs = np.where(is_low, rng.uniform(LOW, bend, jobs), rng.uniform(bend, max(high, bend), jobs))
    is_power = rng.random(jobs) < POWER_OF_TWO
    size = np.round(2.0 ** np.where(is_power, np.round(logs), logs)).astype(np.int64)
    is_serial = rng.random(jobs) < SERIAL
    return np.where(is_serial, 1, np.clip(size, 1, processors))


def _lublin_runs(size: IntArray, rng: RandomSource) -> FloatArray:
    is_short = rng.random(len(size)) < np.clip(-0.0118 * size + 0.9156, 0.0, 1.0)
    logs = np.where(
        is_short,
        rng.gamma(SHORT[0], SHORT[1], len(size)),
        rng.gamma(LONG[0], LONG[1], len(size)),
    )
    return np.minimum(np.exp(logs), LUBLIN_LONGEST_S)


# ---- gpu -----------------------------------------------------------------------------------------

# GPUs of a job, and how many of a thousand jobs want so many.
SIZES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
PER_MILLE = np.array([700, 80, 70, 100, 25, 12, 8, 3.5, 0.5, 0.5, 0.5])
MEDIAN_S, SIGMA = 200.0, 2.6
TAIL, TAIL_MEDIAN_S, TAIL_SIGMA = 0.02, 86_400.0, 1.0
GPU_LONGEST_S = 30 * 86_400.0
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
    wanted = _gpu_sizes(jobs, gpus, random_source(seed, "gpu sizes"))
    planned = _gpu_runs(jobs, random_source(seed, "gpu runs"))
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


def _gpu_sizes(jobs: int, gpus: int, rng: RandomSource) -> IntArray:
    possible = gpus >= SIZES
    weights = PER_MILLE[possible] / PER_MILLE[possible].sum()
    return rng.choice(SIZES[possible], size=jobs, p=weights).astype(np.int64)


def _gpu_runs(jobs: int, rng: RandomSource) -> FloatArray:
    is_tail = rng.random(jobs) < TAIL
    median = np.where(is_tail, TAIL_MEDIAN_S, MEDIAN_S)
    sigma = np.where(is_tail, TAIL_SIGMA, SIGMA)
    run: FloatArray = median * np.exp(sigma * rng.standard_normal(jobs))
    return np.minimum(np.maximum(run, 1.0), GPU_LONGEST_S)


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


# ---- kueue-perf ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Class:
    """Workloads of one class, in every queue."""

    name: str
    count: int
    cpu: int  # cores
    priority: int
    run_s: float
    every_s: float


CLASSES = (
    Class("small", 350, 1, 50, 0.2, 0.1),
    Class("medium", 100, 5, 100, 0.5, 0.5),
    Class("large", 50, 20, 200, 1.0, 1.2),
)
CPU_PER_QUEUE = 20  # nominal quota, cores


def kueue_perf(*, cohorts: int = 5, queues: int = 6, share: float = 1.0) -> Trace:
    """Return the load, or a share of every class of it; queues are called cohort-N-queue-M."""
    if cohorts < 1 or queues < 1 or not 0 < share <= 1:
        raise BadTrace("kueue-perf", "needs cohorts and queues, and a share above 0 and up to 1")
    classes = [replace(one, count=max(1, round(one.count * share))) for one in CLASSES]
    counts = [one.count for one in classes]
    number_in_class = np.concatenate([np.arange(count) for count in counts])
    of_class = np.repeat(np.arange(len(classes)), counts)
    everywhere = cohorts * queues
    columns = np.array([[one.cpu, one.priority, one.run_s, one.every_s] for one in classes])
    cpu, priority, run, every = np.tile(columns[of_class], (everywhere, 1)).T
    queue = np.repeat(np.arange(everywhere), len(number_in_class))
    return make_trace(
        "kueue-perf",
        submit=np.tile(number_in_class, everywhere) * every,
        run=run,
        cpu=(1000 * cpu).astype(np.int64),
        priority=priority.astype(np.int64),
        user=np.tile(np.array([one.name for one in classes])[of_class], everywhere),
        group=np.array([f"cohort-{place // queues}" for place in range(everywhere)])[queue],
        queue=np.array(
            [f"cohort-{place // queues}-queue-{place % queues}" for place in range(everywhere)]
        )[queue],
        status=FINISHED,
        processors=everywhere * CPU_PER_QUEUE,
    )


# ---- when jobs come, and what users request ------------------------------------------------------

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
