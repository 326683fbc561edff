"""An outcome in figures: waits, slowdowns, utilisation, loss, fairness, effort.

Definitions, exact because others compare with them:

    wait               first start - submit
    total wait         completion - submit - time running
    response           completion - submit
    bounded slowdown   max(1, response / max(run, 10 s)); per processor, divided by the size, too
    95th percentile    the element with index floor(0.95 n) of the ascending list
    makespan           last completion - first submit
    utilisation        work done / (capacity * makespan); also within the window from the first
                       submission to the last, because the drain after it distorts short traces
    paid for and used  useful work / (what machines have * the time that they were paid for)
    goodput            useful work / all that was held: progress lost to preemption and failures and
                       what a gang held before it was whole are not useful

Work is counted in GPUs on a cluster that has some, else in CPUs. A run is the time a job ran
without what it lost, so that a job cut at its limit counts with the time it had. Jobs that never
started have no wait, and jobs that never completed no response.
"""

from __future__ import annotations

import msgspec
import numpy as np

from unisono.sim.fairness import Fairness, fairness
from unisono.sim.outcome import Outcome
from unisono.sim.trace import FloatArray, IntArray

TAU_S = 10.0  # shorter jobs count as this long: the slowdown of a one-second job does not matter
NAN = float("nan")
_HOUR_S = 3600.0
# A job starves if it waits this many times the median wait, which counts as at least TAU_S. Jobs
# that start at once are left out of the median: where most do, all others would count as starving.
STARVING = 10


class Spread(msgspec.Struct, frozen=True):
    """A column in four figures."""

    mean: float
    median: float
    p95: float
    largest: float


