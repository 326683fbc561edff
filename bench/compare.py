"""Two runs beside each other: what has changed, and is no accident.

A figure has changed if the ranges of the two runs do not overlap and their medians differ by more
than a tenth. All else is taken for noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.harness import Row
from bench.output import Report, indented, number, table

MOST_NOISE = 0.1  # of the old median

_HEAD = ("benchmark", "what", ">n", "of", ">before", ">range", ">now", ">range", "unit", ">change")


class NotAReport(Exception):
    """A file to compare with holds something else."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of both runs that is not the same any more."""

    benchmark: str
    before: Row
    now: Row

    @property
    def percent(self) -> float:
        """Return how much more it is now."""
        return 100 * (self.now.median - self.before.median) / self.before.median


def read_report(path: Path) -> Report:
    """Return what an earlier run wrote with `--json`."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise NotAReport(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise NotAReport(f"{path} is not what --json writes: {error}") from error


def has_changed(before: Row, now: Row) -> bool:
    """Say whether a figure differs by more than noise."""
    apart = max(before.best, before.worst) < min(now.best, now.worst) or max(
        now.best, now.worst
    ) < min(before.best, before.worst)
    return apart and abs(now.median - before.median) > MOST_NOISE * abs(before.median)


def changed(old: Report, new: Report) -> Iterator[Changed]:
    """Yield what has changed, in the order of the new run; what is in one run only is left out."""
    known = {
        (result.benchmark, row.what, row.n, row.of, row.unit): row
        for result in old.results
        for row in result.rows
    }
    for result in new.results:
        for row in result.rows:
            before = known.get((result.benchmark, row.what, row.n, row.of, row.unit))
            if before is not None and before.median and has_changed(before, row):
                yield Changed(benchmark=result.benchmark, before=before, now=row)


def changes_text(old: Report, new: Report) -> str:
    """Return a table of what has changed, or say that nothing has."""
    lines = [*_different_ground(old, new)]
    found = [*changed(old, new)]
    if not found:
        return "\n".join([f"no change since {old.when}", *lines])
    cells = [_cells(each) for each in found]
    return "\n".join([f"changed since {old.when}", *lines, *indented(table(_HEAD, cells))])


def _different_ground(old: Report, new: Report) -> Iterator[str]:
    """Warn of what makes figures differ although nothing was done to the code."""
    for what, before, now in (
        ("clock", old.clock, new.clock),
        ("engine", old.host.engine, new.host.engine),
        ("cpu", old.host.cpu, new.host.cpu),
        ("cores", old.host.cores, new.host.cores),
        ("python", old.host.python, new.host.python),
    ):
        if before != now:
            yield f"  note: {what} was {before}, is {now}"


def _cells(change: Changed) -> tuple[str, ...]:
    before, now = change.before, change.now
    return (
        change.benchmark,
        now.what,
        f"{now.n:,}",
        now.of,
        number(before.median),
        _range(before),
        number(now.median),
        _range(now),
        now.unit,
        f"{change.percent:+.0f} %",
    )


def _range(row: Row) -> str:
    low, high = sorted((row.best, row.worst))
    return f"[{number(low)}, {number(high)}]"
