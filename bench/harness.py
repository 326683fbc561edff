"""The harness: call something often, keep medians, fit how cost grows, compare with targets.

A benchmark family is a module with a table of sizes and `measure(scale)`, which yields findings:
rows, targets and notes. Rows that share `what` form a series over `n`; the harness fits its growth
exponent. Nothing here passes or fails: figures depend on the machine, tests must not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Literal

import msgspec

from unisono.cli.collector import calm_collector

# full: what the figures are quoted from. quick: the same in seconds. tiny: for the tests.
Scale = Literal["full", "quick", "tiny"]
Unit = Literal["us", "ms", "s", "1/s", "B", "ratio", "%"]
# wall: what a user waits. cpu: what the process itself took, for a machine that others use too.
Clock = Literal["wall", "cpu"]

PER_SECOND: dict[Unit, float] = {"us": 1e6, "ms": 1e3, "s": 1.0}
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": perf_counter, "cpu": process_time}

# A measurement that is slower than expected ends early rather than spoiling the whole run, but
# never with fewer samples than a median is worth.
BUDGET_S = 1.0
FEWEST_SAMPLES = 3


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: `what`, on how many (`n`) of which things (`of`)."""

    what: str
    n: int
    of: str
    median: float
    p95: float
    unit: Unit
    samples: int


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that we promise, and what was measured; `met` is None in a smaller run."""

    what: str
    at: str
    limit: float
    better: Literal["below", "above"]
    measured: float
    unit: Unit
    met: bool | None


class Note(msgspec.Struct, frozen=True):
    """Something a reader of the figures must know."""

    text: str


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How a series grows: cost is proportional to n to the power of `exponent`."""

    what: str
    of: str
    smallest: int
    largest: int
    exponent: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one family found."""

    benchmark: str
    about: str
    took_s: float
    rows: tuple[Row, ...]
    growth: tuple[Growth, ...]
    targets: tuple[Target, ...]
    notes: tuple[Note, ...]


Finding = Row | Target | Note


@dataclass(frozen=True)
class Family:
    """A benchmark by name."""

    name: str
    about: str
    measure: Callable[[Scale], Iterable[Finding]]


def run(family: Family, scale: Scale) -> Result:
    """Measure one family and fit its series."""
    calm_collector()  # as the program itself does
    start = perf_counter()
    findings = list(family.measure(scale))
    rows = tuple(finding for finding in findings if isinstance(finding, Row))
    return Result(
        benchmark=family.name,
        about=family.about,
        took_s=perf_counter() - start,
        rows=rows,
        growth=tuple(growths(rows)),
        targets=tuple(finding for finding in findings if isinstance(finding, Target)),
        notes=tuple(finding for finding in findings if isinstance(finding, Note)),
    )


# --- measuring -----------------------------------------------------------------------------------


class _Stopwatch:
    """The clock of this run; one for the whole process, as a command line chooses once."""

    read: Callable[[], float] = staticmethod(perf_counter)


def use_clock(clock: Clock) -> None:
    """Choose what `seconds` counts from now on."""
    _Stopwatch.read = staticmethod(CLOCKS[clock])


def seconds(call: Callable[[], object]) -> float:
    """Return how long one call takes."""
    read = _Stopwatch.read
    start = read()
    call()
    return read() - start


def wall_seconds(call: Callable[[], object]) -> float:
    """Return how long one call takes that waits for another process."""
    start = perf_counter()
    call()
    return perf_counter() - start


def repeated(
    once: Callable[[], float],
    *,
    samples: int,
    fewest: int = FEWEST_SAMPLES,
    budget_s: float = BUDGET_S,
) -> list[float]:
    """Collect so many measurements; stop early when the budget is spent.

    `once` returns what it measured, so that it can prepare and tidy up without being timed.
    """
    end = perf_counter() + budget_s
    found: list[float] = []
    while len(found) < samples and (len(found) < fewest or perf_counter() < end):
        found.append(once())
    return found


def row(what: str, n: int, of: str, taken_s: Sequence[float], unit: Unit) -> Row:
    """Summarise durations in a unit of time."""
    return figures(what, n, of, [taken * PER_SECOND[unit] for taken in taken_s], unit)


def figures(what: str, n: int, of: str, values: Sequence[float], unit: Unit) -> Row:
    """Summarise values that are in their unit already."""
    return Row(
        what=what,
        n=n,
        of=of,
        median=statistics.median(values),
        p95=percentile_95(values),
        unit=unit,
        samples=len(values),
    )


def percentile_95(values: Sequence[float]) -> float:
    """Return the value that 95 % of all values do not exceed; the largest of a few.

    >>> percentile_95(range(1, 21))
    20
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]


def target(
    what: str, measured: Row, limit: float, *, scale: Scale, better: Literal["below", "above"]
) -> Target:
    """Compare a row's median with what is promised; only a full run can keep or break a promise."""
    kept = measured.median < limit if better == "below" else measured.median >= limit
    return Target(
        what=what,
        at=f"{measured.n:,} {measured.of}",
        limit=limit,
        better=better,
        measured=measured.median,
        unit=measured.unit,
        met=kept if scale == "full" else None,
    )


# --- growth --------------------------------------------------------------------------------------


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Fit y = a * x^b by least squares on logarithms, and return b.

    >>> round(exponent([(1000, 1.0), (2000, 2.1), (4000, 4.1), (8000, 8.3)]), 2)
    1.01
    """
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = statistics.fmean(x for x, _ in logs)
    mean_y = statistics.fmean(y for _, y in logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread


def series(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows that measure the same at two sizes or more, smallest first."""
    by_name: dict[tuple[str, str, Unit], dict[int, Row]] = {}
    for each in rows:
        by_name.setdefault((each.what, each.of, each.unit), {})[each.n] = each
    for sizes in by_name.values():
        if len(sizes) > 1:
            yield [sizes[n] for n in sorted(sizes)]


def growths(rows: Iterable[Row]) -> Iterator[Growth]:
    """Fit every series of costs; a rate is the same figure upside down, a share is no cost."""
    for same in series(rows):
        if same[0].unit not in ("1/s", "%") and all(each.median > 0 for each in same):
            yield Growth(
                what=same[0].what,
                of=same[0].of,
                smallest=same[0].n,
                largest=same[-1].n,
                exponent=exponent([(each.n, each.median) for each in same]),
            )
