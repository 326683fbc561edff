"""One screen of `unisono top`: GPUs, queues, running and pending workloads, cut to fit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from unisono.apiserver.times import age
from unisono.cli.language import say
from unisono.cli.tables import BOLD, FAINT, REVERSE, paint, paint_table, shortened, table, width_of
from unisono.cli.times import local_times
from unisono.cli.top.picture import Picture, reason_of
from unisono.cli.top.view import HELP, Row, Section, View
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


def frame(
    picture: Picture,
    *,
    now: float,
    width: int,
    height: int,
    colour: bool = False,
    view: View | None = None,
) -> str:
    """Return a screen of at most so many columns and lines; with a view, one to choose on."""
    tables = sections(picture, now)
    if view is None:
        lines = _tables(picture, tables, now, width, height, None)
        return "\n".join(_painted(lines[:height], on=colour))
    view.settle(tables)
    if view.shows == "help":
        view.page = max(1, height - 2)
        return "\n".join(
            _cut([say("keys of unisono top"), "", *map(say, HELP.split("\n"))], width)[:height]
        )
    reason = wrapped(reason_of_row(picture, tables, view, now), width)
    if view.shows == "reason":
        return "\n".join(_page_of(reason, view, height))
    pane = _pane(reason if view.focus == 0 else _without_about(reason), height)
    lines = _tables(picture, tables, now, width, height - len(pane) - 1, view)
    lines = _painted(lines[: height - len(pane) - 1], on=colour)
    hint = say("? help   Tab next table   s sort   Enter the whole reason   q leave")
    return "\n".join([*_marked(lines), *pane, paint(shortened(hint, width), FAINT, on=colour)])


def sections(picture: Picture, now: float) -> tuple[Section, Section, Section]:
    """Return the three tables."""
    busy = [one for one in picture.workloads if one["state"] in _BUSY]
    return _queue_section(picture), _busy_section(busy, now), _plan_section(picture.plan, now)


def _tables(
    picture: Picture,
    tables: Sequence[Section],
    now: float,
    width: int,
    height: int,
    view: View | None,
) -> list[str]:
    counts = [len(one.rows) for one in tables]
    shares = _shares(height - _FIXED, (counts[0], counts[1], counts[2]))
    blocks = [list(_head(picture, now))]
    for at, section in enumerate(tables):
        rows = section.rows if view is None else view.in_order(at, section)
        most = min(shares[at], len(rows))
        top = 0
        if view is not None:
            # The line that says how many more there are is not one of the rows.
            top = view.window(at, len(rows), max(1, most))
            if at == view.focus:
                view.page = max(1, most)
        blocks.append(_block(section, rows, most, at, top, view))
    lines: list[str] = []
    for number, block in enumerate(blocks):
        lines += [*([""] if number else []), *_cut(block, width)]
    return lines


def _cut(lines: Sequence[str], width: int) -> list[str]:
    return [shortened(line, width).rstrip() for line in lines]


# ---- the reason of a row -------------------------------------------------------------------------


def reason_of_row(picture: Picture, tables: Sequence[Section], view: View, now: float) -> list[str]:
    """Return everything there is to say about the selected row, as lines that may be long."""
    key = view.selected.get(view.focus, "")
    if view.focus == 0:
        found = next((one for one in picture.queues if one["name"] == key), None)
        return [] if found is None else _about_queue(picture, found, now)
    rows = picture.workloads if view.focus == 1 else picture.plan
    found = next((one for one in rows if _name(one) == key), None)
    return [] if found is None else reason_of(picture, found, now).split("\n")


def _about_queue(picture: Picture, queue: Json, now: float) -> list[str]:
    lines = [f"ClusterQueue {queue['name']}: {queue['state']}"]
    if queue.get("message"):
        lines.append(f"  {local_times(queue['message'], now)}")
    if queue["cohort"]:
        lines.append(f"  cohort    {queue['cohort']}")
    lines.append(f"  strategy  {queue['strategy']}")
    for name, one in queue["resources"].items():
        lines.append(f"  {name}: {one['used']} of {one['nominal']} used")
    head = next((one for one in picture.plan if one["clusterQueue"] == queue["name"]), None)
    if head is not None:
        lines += ["", "next:", *(f"  {line}" for line in reason_of(picture, head, now).split("\n"))]
    return [say(line) for line in lines]


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Wrap lines, each as far in as it began."""
    found = []
    for line in lines:
        inside = len(line) - len(line.lstrip(" -"))
        found += textwrap.wrap(
            line,
            max(20, width * len(line) // max(1, width_of(line))),
            subsequent_indent=" " * inside,
            drop_whitespace=True,
        ) or [""]
    return found


def _without_about(reason: Sequence[str]) -> list[str]:
    """Return a reason without the lines below its headline: the table has most of that."""
    end = reason.index("") if "" in reason else len(reason)
    return [*reason[:1], *reason[end:]]


def _pane(reason: Sequence[str], height: int) -> list[str]:
    """Return the lines below the tables; what does not fit there is one key away."""
    room = max(3, height // 3)
    if not reason:
        return []
    lines = [one for one in reason if one]  # empty lines would cost others
    if len(lines) > room:
        lines = [*lines[: room - 1], say(f"  … {len(lines) - room + 1} more lines: Enter")]
    return ["", *lines]


def _page_of(reason: Sequence[str], view: View, height: int) -> list[str]:
    room = max(1, height - 1)
    view.page = room
    view.scroll = max(0, min(view.scroll, len(reason) - room))
    shown = list(reason[view.scroll : view.scroll + room])
    rest = len(reason) - view.scroll - room
    return [*shown, say(f"{max(0, rest)} more lines   Enter or Esc closes   q leaves")]


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
    gpus_text = [f"{used} of {there} in use ({share})", f"{max(0, there - used - shut)} free"]
    gpus_text += [f"{shut} on nodes that are not ready"] if shut else []
    yield say(f"GPUs   {bar(used, there)}  {', '.join(gpus_text)}")
    states: dict[str, int] = {}
    for one in picture.nodes:
        states[one["status"]] = states.get(one["status"], 0) + 1
    counts = ", ".join(f"{count} {word}" for word, count in sorted(states.items()))
    yield say(f"nodes  {len(picture.nodes)}{f': {counts}' if counts else ''}")


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


def _block(
    section: Section, rows: Sequence[Row], most: int, at: int, top: int, view: View | None
) -> list[str]:
    """Return a titled table with at most so many rows, and how many more there are."""
    if not rows:
        return [say(f"{section.title} (0)")]
    headings = [say(one) for one in section.headings]
    order = view.orders.get(at) if view is not None else None
    if order is not None:
        headings[order[0]] += "v" if order[1] else "^"
    lines = table(headings, [row.cells for row in rows]).split("\n")
    shown = [lines[0], *lines[1 + top : 1 + top + most]]
    if view is not None and view.focus == at:
        place = 1 + view.places.get(at, 0) - top
        if place < len(shown):
            shown[place] = _SELECTED + shown[place][1:]
    cut = len(rows) - most
    if cut <= 0:
        more = []
    elif view is None:
        more = [say(f"  and {cut} more")]
    else:
        more = [say(f"  {top + 1} to {top + most} of {len(rows)}")]
    return [say(f"{section.title} ({len(rows)})"), *shown, *more]


def _queue_section(picture: Picture) -> Section:
    first: dict[str, Json] = {}
    for one in picture.plan:
        first.setdefault(one["clusterQueue"], one)
    rows = []
    for queue in picture.queues:
        used, owned = _quota(queue["resources"])
        head = first.get(queue["name"])
        waits = f"{head['name']}: {head['reason']}" if head else ""
        counts = (queue["pending"], queue["admitted"])
        share = used / owned if owned else None
        cells = (
            *(queue["name"], queue["cohort"], bar(used, owned, 10), f"{used}/{owned}"),
            *(*counts, waits),
        )
        ranks = (queue["name"], queue["cohort"] or None, share, used, *counts, waits or None)
        rows.append(Row(queue["name"], cells, ranks))
    headings = ("QUEUE", "COHORT", "GPUS", "USED", "PENDING", "RUNNING", "HEAD OF QUEUE")
    return Section("queues", headings, rows)


def _quota(resources: Json) -> tuple[int, int]:
    used = owned = 0
    for name, one in resources.items():
        if is_gpu(name):
            used += Quantity.from_raw(one["used"]).amount(name)
            owned += Quantity.from_raw(one["nominal"]).amount(name)
    return used, owned


def _name(one: Json) -> str:
    return f"{one['namespace']}/{one['name']}"


def _busy_section(busy: Sequence[Json], now: float) -> Section:
    order = sorted(busy, key=lambda one: (-one["gpus"], one["namespace"], one["name"]))
    rows = []
    for one in order:
        queue = "" if one["queue"] == NO_QUEUE else one["queue"]
        counts = (one["gpus"], one["pods"], say(one["state"]))
        cells = (_name(one), queue, *counts, age(one["since"], now), one["detail"])
        lasted = -instant_ms(one["since"]) if one["since"] else None
        ranks = (_name(one), queue or None, *counts, lasted, one["detail"])
        rows.append(Row(_name(one), cells, ranks))
    return Section("running", ("NAME", "QUEUE", "GPUS", "PODS", "STATE", "FOR", "WHERE"), rows)


def _plan_section(plan: Sequence[Json], now: float) -> Section:
    rows = []
    for one in plan:
        queue = "" if one["queue"] == NO_QUEUE else one["queue"]
        counts = (one["priority"], one["pods"])
        cells = (one["position"], _name(one), queue, *counts, _start(one, now), _why(one, now))
        start = instant_ms(one["start"]) if one["start"] is not None else None
        ranks = (one["position"], _name(one), queue or None, *counts, start, _why(one, now))
        rows.append(Row(_name(one), cells, ranks))
    return Section("pending", ("POS", "NAME", "QUEUE", "PRIO", "PODS", "STARTS", "WHY"), rows)


def _why(row: Json, now: float) -> str:
    """Return why something waits, without the date, which has a column of its own."""
    parts = [part for part in row["message"].split("; ") if not part.startswith(_DATES)]
    return say(local_times("; ".join(parts), now) or str(row["reason"]))


def _start(row: Json, now: float) -> str:
    if row["start"] is None:
        return ""
    left = instant_ms(row["start"]) - round(now * 1000)
    soon = say(f"in {format_duration(left)}") if left > 0 else say("overdue")
    return soon if row["promised"] else f"~{soon}"


_SELECTED = "\x00"  # marks a line until it is painted


def _marked(lines: Sequence[str]) -> list[str]:
    """Show which row is selected: with a sign, and reversed where there are colours."""
    return [f">{line[1:]}" if line.startswith(_SELECTED) else line for line in lines]


def _painted(lines: list[str], *, on: bool) -> list[str]:
    if not on:
        return lines
    made = []
    for number, line in enumerate(lines):
        if line.startswith(_SELECTED):
            made.append(paint(f">{line[1:]}", REVERSE, on=True))
            continue
        is_title = bool(line) and not line.startswith(" ")
        is_head = number > 0 and line.startswith("  ") and not lines[number - 1].startswith(" ")
        if is_title:
            made.append(paint(line, BOLD, on=True))
        elif is_head:
            made.append(paint(line, FAINT, on=True))
        else:
            made.append(paint_table(line, on=True, with_head=False))
    return made
