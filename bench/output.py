"""How results look: aligned tables for people, JSON for programs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence

import msgspec

from bench.harness import Clock, Growth, Result, Scale, Target, Unit
from unisono.cli.built import engine_kind

_SHOWN: dict[Unit, str] = {"us": "µs", "ratio": ""}


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Where it was measured; a busy machine gives poor figures."""

    python: str
    system: str
    engine: str  # as `unisono --version` has it
    cores: int
    load_average: float | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    scale: Scale
    clock: Clock
    machine: Machine
    results: tuple[Result, ...]


def this_machine() -> Machine:
    """Describe the machine as it is now."""
    return Machine(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.machine()}",
        engine=engine_kind(),
        cores=os.cpu_count() or 1,
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def as_json(report: Report) -> str:
    """Return a report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def heading(machine: Machine, scale: Scale, clock: Clock) -> str:
    """Say what is about to be measured, and where."""
    load = "" if machine.load_average is None else f", load {machine.load_average:.1f}"
    place = f"{machine.python} · {machine.system}, {machine.cores} cores{load}"
    return f"{scale} run, {clock} time · {place}\nengine: {machine.engine}"


def as_text(result: Result) -> str:
    """Return one family's tables."""
    lines = [f"{result.benchmark}: {result.about} ({result.took_s:.1f} s)"]
    if result.rows:
        lines += _indented(_table(_ROW_HEAD, [*_row_cells(result)]))
    lines += [f"  note: {note.text}" for note in result.notes]
    return "\n".join(lines)


def targets_table(results: Sequence[Result]) -> str:
    """Return the closing table: what we promise, what was measured, yes or no."""
    targets = [each for result in results for each in result.targets]
    if not targets:
        return ""
    return "\n".join(
        ["targets", *_indented(_table(_TARGET_HEAD, [_target_cells(each) for each in targets]))]
    )


_ROW_HEAD = ("what", ">n", "of", ">median", ">p95", "unit", ">samples", "growth")
_TARGET_HEAD = ("target", "at", ">wanted", ">measured", "unit", "met")


def _row_cells(result: Result) -> Iterator[tuple[str, ...]]:
    """Yield the rows, series by series; the last row of a series shows how it grows."""
    growth = {(each.what, each.of): each for each in result.growth}
    order = {(row.what, row.of): number for number, row in reversed([*enumerate(result.rows)])}
    for row in sorted(result.rows, key=lambda row: (order[row.what, row.of], row.n)):
        fitted = growth.get((row.what, row.of))
        yield (
            row.what,
            f"{row.n:,}",
            row.of,
            number(row.median),
            number(row.p95),
            _SHOWN.get(row.unit, row.unit),
            str(row.samples),
            growth_text(fitted) if fitted is not None and fitted.largest == row.n else "",
        )


def growth_text(growth: Growth) -> str:
    """Write an exponent; one that is nearly nothing has no sign."""
    return f"n^{round(growth.exponent, 2) + 0.0:.2f}"


def _target_cells(target: Target) -> tuple[str, ...]:
    sign = "<" if target.better == "below" else "≥"
    met = {True: "yes", False: "NO", None: "- (smaller run)"}[target.met]
    return (
        target.what,
        target.at,
        f"{sign} {number(target.limit)}",
        number(target.measured),
        _SHOWN.get(target.unit, target.unit),
        met,
    )


def number(value: float) -> str:
    """Write a figure with three digits, or all digits of a large one.

    >>> [number(value) for value in (0.01234, 1.5, 12.34, 4321.0, 98765.4)]
    ['0.0123', '1.50', '12.3', '4,321', '98,765']
    """
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) >= 1 else 4
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.{digits}f}"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Align columns; a head that starts with `>` is of figures and stands on the right."""
    right = [title.startswith(">") for title in head]
    titles = tuple(title.removeprefix(">") for title in head)
    widths = [max(len(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if on_right else cell.ljust(width)
            for cell, width, on_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in (titles, *rows)
    ]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def say(text: str) -> None:
    """Tell whoever waits what is going on, without disturbing the results on stdout."""
    print(text, file=sys.stderr, flush=True)