class Measures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One outcome in figures; times in seconds, NaN where there is nothing to measure."""

    jobs: int
    started: int
    completed: int
    wait: Spread
    total_wait: Spread
    response: Spread
    slowdown: Spread  # bounded
    slowdown_per_processor: Spread
    makespan: float
    utilisation: float
    utilisation_window: float
    gpu_allocation: float  # mean share of all GPUs in use, first submission to last completion
    gpu_allocation_peak: float
    goodput: float
    gang_waste: float  # GPU-seconds
    fragmentation: float  # of all GPUs, mean over time
    fragmentation_of_idle: float
    fairness: Fairness
    preemptions: int
    reclaims: int
    interruptions: int  # of jobs, by nodes that failed
    lost: float  # GPU-seconds, or CPU-seconds
    starving: int
    queue_mean: float  # jobs that wait, mean over time
    queue_largest: int
    decisions: int
    policy_cpu: float  # s
    speed: float  # simulated seconds in one of the wall
    cost: float = NAN  # US$ for all machines that were paid for
    cost_of_work: float = NAN  # US$ for an hour of a GPU (or a CPU) that did useful work
    machine_hours: float = NAN
    machines_peak: float = NAN
    paid_used: float = NAN  # the part of what was paid for that did useful work


def measure(outcome: Outcome) -> Measures:
    """Return every figure of an outcome."""
    trace, effort = outcome.trace, outcome.effort
    wait = waits(outcome)
    done = ~np.isnan(outcome.end)
    response = (outcome.end - trace.submit)[done]
    # A wait is never negative; differences of large times may come out a hair below.
    total_wait = np.maximum(response - outcome.running[done], 0.0)
    slow = slowdowns(outcome)
    makespan = _makespan(outcome)
    in_use = _in_use(outcome)
    fragmented, of_idle = _fragmentation(outcome)
    gpu_mean, gpu_peak = _share(outcome.depth.gpu_milli, outcome, outcome.capacity.gpu_milli)
    return Measures(
        jobs=len(trace),
        started=int((~np.isnan(outcome.start)).sum()),
        completed=int(done.sum()),
        wait=spread(wait),
        total_wait=spread(total_wait),
        response=spread(response),
        slowdown=spread(slow),
        slowdown_per_processor=spread(slowdowns(outcome, per_processor=True)),
        makespan=makespan,
        utilisation=_ratio(float(_useful(outcome).sum()), capacity(outcome) * makespan),
        utilisation_window=in_use,
        gpu_allocation=gpu_mean,
        gpu_allocation_peak=gpu_peak,
        goodput=_goodput(outcome),
        gang_waste=float(outcome.held.sum()),
        fragmentation=fragmented,
        fragmentation_of_idle=of_idle,
        fairness=fairness(outcome, sizes(outcome), capacity(outcome)),
        preemptions=int(outcome.preemptions.sum()),
        reclaims=int(outcome.reclaims.sum()),
        interruptions=outcome.interruptions,
        lost=float((sizes(outcome) * outcome.lost).sum()),
        starving=_starving(wait),
        queue_mean=_time_mean(outcome.depth.time, outcome.depth.pending.astype(np.float64)),
        queue_largest=int(outcome.depth.pending.max(initial=0)),
        decisions=effort.decisions,
        policy_cpu=effort.cpu_s,
        speed=_ratio(makespan, effort.wall_s),
        **_money(outcome),
    )


def _money(outcome: Outcome) -> dict[str, float]:
    """Return what machines cost, and what they were used for."""
    bill = outcome.bill
    if bill is None:
        return {}
    useful = float(_useful(outcome).sum())
    return {
        "cost": bill.cost,
        "cost_of_work": _ratio(bill.cost * _HOUR_S, useful),
        "machine_hours": bill.machine_hours,
        "machines_peak": float(bill.peak()),
        "paid_used": _ratio(useful, bill.paid(gpus=counts_gpus(outcome))),
    }


def waits(outcome: Outcome) -> FloatArray:
    """Return the waits of the jobs that started."""
    wait = outcome.start - outcome.trace.submit
    return wait[~np.isnan(wait)]


def slowdowns(outcome: Outcome, *, per_processor: bool = False) -> FloatArray:
    """Return the bounded slowdowns of the jobs that completed."""
    done = ~np.isnan(outcome.end)
    response = (outcome.end - outcome.trace.submit)[done]
    run = (outcome.running - outcome.lost)[done]
    return bounded_slowdown(
        # Less than one is one: a small part of a GPU is no slower than a whole one.
        response,
        run,
        np.maximum(sizes(outcome)[done], 1.0) if per_processor else 1.0,
    )


def bounded_slowdown(
    response: FloatArray | float, run: FloatArray | float, size: FloatArray | float = 1.0
) -> FloatArray:
    """Return max(1, response / (size * max(run, 10 s))).

    >>> [round(float(bounded_slowdown(wait + run, run)), 2) for wait, run in [(90, 1), (5, 100)]]
    [9.1, 1.05]
    """
    return np.maximum(1.0, np.asarray(response) / (size * np.maximum(run, TAU_S)))


def spread(values: FloatArray) -> Spread:
    """Return mean, median, 95th percentile and maximum; NaN of nothing.

    >>> spread(np.arange(1.0, 21.0)).p95
    20.0
    """
    if not len(values):
        return Spread(NAN, NAN, NAN, NAN)
    ascending = np.sort(values)
    p95 = ascending[95 * len(ascending) // 100]
    return Spread(
        float(values.mean()), float(np.median(ascending)), float(p95), float(ascending[-1])
    )


def counts_gpus(outcome: Outcome) -> bool:
    """Say whether work is counted in GPUs: on a cluster that has some, if any job requests one."""
    return outcome.capacity.gpu_milli > 0 and bool(outcome.trace.gpus.any())


def sizes(outcome: Outcome) -> FloatArray:
    """Return the size of every job, in GPUs or CPUs."""
    trace = outcome.trace
    return (trace.job_gpu_milli if counts_gpus(outcome) else trace.job_cpu) / 1000


def capacity(outcome: Outcome) -> float:
    """Return the size of the cluster, in GPUs or CPUs."""
    has = outcome.capacity
    return (has.gpu_milli if counts_gpus(outcome) else has.cpu) / 1000


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else NAN


def _useful(outcome: Outcome) -> FloatArray:
    return sizes(outcome) * (outcome.running - outcome.lost)


def _goodput(outcome: Outcome) -> float:
    useful = float(_useful(outcome).sum())
    taken = float((sizes(outcome) * outcome.running).sum()) + float(outcome.held.sum())
    return _ratio(useful, taken)


def _makespan(outcome: Outcome) -> float:
    ends = outcome.end[~np.isnan(outcome.end)]
    return float(ends.max() - outcome.trace.submit[0]) if len(ends) else NAN


def _in_use(outcome: Outcome) -> float:
    """Return the share of the cluster in use from the first submission to the last."""
    submit = outcome.trace.submit
    if not len(submit):
        return NAN
    first, last = float(submit[0]), float(submit[-1])
    ran = outcome.run_intervals
    within = np.clip(ran.end, first, last) - np.clip(ran.start, first, last)
    return _ratio(
        float((sizes(outcome)[ran.job] * within).sum()), capacity(outcome) * (last - first)
    )


def _share(used: IntArray, outcome: Outcome, whole: int) -> tuple[float, float]:
    """Return the mean and the largest share of something that was in use."""
    if not whole or not len(used):
        return NAN, NAN
    shares = used / whole
    return _time_mean(outcome.depth.time, shares), float(shares.max())


def _time_mean(time: FloatArray, values: FloatArray) -> float:
    """Return the mean of a step series; every value holds until the next time."""
    if len(time) < 2:
        return NAN
    return _ratio(float((values[:-1] * np.diff(time)).sum()), float(time[-1] - time[0]))


def _fragmentation(outcome: Outcome) -> tuple[float, float]:
    found = outcome.fragments
    if found is None or not len(found.time) or not outcome.capacity.gpu_milli:
        return NAN, NAN
    mean = _time_mean(found.time, found.fragmented)
    return mean / outcome.capacity.gpu_milli, _ratio(mean, _time_mean(found.time, found.idle))


def _starving(wait: FloatArray) -> int:
    waited = wait[wait > 0]
    usual = max(float(np.median(waited)), TAU_S) if len(waited) else TAU_S
    return int((waited > STARVING * usual).sum())
