"""Figures of random outcomes, with interruptions, against the plainest loops that define them."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import numpy as np
import pytest

from unisono.sim.fairness import jain
from unisono.sim.measures import measure
from unisono.sim.outcome import Capacity, Outcome, RunIntervals, make_outcome
from unisono.sim.trace import make_trace

HOUR = 3600.0
Stretch = tuple[float, float]


def wild(seed: int) -> tuple[Outcome, list[list[Stretch]]]:
    """Return an outcome in which jobs are interrupted now and then, and when each of them ran.

    It need not be possible on its cluster: figures only count.
    """
    rng = random.Random(seed)
    count = rng.randint(2, 25)
    trace = make_trace(
        "wild",
        submit=[rng.choice([0, HOUR, rng.uniform(0, 6 * HOUR)]) for _ in range(count)],
        run=[rng.choice([1, 600, 2 * HOUR, rng.uniform(1, 5 * HOUR)]) for _ in range(count)],
        pods=[rng.randint(1, 3) for _ in range(count)],
        gpus=[rng.randint(1, 4) for _ in range(count)],
        queue=[rng.choice("abc") for _ in range(count)],
    )
    ran: list[list[Stretch]] = []
    running, lost, end = np.zeros(count), np.zeros(count), np.full(count, np.nan)
    for row in range(count):
        at, run_intervals = float(trace.submit[row]), list[Stretch]()
        for _ in range(rng.randint(0, 2)):  # stretches that are lost
            begin = at + rng.choice([0.0, HOUR, rng.uniform(0, HOUR)])
            at = begin + rng.uniform(1, HOUR)
            run_intervals.append((begin, at))
            lost[row] += at - begin
        if rng.random() < 0.9:
            begin = at + rng.choice([0.0, HOUR, rng.uniform(0, 4 * HOUR)])
            end[row] = begin + trace.run[row]
            run_intervals.append((begin, float(end[row])))
        running[row] = sum(stop - begin for begin, stop in run_intervals)
        ran.append(run_intervals)
    flat = [(row, *one) for row, run_intervals in enumerate(ran) for one in run_intervals]
    outcome = make_outcome(
        "p",
        trace,
        Capacity(nodes=4, gpu_milli=32_000),
        start=np.array([run_intervals[0][0] if run_intervals else np.nan for run_intervals in ran]),
        end=end,
        running=running,
        lost=lost,
        run_intervals=RunIntervals(
            job=np.array([row for row, _, _ in flat], np.int64),
            start=np.array([begin for _, begin, _ in flat]),
            end=np.array([stop for _, _, stop in flat]),
        ),
        entitlement=np.array([3.0, 2.0, 1.0])[: len(trace.queues)],
    )
    return outcome, ran


def overlap(stretch: Stretch, low: float, high: float) -> float:
    return max(0.0, min(stretch[1], high) - max(stretch[0], low))


def waiting(outcome: Outcome, ran: list[list[Stretch]], row: int, at: float) -> bool:
    """Say whether a job waits right after an instant."""
    if at < outcome.trace.submit[row] or at >= outcome.end[row]:  # an end that is NaN never comes
        return False
    return not any(begin <= at < stop for begin, stop in ran[row])


@pytest.mark.parametrize("seed", range(60))
def test_figures_are_what_their_definitions_say(seed: int) -> None:
    outcome, ran = wild(seed)
    trace, found = outcome.trace, measure(outcome)
    rows = range(len(trace))
    size = [int(trace.pods[row] * trace.gpus[row]) for row in rows]
    started = [row for row in rows if ran[row]]
    done = [row for row in rows if not math.isnan(outcome.end[row])]
    if started:
        waits = [ran[row][0][0] - trace.submit[row] for row in started]
        assert found.wait.mean == pytest.approx(sum(waits) / len(waits))
        assert found.wait.p95 == pytest.approx(sorted(waits)[int(0.95 * len(waits))])
    if not done:
        return
    slow = [(outcome.end[row] - trace.submit[row]) / max(trace.run[row], 10) for row in done]
    assert found.slowdown.mean == pytest.approx(sum(max(1, one) for one in slow) / len(done))
    totals = [outcome.end[row] - trace.submit[row] - outcome.running[row] for row in done]
    assert found.total_wait.mean == pytest.approx(sum(totals) / len(done))
    useful = sum(size[row] * (outcome.running[row] - outcome.lost[row]) for row in rows)
    held = sum(size[row] * (stop - begin) for row in rows for begin, stop in ran[row])
    assert found.goodput == pytest.approx(useful / held)
    makespan = max(outcome.end[row] for row in done) - trace.submit[0]
    assert found.makespan == pytest.approx(makespan)
    assert found.utilisation == pytest.approx(useful / (32 * makespan))
    first, last = float(trace.submit[0]), float(trace.submit[-1])
    if last > first:
        area = sum(size[row] * overlap(one, first, last) for row in rows for one in ran[row])
        assert found.utilisation_window == pytest.approx(area / (32 * (last - first)))


@pytest.mark.parametrize("seed", range(60))
def test_the_queue_is_counted_at_every_instant(seed: int) -> None:
    outcome, ran = wild(seed)
    found = measure(outcome)
    times = sorted(
        {*outcome.trace.submit.tolist(), *(at for one in ran for pair in one for at in pair)}
    )
    depths = [
        sum(waiting(outcome, ran, row, at) for row in range(len(outcome.trace))) for at in times
    ]
    last = times[-1]
    for row in range(len(outcome.trace)):
        # A job that only the end of the run stopped still counts as running.
        if ran[row] and math.isnan(outcome.end[row]) and ran[row][-1][1] == last:
            depths[-1] -= 1
    assert outcome.depth.pending.tolist() == depths
    assert found.queue_largest == max(depths)
    area = sum(
        depth * (after - at) for depth, at, after in zip(depths, times, times[1:], strict=False)
    )
    if len(times) > 1:
        assert found.queue_mean == pytest.approx(area / (times[-1] - times[0]))


@pytest.mark.parametrize("seed", range(60))
def test_fairness_is_counted_hour_by_hour(seed: int) -> None:
    outcome, ran = wild(seed)
    trace, found = outcome.trace, measure(outcome).fairness
    tenants = sorted(set(trace.queue.tolist()))
    if len(tenants) < 2:
        assert math.isnan(found.jain)
        return
    first = float(trace.submit[0])
    span = max(float(trace.submit[-1]) - first, HOUR)
    count = int(span // HOUR)
    marks = [first + span * place / count for place in range(count + 1)]
    share = {t: outcome.entitlement[t] / outcome.entitlement[tenants].sum() for t in tenants}

    def work(tenant: int, low: float, high: float) -> float:
        return sum(
            float(trace.pods[row] * trace.gpus[row]) * overlap(one, low, high)
            for row in range(len(trace))
            for one in ran[row]
            if trace.queue[row] == tenant
        )

    def always_waits(tenant: int, low: float, high: float) -> bool:
        rows = [row for row in range(len(trace)) if trace.queue[row] == tenant]
        changes = {low, *(at for row in rows for pair in ran[row] for at in pair)}
        inside = [at for at in changes if low <= at < high]
        return all(any(waiting(outcome, ran, row, at) for row in rows) for at in inside)

    hourly, shortfalls = [], [0.0]
    for low, high in pairwise(marks):
        busy = [t for t in tenants if always_waits(t, low, high)]
        nominal = {t: share[t] * 32 * (high - low) for t in tenants}
        for t in busy:
            if any(work(o, low, high) > nominal[o] * (1 + 1e-9) for o in tenants if o != t):
                shortfalls.append(1 - work(t, low, high) / nominal[t])
        if len(busy) >= 2:
            hourly.append(jain(np.array([work(t, low, high) / share[t] for t in busy])))
    index = [one for one in hourly if not math.isnan(one)]
    assert found.contended_hours == len(index)
    if index:
        assert found.jain_hourly == pytest.approx(sum(index) / len(index))
        assert found.jain_worst_hour == pytest.approx(min(index))
    assert found.shortfall == pytest.approx(max(shortfalls), abs=1e-9)
    overall = jain(np.array([work(t, marks[0], marks[-1]) / share[t] for t in tenants]))
    assert found.jain == pytest.approx(overall, nan_ok=True)
