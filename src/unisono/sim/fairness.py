"""How fairly the queues of a trace were served.

Jain index          (sum x)^2 / (n * sum x^2) of x = work / entitlement, over the n queues with
                    demand: 1 is equal, 1/n is everything for one queue
  hourly            of every hour in which at least two queues had jobs waiting throughout
  overall           of the time from the first submission to the last; once everything has run,
                    every policy has given each queue the same
shortfall           the largest part of its nominal share that a queue with waiting jobs missed
                    in an hour in which another had more than its own
finish-time ratio   response / the response that the job would have had alone with its queue on
                    an equal part of the cluster, first come, first served
"""

from __future__ import annotations

import heapq

import msgspec
import numpy as np
from numpy.typing import NDArray

from unisono.sim.outcome import Outcome
from unisono.sim.trace import FloatArray

HOUR_S = 3600.0
NAN = float("nan")
# Hours of a trace that are looked at one by one; a longer one is cut into longer "hours", so that
# memory stays bounded: more than five years of real hours fit.
MOST_HOURS = 50_000


class Fairness(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How equal queues were; NaN where there were not two of them."""

    jain: float = NAN
    jain_hourly: float = NAN  # mean over contended hours
    jain_worst_hour: float = NAN
    contended_hours: int = 0
    shortfall: float = NAN
    finish_time_ratio: float = NAN  # mean over jobs
    finish_time_ratio_worst_queue: float = NAN  # the largest mean of a queue


def fairness(outcome: Outcome, size: FloatArray, capacity: float) -> Fairness:
    """Return how equal the queues of an outcome were, counting work in `size` per second."""
    queues = np.unique(outcome.trace.queue)
    # A queue that is entitled to nothing has no share to compare.
    queues = queues[outcome.entitlement[queues] > 0]
    if len(queues) < 2:
        return Fairness()
    marks = _marks(outcome.trace.submit)
    work = np.array([_work(outcome, size, queue, marks) for queue in queues])
    waiting = np.array([_waits_throughout(outcome, queue, marks) for queue in queues])
    entitled = outcome.entitlement[queues] / outcome.entitlement[queues].sum()
    ratios = work / entitled[:, None]
    contended = waiting.sum(axis=0) >= 2
    hourly = np.array([jain(ratios[waiting[:, at], at]) for at in np.flatnonzero(contended)])
    hourly = hourly[~np.isnan(hourly)]  # no information: none of them got anything
    nominal = entitled[:, None] * capacity * np.diff(marks)
    alone = _finish_time_ratios(outcome, size, capacity / len(queues))
    return Fairness(
        jain=jain(ratios.sum(axis=1)),
        jain_hourly=float(hourly.mean()) if len(hourly) else NAN,
        jain_worst_hour=float(hourly.min()) if len(hourly) else NAN,
        contended_hours=len(hourly),
        shortfall=_shortfall(work, nominal, waiting),
        finish_time_ratio=alone[0],
        finish_time_ratio_worst_queue=alone[1],
    )


def jain(values: FloatArray) -> float:
    """Return Jain's index of fairness; NaN if all values are 0.

    >>> jain(np.array([1.0, 1.0, 1.0])), jain(np.array([3.0, 0.0, 0.0]))
    (1.0, 0.3333333333333333)
    """
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares > 0 else NAN


def _marks(submit: FloatArray) -> FloatArray:
    """Return the hours from the first submission to the last, at least one."""
    span = max(float(submit[-1] - submit[0]), HOUR_S)
    count = int(min(span // HOUR_S, MOST_HOURS))
    marks: FloatArray = submit[0] + np.linspace(0.0, span, count + 1)
    return marks


def _work(outcome: Outcome, size: FloatArray, queue: int, marks: FloatArray) -> FloatArray:
    """Return what a queue's jobs used in every hour."""
    ran = outcome.run_intervals
    own = outcome.trace.queue[ran.job] == queue
    rate = size[ran.job[own]]
    times, rates = _steps(ran.start[own], ran.end[own], rate)
    used = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times))])
    if not len(times):
        return np.zeros(len(marks) - 1)
    reached: FloatArray = np.interp(marks, times, used)
    return np.diff(reached)


