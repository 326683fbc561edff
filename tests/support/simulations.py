"""Simulations: the plainest backfilling schedulers as an oracle, random jobs, published traces.

The schedulers have one pool of processors, lists and loops, and no engine. The rules are those of
the literature on parallel job logs: events of one instant are handled completions first, then
arrivals, then one scheduling cycle. The queue is first come, first served.

    fcfs          start from the head while it fits
    easy          then any job that does not delay the head: it ends by the head's start, or leaves
                  the processors that the head needs then
    sjbf          easy, with the candidates in the order of their requests
    conservative  no job delays an earlier one: reservations for all, made anew at every cycle
"""

from __future__ import annotations

import heapq
import os
import random
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from unisono.sim.outcome import Capacity, Outcome, make_outcome
from unisono.sim.trace import Trace, make_trace

Job = tuple[int, int, float]  # row, size, request


@dataclass
class Pool:
    """The processors, running jobs with their latest ends, and pending jobs."""

    free: int
    now: float = 0.0
    ends: list[tuple[float, int, int]] = field(default_factory=list)  # expected end, row, size
    line: list[Job] = field(default_factory=list)
    started: list[Job] = field(default_factory=list)  # in this pass

    def start(self, job: Job) -> None:
        """Let a job run from now on."""
        row, size, request = job
        self.free -= size
        insort(self.ends, (self.now + request, row, size))
        self.started.append(job)

    def start_heads(self) -> None:
        """Start from the head while it fits."""
        count = 0
        for job in self.line:
            if job[1] > self.free:
                break
            self.start(job)
            count += 1
        del self.line[:count]

    def shadow(self, size: int) -> tuple[float, int]:
        """Return when so many processors are free, and how many more are then."""
        free = self.free
        for place, (end, _, freed) in enumerate(self.ends):
            free += freed
            is_last = place + 1 == len(self.ends) or self.ends[place + 1][0] > end
            if free >= size and is_last:
                return end, free - size
        raise AssertionError("the job is larger than the machine")


def fcfs(pool: Pool) -> None:
    """First come, first served."""
    pool.start_heads()


def easy(pool: Pool, *, shortest_first: bool = False) -> None:
    """Backfill behind a reservation for the head only."""
    pool.start_heads()
    if not pool.line or not pool.free:
        return
    shadow, spare = pool.shadow(pool.line[0][1])
    candidates = pool.line[1:]
    if shortest_first:
        candidates.sort(key=lambda job: job[2])  # stable: then in their order
    chosen = set()
    for job in candidates:
        row, size, request = job
        if size > pool.free:
            continue
        is_over = pool.now + request <= shadow
        if is_over or size <= spare:
            spare -= 0 if is_over else size
            pool.start(job)
            chosen.add(row)
            if not pool.free:
                break
    if chosen:
        pool.line = [job for job in pool.line if job[0] not in chosen]


def sjbf(pool: Pool) -> None:
    """Backfill the shortest first."""
    easy(pool, shortest_first=True)


def conservative(pool: Pool) -> None:
    """Reserve for all jobs in order; a job starts when its reservation is now."""
    if not pool.line or not pool.free:
        return
    times, free = [pool.now], [pool.free]
    for end, _, size in pool.ends:
        if end <= times[-1]:
            free[-1] += size
        else:
            times.append(end)
            free.append(free[-1] + size)
    left = []
    for job in pool.line:
        at = _earliest(times, free, job[1], job[2])
        _take(times, free, at, at + job[2], job[1])
        if at == pool.now:
            pool.start(job)
        else:
            left.append(job)
    pool.line = left


def _earliest(times: list[float], free: list[int], size: int, request: float) -> float:
    place = 0
    while True:
        while free[place] < size:
            place += 1
        end = times[place] + request
        at = place
        while at < len(times) and times[at] < end and free[at] >= size:
            at += 1
        if at == len(times) or times[at] >= end:
            return times[place]
        place = at


def _take(times: list[float], free: list[int], start: float, end: float, size: int) -> None:
    for when in (start, end):
        place = bisect_left(times, when)
        if place == len(times) or times[place] != when:
            times.insert(place, when)
            free.insert(place, free[place - 1])
    for place in range(bisect_left(times, start), bisect_left(times, end)):
        free[place] -= size


POLICIES = {"fcfs": fcfs, "easy": easy, "easy-sjbf": sjbf, "conservative": conservative}


def schedule(trace: Trace, policy: str, *, overrun: str = "raise", processors: int = 0) -> Outcome:
    """Replay a trace on one pool; `overrun` says what happens beyond the request."""
    machine = processors or trace.processors
    run = np.minimum(trace.run, trace.request) if overrun == "kill" else trace.run
    request = np.maximum(trace.request, run).tolist()
    runs, sizes, submits = run.tolist(), trace.pods.tolist(), trace.submit.tolist()
    start = np.full(len(trace), np.nan)
    pool, pass_ = Pool(machine), POLICIES[policy]
    completions: list[tuple[float, int]] = []
    arrived = 0
    while arrived < len(submits) or completions:
        upcoming = submits[arrived] if arrived < len(submits) else np.inf
        pool.now = min(upcoming, completions[0][0] if completions else np.inf)
        while completions and completions[0][0] == pool.now:
            row = heapq.heappop(completions)[1]
            pool.free += sizes[row]
            expected = (start[row] + request[row], row, sizes[row])
            del pool.ends[bisect_right(pool.ends, expected) - 1]
        while arrived < len(submits) and submits[arrived] == pool.now:
            pool.line.append((arrived, sizes[arrived], request[arrived]))
            arrived += 1
        pass_(pool)
        for row, _, _ in pool.started:
            start[row] = pool.now
            heapq.heappush(completions, (pool.now + runs[row], row))
        pool.started.clear()
    capacity = Capacity(nodes=machine, cpu=1000 * machine)
    return make_outcome(policy, trace, capacity, start=start, end=start + run)


def random_jobs(seed: int, sizes: tuple[int, ...] = (500, 1000, 2000)) -> Trace:
    """Return sixty jobs within five minutes, of up to eleven pods."""
    random_source = random.Random(seed)
    count = 60
    run = [random_source.randint(1, 60) for _ in range(count)]
    return make_trace(
        "random",
        submit=sorted(random_source.randint(0, 300) for _ in range(count)),
        run=run,
        request=[each * random_source.choice((1, 1, 2, 5)) for each in run],
        pods=[random_source.choice((1, 1, 2, 3, 6, 11)) for _ in range(count)],
        cpu=[random_source.choice(sizes) for _ in range(count)],
    )


_ROOT = Path(__file__).resolve().parents[2]


def published(name: str) -> Path:
    """Return a file of the folder of traces; skip the test where it is not."""
    named = os.environ.get("UNISONO_TRACES")
    folder = Path(named) if named else _ROOT.parent / "shared" / "traces"
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not here; name the folder that has it in UNISONO_TRACES")
    return folder / name
