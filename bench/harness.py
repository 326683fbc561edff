"""The harness: call something often, keep medians, fit how cost grows, compare with targets.

A benchmark family is a module with a table of sizes and `measure(scale)`, which yields findings:
rows, targets and notes. Rows that share `what` form a series over `n`; the harness fits its growth
exponent. A target has a verdict about this run, at the size that was run; tests have none, because
figures depend on the machine.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Literal, NamedTuple

import msgspec

from unisono.runtime.memory import calm_collector

# full: what the figures are quoted from. quick: the same in seconds. tiny: for the tests.
Scale = Literal["full", "quick", "tiny"]
Unit = Literal["us", "ms", "s", "1/s", "B", "ratio", "%", "n^"]
Better = Literal["below", "above"]
# not run: a peer is missing or failed, or too little was measured to judge; never a win.
Verdict = Literal["ok", "below bar", "not run"]
# wall: what a user waits. cpu: what the process itself took, for a machine that others use too.
Clock = Literal["wall", "cpu"]

PER_SECOND: dict[Unit, float] = {"us": 1e6, "ms": 1e3, "s": 1.0}
CLOCKS: dict[Clock, Callable[[], float]] = {"wall": perf_counter, "cpu": process_time}

# A measurement that is slower than expected ends early rather than spoiling the whole run, but
# never with fewer samples than a median is worth.
BUDGET_S = 1.0
FEWEST_SAMPLES = 3
FEWEST_SIZES = 4  # that a line through logarithms is worth


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement: `what`, on how many (`n`) of which things (`of`)."""

    what: str
    n: int
    of: str
    median: float
    p95: float
    best: float
    worst: float
    unit: Unit
    samples: int


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Another program that did the same in this run; no value if it did not."""

    name: str
    version: str = ""
    value: float | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A figure that we promise, what was measured, and what to think of it.

    `limit` is in `unit`; beside a peer it says how many times the peer's figure is wanted. `ratio`
    is the median divided by the peer's figure, or by the limit where there is no peer.
    """

    what: str
    at: str
    limit: float
    better: Better
    unit: Unit
    verdict: Verdict
    median: float | None = None
    best: float | None = None
    worst: float | None = None
    samples: int = 0
    ratio: float | None = None
    peer: Peer | None = None
    why: str = ""  # nothing was run


class Note(msgspec.Struct, frozen=True):
    """Something a reader of the figures must know."""

    text: str


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How a series grows: cost is proportional to n to the power of `exponent`.

    `r2` is the part of the (logarithmic) differences in cost that size alone explains.
    """

    what: str
    of: str
    sizes: tuple[int, ...]
    costs: tuple[float, ...]
    exponent: float
    r2: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one family found."""

    benchmark: str
    ids: tuple[str, ...]  # of the promises that it is about, as the specification numbers them
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
    ids: tuple[str, ...] = ()


def run(family: Family, scale: Scale) -> Result:
    """Measure one family and fit its series."""
    calm_collector()  # as the program itself does
    start = perf_counter()
    findings = list(family.measure(scale))
    rows = tuple(finding for finding in findings if isinstance(finding, Row))
    return Result(
        benchmark=family.name,
        ids=family.ids,
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


def figures(
    what: str,
    n: int,
    of: str,
    values: Sequence[float],
    unit: Unit,
    *,
    better: Better | None = None,
) -> Row:
    """Summarise values that are in their unit already; more of a rate is better, less of a cost."""
    up = (better or ("above" if unit == "1/s" else "below")) == "above"
    return Row(
        what=what,
        n=n,
        of=of,
        median=statistics.median(values),
        p95=percentile_95(values),
        best=max(values) if up else min(values),
        worst=min(values) if up else max(values),
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


# --- judging -------------------------------------------------------------------------------------


def target(what: str, measured: Row, limit: float, *, better: Better) -> Target:
    """Compare a row's median with what is promised."""
    return Target(
        what=what,
        at=f"{measured.n:,} {measured.of}",
        limit=limit,
        better=better,
        unit=measured.unit,
        verdict=_verdict(measured.median, limit, better),
        median=measured.median,
        best=measured.best,
        worst=measured.worst,
        samples=measured.samples,
        ratio=measured.median / limit if limit else None,
    )


def times_peer(what: str, ours: Row, peer: Peer, times: float) -> Target:
    """Compare a rate with a peer's in the same run: so many times as much is promised."""
    made = target(what, ours, times, better="above")
    if not peer.value:
        return not_run(what, at=made.at, limit=times, unit=ours.unit, peer=peer, why="no figure")
    ratio = ours.median / peer.value
    return msgspec.structs.replace(
        made, peer=peer, ratio=ratio, verdict=_verdict(ratio, times, "above")
    )


def not_run(
    what: str,
    *,
    at: str,
    limit: float,
    unit: Unit,
    why: str,
    better: Better = "above",
    peer: Peer | None = None,
) -> Target:
    """Say that nothing can be said about a promise."""
    return Target(
        what=what,
        at=at,
        limit=limit,
        better=better,
        unit=unit,
        verdict="not run",
        peer=peer,
        why=why,
    )


def growth_target(what: str, rows: Iterable[Row], limit: float) -> Target:
    """Compare the growth of one series with what is promised; a few sizes are too few to judge."""
    same = sorted(rows, key=lambda each: each.n)
    at = f"{same[0].n:,} to {same[-1].n:,} {same[-1].of}"
    if len(same) < FEWEST_SIZES:
        why = f"{len(same)} sizes; growth is judged over {FEWEST_SIZES}"
        return not_run(what, at=at, limit=limit, unit="n^", why=why, better="below")
    found = round(fit([(each.n, each.median) for each in same]).exponent, 2)
    return Target(
        what=what,
        at=at,
        limit=limit,
        better="below",
        unit="n^",
        verdict="ok" if found <= limit else "below bar",
        median=found,
        best=found,
        worst=found,
        samples=len(same),
        ratio=found / limit,
    )


def _verdict(value: float, limit: float, better: Better) -> Verdict:
    kept = value < limit if better == "below" else value >= limit
    return "ok" if kept else "below bar"


# --- growth --------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """A line through logarithms: its slope, and how much of the differences it explains."""

    exponent: float
    r2: float


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """Fit y = a * x^b by least squares on logarithms.

    >>> [round(each, 2) for each in fit([(1000, 1.0), (2000, 2.1), (4000, 4.1), (8000, 8.3)])]
    [1.01, 1.0]
    """
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x = statistics.fmean(x for x, _ in logs)
    mean_y = statistics.fmean(y for _, y in logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    rise = sum((y - mean_y) ** 2 for _, y in logs)
    shared = sum((x - mean_x) * (y - mean_y) for x, y in logs)
    # Where nothing differs a level line explains everything.
    return Fit(shared / spread, shared * shared / (spread * rise) if rise else 1.0)


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """Return only the slope."""
    return fit(points).exponent


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
            found = fit([(each.n, each.median) for each in same])
            yield Growth(
                what=same[0].what,
                of=same[0].of,
                sizes=tuple(each.n for each in same),
                costs=tuple(each.median for each in same),
                exponent=found.exponent,
                r2=found.r2,
            )