def _steps(up: FloatArray, down: FloatArray, amount: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the times at which a sum over intervals changes, and the sum from each on."""
    times, place = np.unique(np.concatenate([up, down]), return_inverse=True)
    change = np.bincount(place, np.concatenate([amount, -amount]), len(times))
    return times, np.cumsum(change)


def _waits_throughout(outcome: Outcome, queue: int, marks: FloatArray) -> NDArray[np.bool_]:
    """Say for every hour whether the queue had a waiting job at every moment of it."""
    trace, ran = outcome.trace, outcome.run_intervals
    own, own_ran = trace.queue == queue, trace.queue[ran.job] == queue
    gone = outcome.end[own & ~np.isnan(outcome.end)]
    times = np.concatenate([trace.submit[own], ran.end[own_ran], ran.start[own_ran], gone])
    # Submitted or stopped: one more pending. Started: one fewer. Completed: it does not queue
    # again.
    change = np.concatenate(
        [
            np.ones(int(own.sum()) + int(own_ran.sum())),
            -np.ones(int(own_ran.sum()) + len(gone)),
        ]
    )
    instants, place = np.unique(times, return_inverse=True)
    pending = np.cumsum(np.bincount(place, change, len(instants)))
    # The least in an hour: what it began with, and every value that began inside.
    before = np.searchsorted(instants, marks[:-1], side="right") - 1
    least = np.where(before >= 0, pending[np.maximum(before, 0)], 0.0)
    hour = np.searchsorted(marks, instants, side="right") - 1
    inside = (hour >= 0) & (hour < len(least))
    np.minimum.at(least, hour[inside], pending[inside])
    return least > 0.5


def _shortfall(work: FloatArray, nominal: FloatArray, waiting: NDArray[np.bool_]) -> float:
    over = work > nominal * (1 + 1e-9)
    others_over = (over.sum(axis=0) - over) > 0
    short = np.where(waiting & others_over, (nominal - work) / nominal, 0.0)
    return float(np.maximum(short, 0.0).max(initial=0.0))


def _finish_time_ratios(outcome: Outcome, size: FloatArray, part: float) -> tuple[float, float]:
    """Return the mean ratio of all jobs, and the largest mean of a queue."""
    trace = outcome.trace
    run = outcome.running - outcome.lost
    done = ~np.isnan(outcome.end) & (run > 0)
    ratios = np.full(len(trace), np.nan)
    for queue in np.unique(trace.queue[done]):
        rows = np.flatnonzero(done & (trace.queue == queue))
        alone = _alone(trace.submit[rows], run[rows], size[rows], part)
        ratios[rows] = (outcome.end[rows] - trace.submit[rows]) / alone
    if not done.any():
        return NAN, NAN
    means = [float(np.nanmean(ratios[trace.queue == t])) for t in np.unique(trace.queue[done])]
    return float(ratios[done].mean()), max(means)


def _alone(submit: FloatArray, run: FloatArray, size: FloatArray, part: float) -> FloatArray:
    """Return responses on a cluster of `part`, first come, first served.

    A job that is larger than the part runs on all of it, for longer in proportion.
    """
    width = np.minimum(size, part)
    length = run * np.where(width > 0, size / np.where(width > 0, width, 1.0), 1.0)
    ends: list[tuple[float, float]] = []
    free, now = part, float("-inf")
    response = np.empty(len(submit))
    rows = zip(submit.tolist(), length.tolist(), width.tolist(), strict=True)
    for row, (at, long, wide) in enumerate(rows):
        now = max(now, at)
        while ends and ends[0][0] <= now:
            free += heapq.heappop(ends)[1]
        while free < wide - 1e-9 and ends:
            end, freed = heapq.heappop(ends)
            now, free = max(now, end), free + freed
        free -= wide
        heapq.heappush(ends, (now + long, wide))
        response[row] = now + long - at
    return response
