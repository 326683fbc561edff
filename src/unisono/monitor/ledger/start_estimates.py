"""Starts that were told to users, and how true they were.

    told      the first start that a pending workload had, the one at half of that wait, the last
    started   when it was admitted
    error     how far it was off, as a part of the wait that was told

A backfill reservation is kept by any start until then; an estimate is off in both directions. A
start "if it fits then" is no estimate: it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from unisono.monitor.exposition import Family, Histogram, Sample
from unisono.monitor.ledger.rows import WorkloadRow
from unisono.monitor.records import PendingReason

# Seconds. Shorter waits count as this long: plans are not made in seconds, and a look takes some.
LEAST_WAIT = 60
# A reservation is kept if it is late by no more than that.
SLACK = 60
_BOUNDS = (0.02, 0.05, 0.12, 0.25, 0.5, 1.0, 2.0, 5.0)

When = Literal["first", "half", "last"]
Basis = Literal["estimate", "reservation"]


class ToldStart(NamedTuple):
    """One start that was told: seconds since 1970, all 0 if there was none."""

    start: int = 0
    at: int = 0  # when it was told
    reserved: int = 0  # 1: a reservation, 0: an estimate

    @property
    def basis(self) -> Basis:
        """What it was."""
        return "reservation" if self.reserved else "estimate"

    def off_by(self, started: int) -> int:
        """Return by how many seconds it was wrong; above zero if the start came later."""
        late = started - self.start
        return max(0, late) if self.reserved else late

    def error(self, started: int) -> float:
        """Return how wrong it was, as a part of the wait that was told."""
        return abs(self.off_by(started)) / max(LEAST_WAIT, self.start - self.at)


NONE = ToldStart()


def told(row: WorkloadRow, waits: PendingReason, now: int) -> tuple[ToldStart, ...]:
    """Return the first start that a row has told, the one at half of the wait, and the last."""
    first, half, last = map(ToldStart._make, (row.told_first, row.told_half, row.told_last))
    if first.at and not half.at and now >= (first.at + first.start) // 2:
        half = last  # it stood then
    start = int(waits.start)
    if start > now and (waits.is_promised or waits.position):
        new = ToldStart(start, now, int(waits.is_promised))
        first = first if first.at else new
        # The same start told again is as old as it was.
        last = new if (new.start, new.reserved) != (last.start, last.reserved) else last
    return first, half, last


class Score(NamedTuple):
    """How true one told start was."""

    queue: str
    when: When
    told: ToldStart
    started: int

    @property
    def error(self) -> float:
        """As a part of the wait that was told."""
        return self.told.error(self.started)

    @property
    def is_kept(self) -> bool:
        """Whether a reservation was kept."""
        return self.told.off_by(self.started) <= SLACK


def scores(row: WorkloadRow) -> list[Score]:
    """Return how true everything was that a row was told; none before it has started."""
    if not row.admitted:
        return []
    first, half, last = map(ToldStart._make, (row.told_first, row.told_half, row.told_last))
    if not half.at and row.admitted >= (first.at + first.start) // 2:
        half = last  # it stood then, and nothing was told after it
    found: list[tuple[When, ToldStart]] = [("first", first), ("half", half), ("last", last)]
    return [Score(row.queue, when, one, row.admitted) for when, one in found if one.at]


class Accuracy(NamedTuple):
    """Of so many told starts, how many were off by no more than that part of the wait."""

    jobs: int
    within_jobs: int
    within: float


def accuracy(found: Sequence[Score]) -> Accuracy | None:
    """Return within what nine of ten were; None of none.

    >>> one = Score("q", "first", ToldStart(1_100, 100), 1_150)
    >>> accuracy([one] * 9 + [one._replace(started=5_000)])
    Accuracy(jobs=10, within_jobs=9, within=0.05)
    """
    if not found:
        return None
    errors = sorted(one.error for one in found)
    count = max(1, len(errors) * 9 // 10)
    return Accuracy(len(errors), count, round(errors[count - 1], 4))


class EstimateMetrics:
    """Counts how true told starts were, as workloads start."""

    def __init__(self) -> None:
        """Count from now on."""
        self._errors = Histogram(("queue", "told", "basis"), _BOUNDS)
        self._kept: dict[tuple[str, str], int] = {}

    def count(self, started: Iterable[Score]) -> None:
        """Count one workload that has started."""
        for one in started:
            self._errors.observe(one.error, one.queue, one.when, one.told.basis)
            if one.when == "first" and one.told.reserved:
                key = one.queue, "kept" if one.is_kept else "late"
                self._kept[key] = self._kept.get(key, 0) + 1

    def families(self) -> Iterable[Family]:
        """Yield what was counted."""
        yield Family(
            "unisono_start_estimate_error_ratio",
            "histogram",
            "How far the start of a workload was from what was told, as a part of the wait told.",
            self._errors.samples(),
        )
        yield Family(
            "unisono_start_reservations_total",
            "counter",
            "Workloads that started by the first reservation that they had, or later.",
            [
                Sample({"queue": queue, "result": result}, count)
                for (queue, result), count in sorted(self._kept.items())
            ],
        )
