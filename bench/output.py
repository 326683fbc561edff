"""How results look: aligned tables for people, JSON for programs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

import msgspec

from bench.harness import Clock, Growth, Peer, Result, Scale, Target, Unit
from unisono.runtime.clock import seconds_now
from unisono.runtime.engine_build import engine_kind

SCHEMA: Final = "unisono.bench/v1"
_SHOWN: dict[Unit, str] = {"us": "µs", "ratio": "", "n^": ""}
_CPU_NAMES = Path("/proc/cpuinfo")
_GB = 1e9


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Where it was measured; a busy machine gives poor figures."""

    python: str
    system: str
    engine: str  # as `unisono --version` has it
    cores: int
    cpu: str
    mem_gb: float
    load_before: float | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    schema: Literal["unisono.bench/v1"] = SCHEMA
    when: str  # it began, in UTC
    scale: Scale
    clock: Clock
    host: Host
    results: tuple[Result, ...]


def now() -> str:
    """Return the time as reports have it."""
    return datetime.fromtimestamp(int(seconds_now()), UTC).isoformat().replace("+00:00", "Z")


def this_host() -> Host:
    """Describe the machine as it is now."""
    return Host(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.machine()}",
        engine=engine_kind(),
        cores=os.cpu_count() or 1,
        cpu=_cpu_name(),
        mem_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GB, 1),
        load_before=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def _cpu_name() -> str:
    """Return what Linux calls the processor, or at least its kind."""
    if _CPU_NAMES.exists():
        for line in _CPU_NAMES.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def as_json(report: Report) -> str:
    """Return a report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def heading(host: Host, scale: Scale, clock: Clock) -> str:
    """Say what is about to be measured, and where."""
    load = "" if host.load_before is None else f", load {host.load_before:.1f}"
    place = f"{host.python} · {host.system}, {host.cores} cores, {host.mem_gb:.0f} GB{load}"
    return f"{scale} run, {clock} time · {place}\nengine: {host.engine}"


def as_text(result: Result) -> str:
    """Return one family's tables."""
    named = f"{result.benchmark} ({', '.join(result.ids)})" if result.ids else result.benchmark
    lines = [f"{named}: {result.about} ({result.took_s:.1f} s)"]
    if result.rows:
        lines += indented(table(_ROW_HEAD, [*_row_cells(result)]))
    lines += [f"  note: {note.text}" for note in result.notes]
    return "\n".join(lines)


def targets_table(results: Sequence[Result]) -> str:
    """Return the closing table: what we promise, what was measured, and the verdict."""
    targets = [each for result in results for each in result.targets]
    if not targets:
        return ""
    return "\n".join(
        ["targets", *indented(table(_TARGET_HEAD, [_target_cells(each) for each in targets]))]
    )


_ROW_HEAD = (
    "what", ">n", "of", ">median", ">p95", ">best", ">worst", "unit", ">samples", "growth"
)  # fmt: skip
_TARGET_HEAD = (
    "target", "at", ">measured", "unit", ">best", ">worst", ">wanted", "beside", ">ratio", "verdict"
)  # fmt: skip


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
            number(row.best),
            number(row.worst),
            _SHOWN.get(row.unit, row.unit),
            str(row.samples),
            growth_text(fitted) if fitted is not None and fitted.sizes[-1] == row.n else "",
        )


def growth_text(growth: Growth) -> str:
    """Write an exponent, and how well it fits; one that is nearly nothing has no sign."""
    return f"n^{round(growth.exponent, 2) + 0.0:.2f}, r2 {growth.r2:.2f}"


def _target_cells(target: Target) -> tuple[str, ...]:
    sign = "<" if target.better == "below" else "≥"
    times = "" if target.peer is None else " x"
    return (
        target.what,
        target.at,
        *(_maybe(target.median, target.unit), _SHOWN.get(target.unit, target.unit)),
        *(_maybe(each, target.unit) for each in (target.best, target.worst)),
        f"{sign} {number(target.limit)}{times}",
        _beside(target.peer),
        _maybe(target.ratio, "ratio"),
        f"{target.verdict} ({target.why})" if target.why else target.verdict,
    )


def _beside(peer: Peer | None) -> str:
    if peer is None:
        return ""
    named = f"{peer.name} {peer.version}".rstrip()
    return named if peer.value is None else f"{named}: {number(peer.value)}"


def _maybe(value: float | None, unit: Unit) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if unit == "n^" else number(value)


def number(value: float) -> str:
    """Write a figure with three digits, or all digits of a large one.

    >>> [number(value) for value in (0.01234, 1.5, 12.34, 4321.0, 98765.4)]
    ['0.0123', '1.50', '12.3', '4,321', '98,765']
    """
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 if abs(value) >= 1 else 4
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.{digits}f}"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
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


def indented(lines: list[str]) -> list[str]:
    """Set lines in below their title."""
    return [f"  {line}" for line in lines]


def say(text: str) -> None:
    """Print progress to stderr, apart from the results on stdout."""
    print(text, file=sys.stderr, flush=True)
