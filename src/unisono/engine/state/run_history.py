"""History: how long jobs like this one took, for jobs without a time limit (spec backfill §1).

Jobs are alike if they came to the same local queue, ask for the same, and have the same name but
for numbers and the letters that a machine made up. Of the last runs that succeeded nine in ten
were over after the time that is expected of the next: an estimate that is more often too long than
too short, because a job that is expected to end too early moves all reservations.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Iterable

import msgspec

from unisono.engine.model.names import Instant, LocalQueueKey
from unisono.engine.model.resources import Amounts
from unisono.engine.model.workload import PodSet, Workload

Alike = tuple[LocalQueueKey, str, tuple[tuple[int, Amounts], ...]]

# Sorts of jobs that are remembered; the one that ran longest ago is forgotten first.
MOST_SORTS = 1000
# Of each, so many runs: enough for a quantile, few enough to follow a change within a day.
MOST_RUNS = 20
# Fewer say nothing about the next.
LEAST_RUNS = 3

_NUMBER = re.compile(r"[0-9]+")
# What Kubernetes appends to generated names has neither vowels nor 0, 1 and 3.
_GENERATED = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
_DIGEST = re.compile(r"-(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{5,}$")


class History:
    """Remembers the last runs of every sort of job, in whichever order they arrive."""

    def __init__(self) -> None:
        self._runs: dict[Alike, list[tuple[Instant, str, int]]] = {}

    def note(self, alike: Alike, *, uid: str, ended_at: Instant, ran_ms: int) -> None:
        """Remember a run that succeeded; the same run twice changes nothing."""
        runs = self._runs.setdefault(alike, [])
        run = (ended_at, uid, ran_ms)
        if run in runs:
            return
        insort(runs, run)
        del runs[:-MOST_RUNS]
        if len(self._runs) > MOST_SORTS:
            oldest = min(self._runs.items(), key=lambda known: (known[1][-1][0], known[0][:2]))
            del self._runs[oldest[0]]

    def expected_ms(self, alike: Alike) -> int | None:
        """Return how long the next run is expected to take; None if too little is known."""
        runs = self._runs.get(alike, ())
        if len(runs) < LEAST_RUNS:
            return None
        ran = sorted(ran_ms for _, _, ran_ms in runs)
        return ran[-(-9 * len(ran) // 10) - 1]


def alike(workload: Workload, owner: str) -> Alike:
    """Return what a job has in common with its earlier runs; `owner` is its own name."""
    return workload.queue, pattern_of(owner), sizes(workload.pod_sets)


def with_limit(
    workload: Workload, *, owner: str, default_ms: int | None, history: History
) -> Workload:
    """Return a workload that says how long it runs: else its queue does, else its earlier runs."""
    if workload.longest_ms is not None:
        return workload
    if default_ms is not None:
        return msgspec.structs.replace(workload, time_limit_ms=default_ms, limit_from="queue")
    expected = history.expected_ms(alike(workload, owner))
    if expected is None:
        return workload
    return msgspec.structs.replace(workload, time_limit_ms=expected, limit_from="history")


def sizes(pod_sets: Iterable[PodSet]) -> tuple[tuple[int, Amounts], ...]:
    """Return how much a gang asks for."""
    return tuple((one.count, one.requests) for one in pod_sets)


def pattern_of(name: str) -> str:
    """Return what names of runs of one job have in common.

    >>> pattern_of("train-bert-20260131-x7k2p"), pattern_of("eval-17"), pattern_of("t5-large")
    ('train-bert-#', 'eval-#', 't#-large')
    """
    shorter = _DIGEST.sub("", _GENERATED.sub("", name))
    return _NUMBER.sub("#", shorter)
