"""Intervals of a run that are worth a close look, the same for every policy.

A whole run of many thousand jobs drawn at once is a grey wall. A window holds a few hundred jobs:
where the run begins, where the queue was longest, and where the longest wait ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
