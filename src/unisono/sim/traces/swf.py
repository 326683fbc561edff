"""The Standard Workload Format: 18 numbers a line, `;` before what is said about the whole log.

Logs have hundreds of thousands of lines, so a file in which every line is 18 numbers, integers
where a trace needs them, is read as one array. Any irregularity sends the whole file down the
careful way, line by line, which finds the line to complain about (or to count, with `skip_bad`) and
ignores trailing columns.

A processor is a pod of one CPU. Memory is not taken over: most logs do not have it, and in those
that do it means different things.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unisono.sim.trace import (
    CANCELLED,
    FAILED,
    FINISHED,
    UNKNOWN,
    BadTrace,
    Dropped,
    FloatArray,
    IntArray,
    Trace,
    make_trace,
)
from unisono.sim.traces.files import bare_name, read_bytes

FIELDS = 18
# Columns of the format, counted from zero.
_NUMBER, _SUBMIT, _RUN, _ALLOCATED = 0, 1, 3, 4
_REQUESTED, _REQUEST_S, _STATUS, _USER, _GROUP, _QUEUE = 7, 8, 10, 11, 12, 14
_USED = (
    *(_NUMBER, _SUBMIT, _RUN, _ALLOCATED),
    *(_REQUESTED, _REQUEST_S, _STATUS, _USER, _GROUP, _QUEUE),
)

_HEADER = re.compile(r"^\s*;\s*([A-Za-z]+)\s*:\s*(.*?)\s*$")
_NAMED = re.compile(r"^(-?\d+)\s+(\S.*)$")
_MOST_DIGITS = 15  # what a float holds exactly

Places = NDArray[np.intp]


@dataclass(slots=True)
class Header:
    """What a log says about itself."""

    max_procs: int = 0
    max_nodes: int = 0
    unix_start: float = 0.0
    queues: dict[int, str] = field(default_factory=dict)
    partitions: dict[int, str] = field(default_factory=dict)


def read_swf(path: Path, *, processors: int = 0, skip_bad: bool = False) -> Trace:
    """Read a log; `processors` overrules what its header says.

    Dropped and counted: jobs without a run time, without a size, and larger than the machine.
    """
    content = read_bytes(path)
    comments, jobs = _split(content)
    header = read_header(comments)
    table = _regular(jobs)
    bad = 0
    if table is None:
        table, bad = _careful(content, str(path), skip_bad=skip_bad)
    machine = processors or header.max_procs or header.max_nodes
    return _trace(bare_name(path), table, header, machine, unreadable=bad)


def read_header(comments: bytes) -> Header:
    """Return what the lines before the jobs say; anything that is not a number counts as absent."""
    header = Header()
    for line in comments.decode("utf-8", errors="replace").splitlines():
        found = _HEADER.match(line)
        if found is None:
            continue
        key, text = found.groups()
        match key:
            case "MaxProcs":
                header.max_procs = _leading_number(text)
            case "MaxNodes":
                header.max_nodes = _leading_number(text)
            case "UnixStartTime":
                header.unix_start = float(_leading_number(text))
            case "Queue" | "Partition":
                if (named := _NAMED.match(text)) is not None:
                    names = header.queues if key == "Queue" else header.partitions
                    names[int(named[1])] = named[2].strip()
            case _:
                pass  # the rest is for people
    return header


def _leading_number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0


def _split(content: bytes) -> tuple[bytes, bytes]:
    """Return the comments on top and everything after them."""
    at = 0
    while at < len(content) and content[at : at + 1] in b";\r\n":
        end = content.find(b"\n", at)
        at = len(content) if end < 0 else end + 1
    return content[:at], content[at:]


def _regular(jobs: bytes) -> FloatArray | None:
    """Return the table of a file whose lines all are 18 integers; None if one is not.

    Only the columns that a trace needs are filled.
    """
    if jobs.translate(None, b"0123456789+-.eE \t\r\n"):
        return None
    raw = np.frombuffer(jobs, np.uint8)
    is_space = raw <= ord(" ")
    edges = np.flatnonzero(np.diff(is_space, prepend=True, append=True))
    starts, ends = edges[::2], edges[1::2]
    # Every line break stands after a whole number of jobs.
    breaks = np.flatnonzero(raw == ord("\n"))
    if len(starts) % FIELDS or (np.searchsorted(starts, breaks) % FIELDS).any():
        return None
    shape = (len(starts) // FIELDS, FIELDS)
    first, last = (one.reshape(shape)[:, _USED].ravel() for one in (starts, ends))
    numbers = _integers(raw, first, last)
    if numbers is None:
        return None
    table = np.full(shape, -1.0)
    table[:, _USED] = numbers.reshape(-1, len(_USED))
    return table


def _integers(raw: NDArray[np.uint8], starts: Places, ends: Places) -> FloatArray | None:
    """Return the integers at these places, all at once; None if one is something else."""
    negative = raw[starts] == ord("-")
    lengths = ends - starts - negative
    if len(lengths) and (lengths.min() < 1 or lengths.max() > _MOST_DIGITS):
        return None
    values = np.zeros(len(starts))
    rest = np.arange(len(starts))
    place = 0
    while len(rest):  # from the last digit to the first, with those that have one left
        digits = raw[ends[rest] - 1 - place].astype(np.float64) - ord("0")
        if digits.min() < 0 or digits.max() > 9:
            return None
        values[rest] += digits * 10.0**place
        place += 1
        rest = rest[lengths[rest] > place]
    return np.where(negative, -values, values)


def _careful(content: bytes, path: str, *, skip_bad: bool) -> tuple[FloatArray, int]:
    """Return the table and how many lines were bad; raise at the first unless they are skipped."""
    rows: list[list[float]] = []
    bad = 0
    for number, fields in _job_lines(content):
        try:
            rows.append(_row(fields))
        except ValueError as error:
            if not skip_bad:
                raise BadTrace(f"{path}: line {number}", str(error)) from error
            bad += 1
    return np.array(rows, np.float64).reshape(-1, FIELDS), bad


def _job_lines(content: bytes) -> Iterator[tuple[int, list[bytes]]]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        fields = line.split()
        if fields and not fields[0].startswith(b";"):
            yield number, fields


def _row(fields: list[bytes]) -> list[float]:
    if len(fields) < FIELDS:
        raise ValueError(f"has {len(fields)} fields; a job has {FIELDS}")
    numbers = []
    for place, text in enumerate(fields[:FIELDS], start=1):
        try:
            numbers.append(float(text))
        except ValueError:
            shown = text.decode("utf-8", errors="replace")
            raise ValueError(f'field {place} is "{shown}", which is not a number') from None
    if not all(map(np.isfinite, numbers)):
        raise ValueError("has a field that is not finite")
    return numbers


def _trace(name: str, table: FloatArray, header: Header, machine: int, *, unreadable: int) -> Trace:
    size = np.where(table[:, _REQUESTED] > 0, table[:, _REQUESTED], table[:, _ALLOCATED])
    no_run = table[:, _RUN] <= 0
    no_size = ~no_run & (size <= 0)
    too_large = ~no_run & (size > machine) if machine else np.zeros(len(table), np.bool_)
    kept = ~(no_run | no_size | too_large)
    rows = table[kept]
    return make_trace(
        name,
        number=rows[:, _NUMBER].astype(np.int64),
        submit=rows[:, _SUBMIT],
        run=rows[:, _RUN],
        request=rows[:, _REQUEST_S],
        pods=size[kept].astype(np.int64),
        cpu=1000,
        user=_called(rows[:, _USER], {}),
        group=_called(rows[:, _GROUP], {}),
        queue=_called(rows[:, _QUEUE], header.queues),
        status=_statuses(rows[:, _STATUS].astype(np.int64)),
        dropped=Dropped(int(no_run.sum()), int(no_size.sum()), int(too_large.sum()), unreadable),
        processors=machine,
        epoch=header.unix_start,
    )


def _statuses(raw: IntArray) -> IntArray:
    return np.where(np.isin(raw, (FINISHED, FAILED, CANCELLED)), raw, UNKNOWN)


def _called(column: FloatArray, names: Mapping[int, str]) -> NDArray[np.str_]:
    """Return what each is called: by the header, else by its number; unknown (-1) by nothing."""
    numbers, places = np.unique(column.astype(np.int64), return_inverse=True)
    words = []
    for number in numbers.tolist():
        name = names.get(number, str(number) if number >= 0 else "")
        words.append(name if name not in words else str(number))
    return np.array(words, np.str_)[places]
