"""One screen of `unisono top`: GPUs, queues, running and pending workloads, cut to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from unisono.apiserver.times import age
from unisono.cli.tables import BOLD, FAINT, paint, paint_table, table
from unisono.cli.workload_state import NO_QUEUE
from unisono.engine.explain.formatting import format_duration
from unisono.engine.model.resources import is_gpu
from unisono.kinds.quantity import Quantity
from unisono.kinds.scalar import instant_ms

if TYPE_CHECKING:
    from unisono.kube.form import Json

_BAR = 20  # so many characters a bar
_LEAST_ROWS = 3  # of each table, however small the terminal is
_FIXED = 12  # lines that are no rows: titles, headings, spaces
# The last two are what earlier versions wrote.
_DATES = (
    "starts by ",
    "expected to start",
    "may start at about",
    "it is planned to start",
    "it is expected to start",
)
_BUSY = ("running", "starting", "repairing", "leaving", "buying")


@dataclass(frozen=True, slots=True)
class Picture:
    """What was read, as rows of `nodes`, `queues`, `workloads` and `plan`."""

    cluster: str
    nodes: Sequence[Json]
    queues: Sequence[Json]
    workloads: Sequence[Json]
    plan: Sequence[Json]


def frame(picture: Picture, *, now: float, width: int, height: int, colour: bool = False) -> str:
    """Return a screen of at most so many columns and lines."""
    busy = [one for one in picture.workloads if one["state"] in _BUSY]
    shares = _shares(height - _FIXED, (len(picture.queues), len(busy), len(picture.plan)))
    blocks = [
        list(_head(picture, now)),
        _block("queues", _queue_table(picture), len(picture.queues), shares[0]),
        _block("running", _busy_table(busy, now), len(busy), shares[1]),
        _block("pending", _plan_table(picture.plan, now), len(picture.plan), shares[2]),
    ]
    lines: list[str] = []
    for number, block in enumerate(blocks):
        lines += [*([""] if number else []), *(line[:width].rstrip() for line in block)]
    return "\n".join(_painted(lines[:height], on=colour))


def _shares(rows: int, wanted: tuple[int, int, int]) -> tuple[int, int, int]:
    """Share lines among the tables: what a short table does not need goes to the longer ones."""
    left = max(rows, _LEAST_ROWS * 3)
    given = [0, 0, 0]
    for place, index in enumerate(sorted(range(3), key=lambda index: wanted[index])):
        given[index] = min(wanted[index], max(_LEAST_ROWS, left // (3 - place)))
        left -= given[index]
    return given[0], given[1], given[2]


# ---- the head ------------------------------------------------------------------------------------


def _head(picture: Picture, now: float) -> Iterator[str]:
    moment = datetime.fromtimestamp(now, tz=UTC)
    yield f"unisono top  {picture.cluster}  {moment:%Y-%m-%d %H:%M:%S} UTC"
    used, there = _gpus(picture.nodes)
    closed = [one for one in picture.nodes if one["status"] != "Ready"]
    shut = _gpus(closed)[1]
    share = f"{100 * used // there} %" if there else "-"
    told = [f"{used} of {there} in use ({share})", f"{max(0, there - used - shut)} free"]
    told += [f"{shut} on nodes that are not ready"] if shut else []
    yield f"GPUs   {bar(used, there)}  {', '.join(told)}"
    states: dict[str, int] = {}
    for one in picture.nodes:
        states[one["status"]] = states.get(one["status"], 0) + 1
    counts = ", ".join(f"{count} {word}" for word, count in sorted(states.items()))
    yield f"nodes  {len(picture.nodes)}{f': {counts}' if counts else ''}"


def _gpus(nodes: Sequence[Json]) -> tuple[int, int]:
    used = there = 0
    for node in nodes:
        for name, one in node["resources"].items():
            if is_gpu(name):
                used += Quantity.from_raw(one["used"]).amount(name)
                there += Quantity.from_raw(one["allocatable"]).amount(name)
    return used, there


def bar(used: int, there: int, width: int = _BAR) -> str:
    """Draw how much of something is used; what is more than there is ends with `+`.

    >>> bar(1, 4, 8), bar(5, 4, 8), bar(0, 0, 8)
    ('[##......]', '[########+', '[........]')
    """
    if not there:
        return f"[{'.' * width}]"
    full = min(width, -(-used * width // there))
    return f"[{'#' * full}{'.' * (width - full)}{'+' if used > there else ']'}"


# ---- tables --------------------------------------------------------------------------------------


def _block(title: str, lines: list[str], rows: int, most: int) -> list[str]:
    """Return a titled table with at most so many rows, and how many more there are."""
    if not rows:
        return [f"{title} (0)"]
    shown = lines[: most + 1]
    cut = rows - most
    return [f"{title} ({rows})", *shown, *([f"  and {cut} more"] if cut > 0 else [])]


def _queue_table(picture: Picture) -> list[str]:
    first: dict[str, Json] = {}
    for one in picture.plan:
        first.setdefault(one["clusterQueue"], one)
    rows = []
    for queue in picture.queues:
        used, owned = _quota(queue["resources"])
        head = first.get(queue["name"])
        waits = f"{head['name']}: {head['reason']}" if head else ""
        counts = (queue["pending"], queue["admitted"])
        rows.append(
            (
                queue["name"],
                queue["cohort"],
                bar(used, owned, 10),
                f"{used}/{owned}",
                *counts,
                waits,
            )
        )
    headings = ("QUEUE", "COHORT", "GPUS", "USED", "PENDING", "RUNNING", "HEAD OF QUEUE")
    return table(headings, rows).split("\n")


def _quota(resources: Json) -> tuple[int, int]:
    used = owned = 0
    for name, one in resources.items():
        if is_gpu(name):
            used += Quantity.from_raw(one["used"]).amount(name)
            owned += Quantity.from_raw(one["nominal"]).amount(name)
    return used, owned


def _busy_table(busy: Sequence[Json], now: float) -> list[str]:
    order = sorted(busy, key=lambda one: (-one["gpus"], one["namespace"], one["name"]))
    rows = [
        (
            f"{one['namespace']}/{one['name']}",
            "" if one["queue"] == NO_QUEUE else one["queue"],
            one["gpus"],
            one["pods"],
            one["state"],
            age(one["since"], now),
            one["detail"],
        )
        for one in order
    ]
    return table(("NAME", "QUEUE", "GPUS", "PODS", "STATE", "FOR", "WHERE"), rows).split("\n")


def _plan_table(plan: Sequence[Json], now: float) -> list[str]:
    rows = [
        (
            one["position"],
            f"{one['namespace']}/{one['name']}",
            "" if one["queue"] == NO_QUEUE else one["queue"],
            one["priority"],
            one["pods"],
            _start(one, now),
            _why(one),
        )
        for one in plan
    ]
    return table(("POS", "NAME", "QUEUE", "PRIO", "PODS", "STARTS", "WHY"), rows).split("\n")


def _why(row: Json) -> str:
    """Return why something waits, without the date, which has a column of its own."""
    parts = [part for part in row["message"].split("; ") if not part.startswith(_DATES)]
    return "; ".join(parts) or str(row["reason"])


def _start(row: Json, now: float) -> str:
    if row["start"] is None:
        return ""
    left = instant_ms(row["start"]) - round(now * 1000)
    soon = f"in {format_duration(left)}" if left > 0 else "overdue"
    return soon if row["promised"] else f"~{soon}"


def _painted(lines: list[str], *, on: bool) -> list[str]:
    if not on:
        return lines
    made = []
    for number, line in enumerate(lines):
        is_title = bool(line) and not line.startswith(" ")
        is_head = number > 0 and line.startswith("  ") and not lines[number - 1].startswith(" ")
        if is_title:
            made.append(paint(line, BOLD, on=True))
        elif is_head:
            made.append(paint(line, FAINT, on=True))
        else:
            made.append(paint_table(line, on=True, with_head=False))
    return made
