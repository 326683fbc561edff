"""Which jobs ran on which nodes in a window, as rectangles: time to the right, nodes downwards.

A window is an interval that is worth a close look, the same for every policy: a whole run of many
thousand jobs drawn at once is a grey wall. It holds a few hundred jobs: where the run begins, where
the queue was longest, and where the longest wait ended.

Every node is a band as high as it is large (in thousandths of GPUs or CPUs). Within its band a job
takes the lowest free part that is large enough, or several that are not. Where nodes were not
recorded, the whole cluster is one band.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.sim.measures import counts_gpus
from unisono.sim.outcome import Outcome

JOBS = 250  # in a window, about; as many bars as can be told apart
ALL = 400  # a run of no more jobs is shown whole


@dataclass(frozen=True, slots=True)
class Window:
    """An interval and why it is shown."""

    title: str
    start: float
    end: float


def windows_of(outcomes: Sequence[Outcome]) -> list[Window]:
    """Return windows on the runs of one trace, without those that show the same."""
    trace = outcomes[0].trace
    first, last = run_of(outcomes)
    if len(trace) <= ALL:
        return [Window("the whole run", first, last)]
    length = (last - first) * JOBS / len(trace)
    found: list[Window] = []
    for outcome in dict.fromkeys((outcomes[-1], outcomes[0])):
        busiest = float(outcome.depth.time[int(outcome.depth.pending.argmax())])
        wait = np.nan_to_num(outcome.start - trace.submit, nan=-1.0)
        begun = float(outcome.start[int(wait.argmax())])
        for title, at in (("longest queue", busiest), ("longest wait ends", begun)):
            start = min(max(at - length / 2, first), last - length)
            if all(abs(start - other.start) > length / 2 for other in found):
                found.append(Window(f"{title} ({outcome.policy})", start, start + length))
    return [*found, Window("the first jobs", first, first + length)]


def run_of(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return the first submission and the last end of any of the runs."""
    first = float(outcomes[0].trace.submit[0])
    ends = [float(np.nanmax(outcome.run_intervals.end, initial=first)) for outcome in outcomes]
    return first, max(*ends, first + 1.0)


MOST_PIECES = 4000  # rectangles of a window; the longest are kept


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle: a job, a part of the cluster, an interval."""

    job: int
    low: int
    high: int
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class _Stay:
    """A job on a node for a time."""

    job: int
    node: int
    amount: int
    start: float
    end: float


def bars(outcome: Outcome, window: Window) -> list[Bar]:
    """Return the rectangles of a window."""
    sizes = node_sizes(outcome)
    below = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    by_node: dict[int, list[_Stay]] = defaultdict(list)
    for stay in _stays(outcome, window):
        by_node[stay.node].append(stay)
    found: list[Bar] = []
    for node, stays in sorted(by_node.items()):
        for stay, low, high in _packed(stays, int(sizes[node])):
            found.append(Bar(stay.job, below[node] + low, below[node] + high, stay.start, stay.end))
    joined = _joined(found)
    joined.sort(key=lambda bar: (bar.start - bar.end, bar.low, bar.job))
    return joined[:MOST_PIECES]


def node_sizes(outcome: Outcome) -> Sequence[int]:
    """Return how large every node is; equal parts where sizes were not recorded."""
    total = outcome.capacity.gpu_milli if counts_gpus(outcome) else outcome.capacity.cpu
    if outcome.spans is None:
        return [total]
    if outcome.spans.size is not None:
        sizes: list[int] = outcome.spans.size.tolist()
        return sizes
    return [total // max(len(outcome.spans.names), 1)] * len(outcome.spans.names)


def _stays(outcome: Outcome, window: Window) -> Iterable[_Stay]:
    trace, ran = outcome.trace, outcome.spans or outcome.run_intervals
    inside = np.flatnonzero((ran.start < window.end) & (ran.end > window.start))
    jobs = ran.job[inside]
    each = trace.gpus * trace.gpu_milli if counts_gpus(outcome) else trace.cpu
    if outcome.spans is None:
        nodes, pods = np.zeros(len(inside), np.int64), trace.pods[jobs]
    else:
        nodes, pods = outcome.spans.node[inside], outcome.spans.pods[inside]
    rows = zip(
        jobs.tolist(),
        nodes.tolist(),
        (each[jobs] * pods).tolist(),
        ran.start[inside].tolist(),
        ran.end[inside].tolist(),
        strict=True,
    )
    return [_Stay(*row) for row in rows if row[2] > 0]


def _packed(stays: list[_Stay], size: int) -> Iterable[tuple[_Stay, int, int]]:
    """Yield a part of the band, or several, for every stay."""
    free: list[tuple[int, int]] = [(0, size)]
    leaving: list[tuple[float, int, list[tuple[int, int]]]] = []
    for place, stay in enumerate(sorted(stays, key=lambda one: (one.start, one.job))):
        while leaving and leaving[0][0] <= stay.start:
            for part in heapq.heappop(leaving)[2]:
                _give_back(free, part)
        taken = _take(free, stay.amount)
        heapq.heappush(leaving, (stay.end, place, taken))
        for low, high in taken:
            yield stay, low, high


def _take(free: list[tuple[int, int]], amount: int) -> list[tuple[int, int]]:
    for at, (low, high) in enumerate(free):
        if high - low >= amount:
            free[at : at + 1] = [(low + amount, high)] if high - low > amount else []
            return [(low, low + amount)]
    taken = []
    while amount > 0 and free:
        low, high = free.pop(0)
        part = min(amount, high - low)
        taken.append((low, low + part))
        if low + part < high:
            free.insert(0, (low + part, high))
        amount -= part
    return taken


def _give_back(free: list[tuple[int, int]], part: tuple[int, int]) -> None:
    insort(free, part)
    at = free.index(part)
    if at + 1 < len(free) and free[at + 1][0] == part[1]:
        part = (part[0], free.pop(at + 1)[1])
        free[at] = part
    if at and free[at - 1][1] == part[0]:
        free[at - 1] = (free[at - 1][0], part[1])
        del free[at]


def _joined(found: list[Bar]) -> list[Bar]:
    """Return the bars with those of a job that lie next to each other made one."""
    found.sort(key=lambda bar: (bar.job, bar.start, bar.end, bar.low))
    joined: list[Bar] = []
    for bar in found:
        last = joined[-1] if joined else None
        is_same = last and (last.job, last.start, last.end) == (bar.job, bar.start, bar.end)
        if last and is_same and last.high == bar.low:
            joined[-1] = Bar(bar.job, last.low, bar.high, bar.start, bar.end)
        else:
            joined.append(bar)
    return joined
