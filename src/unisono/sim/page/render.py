"""Outcomes as one HTML page: what is known as text and tables, curves and bars drawn by `page.js`.

The page asks for nothing: style, script and figures are inside, and its policy forbids the rest.
Everything is reduced here before it is written, so the page stays small however long the run was.
"""

from __future__ import annotations

import html
import math
import pkgutil
from collections.abc import Sequence

import msgspec
import numpy as np

from unisono.sim.comparison import (
    FIGURES,
    LOWER,
    NEITHER,
    Cell,
    Comparison,
    Figure,
    Row,
    difference,
)
from unisono.sim.formatting import duration, number
from unisono.sim.measures import capacity, counts_gpus, sizes, waits
from unisono.sim.outcome import Outcome
from unisono.sim.page.gantt import Window, bars, node_sizes, run_of, windows_of
from unisono.sim.page.overview import binned, edges_of, overview, peaks, shares_up_to, wait_grid
from unisono.sim.trace import BadTrace, FloatArray

MOST_NODES = 2000  # nodes that are named at the side of a chart
_MILLE = 1000

# What `page.js` draws from.
PageData = dict[str, object]


def page(outcomes: Sequence[Outcome], found: Comparison, title: str = "") -> str:
    """Return the page; charts show the first seed of every policy, the table all of them."""
    if not outcomes or not len(outcomes[0].trace):
        raise BadTrace(
            "", "nothing to show: there is no outcome, or the trace has no jobs; simulate one first"
        )
    shown = _first_of_each(outcomes)
    heading = title or f"{shown[0].trace.name}: {_and(found.policies)}"
    content = msgspec.json.encode(_content(shown)).decode().replace("<", "\\u003c")
    return _HTML.format(
        title=html.escape(heading),
        subtitle=html.escape(_subtitle(shown, found)),
        style=_part("page.css"),
        tiles=tiles(found),
        table=comparison_table(found),
        unit="GPUs" if counts_gpus(shown[0]) else "CPUs",
        money=_MONEY if any(one.bill is not None for one in shown) else "",
        content=content,
        script=_part("page.js"),
    )


def _first_of_each(outcomes: Sequence[Outcome]) -> list[Outcome]:
    first: dict[str, Outcome] = {}
    for outcome in outcomes:
        first.setdefault(outcome.policy, outcome)
    return list(first.values())


def _part(name: str) -> str:
    content = pkgutil.get_data("unisono.sim.page", name)
    assert content is not None, "the parts of the page belong to the package"
    return content.decode()


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _subtitle(shown: Sequence[Outcome], found: Comparison) -> str:
    trace, has = shown[0].trace, shown[0].capacity
    cluster = f"{has.nodes:,} nodes" if has.nodes else "a cluster"
    if counts_gpus(shown[0]):
        cluster += f" with {number(has.gpu_milli / 1000)} GPUs"
    else:
        cluster += f" with {number(has.cpu / 1000)} CPUs"
    parts = [
        f"{len(trace):,} jobs submitted over {duration(float(trace.submit[-1] - trace.submit[0]))}",
        cluster,
    ]
    if trace.dropped.total:
        parts.append(f"{trace.dropped.total:,} jobs of the source left out")
    if found.seeds > 1:
        parts.append(f"table over {found.seeds} seeds, charts of the first")
    return " · ".join(parts)


def _content(shown: Sequence[Outcome]) -> PageData:
    first, last = run_of(shown)
    edges = edges_of(first, last)
    longest = max((float(waits(one).max(initial=0.0)) for one in shown), default=0.0)
    grid = wait_grid(longest)
    trace = shown[0].trace
    windows = [_window(window, shown) for window in windows_of(shown)]
    if (whole := overview(shown)) is not None:
        windows.append(whole)
    return {
        "first": first,
        "last": last,
        "epoch": trace.epoch,
        "unit": "GPUs" if counts_gpus(shown[0]) else "CPUs",
        "capacity": capacity(shown[0]),
        "waits": _rounded(grid, 4),
        "queues": list(trace.queues),
        "nodes": _nodes(shown),
        "policies": [_policy(one, edges, grid) for one in shown],
        "windows": windows,
    }


def _policy(outcome: Outcome, edges: FloatArray, grid: FloatArray) -> PageData:
    depth = outcome.depth
    used = depth.gpu_milli if counts_gpus(outcome) else depth.cpu
    whole = max(1000 * capacity(outcome), 1.0)
    pending = depth.pending.astype(np.float64)
    mille = _MILLE * binned(depth.time, used / whole, edges)
    shares = _MILLE * shares_up_to(waits(outcome), grid, len(outcome.trace))
    return {
        "name": outcome.policy,
        "use": np.round(mille).astype(int).tolist(),
        "queue": _rounded(binned(depth.time, pending, edges), 3),
        "peak": peaks(depth.time, pending, edges).astype(int).tolist(),
        "waits": np.round(shares, 1).tolist(),
        **_money(outcome, edges),
    }


def _money(outcome: Outcome, edges: FloatArray) -> PageData:
    """Return what an hour of all machines cost over time, where prices are known."""
    if outcome.bill is None:
        return {}
    time, rate = outcome.bill.rate()
    return {
        "money": _rounded(binned(time, rate, edges), 4),
        "moneyPeak": _rounded(peaks(time, rate, edges), 4),
    }


def _rounded(values: FloatArray, digits: int) -> list[float]:
    """Return values with so many digits that mean something."""
    return [float(f"{value:.{digits}g}") for value in values.tolist()]


def _nodes(shown: Sequence[Outcome]) -> PageData | None:
    spans = shown[0].spans
    if spans is None or len(spans.names) > MOST_NODES:
        return None
    return {"names": list(spans.names), "sizes": [size / 1000 for size in node_sizes(shown[0])]}


def _window(window: Window, shown: Sequence[Outcome]) -> PageData:
    return {
        "title": window.title,
        "start": window.start,
        "length": window.end - window.start,
        "charts": [_chart(one, window) for one in shown],
    }


def _chart(outcome: Outcome, window: Window) -> PageData:
    """Return the bars of a window as one flat list, and the jobs they are about."""
    trace, size = outcome.trace, sizes(outcome)
    length = window.end - window.start
    jobs: dict[int, int] = {}
    flat: list[float] = []
    for bar in bars(outcome, window):
        place = jobs.setdefault(bar.job, len(jobs))
        # A ten-thousandth of the window is a fraction of a pixel.
        start, end = (round(10_000 * (at - window.start) / length) for at in (bar.start, bar.end))
        flat += [place, bar.low / 1000, bar.high / 1000, max(start, -1), min(end, 10_001)]
    about = [
        [
            trace.name_of(row),
            int(trace.queue[row]),
            float(size[row]),
            round(float(outcome.start[row] - trace.submit[row]), 1),
            round(float(outcome.running[row]), 1),
            int(outcome.preemptions[row]),
        ]
        for row in jobs
    ]
    return {"bars": flat, "jobs": about}


_MONEY = """<section class="wide"><h2>What machines cost</h2>
<p>US$ an hour over time; the area below the curve is the cost. <span id="money-scale"></span></p>
<figure id="money"></figure></section>
"""

_HTML = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#table">Skip to the table</a>
<header>
<h1>{title}</h1>
<p>{subtitle}</p>
</header>
<main>
<section aria-label="In short" class="tiles">
{tiles}
</section>
<nav class="policies" id="policies" aria-label="Policies shown in the charts"></nav>
<div class="grid">
<section><h2>How long jobs wait</h2>
<p>Share of all jobs that start within a wait; higher is better.</p>
<figure id="waits"></figure></section>
<section><h2>Jobs in the queue</h2>
<p>Jobs waiting over time. <span id="queue-scale"></span></p>
<figure id="queue"></figure></section>
<section class="wide"><h2>Utilisation</h2>
<p>Share of all {unit} in use over time.</p>
<div id="use"></div></section>
{money}</div>
<section><h2>Jobs on nodes</h2>
<p>Time to the right, {unit} from top to bottom. One bar is a job; its colour shows
<span id="colour-of">how long it waited</span>; empty space is idle.</p>
<div class="controls" id="controls"></div>
<div id="gantt"></div>
</section>
<section id="table" tabindex="-1"><h2>All figures</h2>
{table}
</section>
<noscript><p>The charts need JavaScript; the table does not.</p></noscript>
</main>
<p id="said" class="unseen" role="status" aria-live="polite"></p>
<script type="application/json" id="content">{content}</script>
<script>
{script}</script>
</body>
</html>
"""


# The figures on the tiles, which a reader wants first.
_IN_SHORT = (
    ("wait.mean", "mean wait"),
    ("wait.p95", "95 % wait less than"),
    ("slowdown.mean", "mean slowdown"),
    ("utilisation", "utilisation"),
    ("cost", "cost"),
)
_BY_KEY = {figure.key: figure for figure in FIGURES}


def tiles(found: Comparison) -> str:
    """Return a tile for every policy."""
    rows = {row.key: row for row in found.rows}
    return "\n".join(_tile(found, rows, place) for place in range(len(found.policies)))


def _tile(found: Comparison, rows: dict[str, Row], place: int) -> str:
    facts = []
    for key, label in _IN_SHORT:
        if key in rows:
            value = _BY_KEY[key].form(rows[key].cells[place].mean)
            facts.append(f"<div><dt>{label}</dt><dd>{html.escape(value)}</dd></div>")
    name = html.escape(found.policies[place])
    inside = f"<h2>{name}</h2><dl>{''.join(facts)}</dl>"
    return f'<article class="tile" data-policy="{place}">{inside}</article>'


def comparison_table(found: Comparison) -> str:
    """Return the table; the best value of a row is marked, differences are in words, too."""
    first, *others = (html.escape(policy) for policy in found.policies)
    heads = [f'<th scope="col">Figure</th><th scope="col">{first}</th>']
    heads += [f'<th scope="col">{name}</th><th scope="col">difference</th>' for name in others]
    body = "\n".join(_row(row) for row in found.rows)
    caption = f"Differences are to {first}."
    if found.seeds > 1:
        caption += (
            f" A verdict is given where the mean difference over {found.seeds} seeds is larger"
            " than its spread."
        )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of all figures">'
        f"<table><caption>{caption}</caption>"
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _row(row: Row) -> str:
    figure = _BY_KEY[row.key]
    best = _best(figure, row.cells)
    cells = []
    for place, cell in enumerate(row.cells):
        mark = ' class="best"' if cell.mean == best else ""
        between = (
            f' title="{figure.form(cell.low)} to {figure.form(cell.high)}"'
            if cell.low != cell.high
            else ""
        )
        cells.append(f"<td{mark}{between}>{html.escape(figure.form(cell.mean))}</td>")
        if place:
            text = html.escape(difference(cell, row.cells[0], figure.form))
            cells.append(f'<td class="{_direction(figure, cell)}">{text}</td>')
    return f'<tr><th scope="row">{html.escape(row.label)}</th>{"".join(cells)}</tr>'


def _best(figure: Figure, cells: Sequence[Cell]) -> float:
    """Return the value to mark; NaN if all are equal or neither direction is better."""
    means = [cell.mean for cell in cells if not math.isnan(cell.mean)]
    if figure.better == NEITHER or len(set(means)) < 2:
        return math.nan
    return min(means) if figure.better == LOWER else max(means)


def _direction(figure: Figure, cell: Cell) -> str:
    if cell.verdict in ("better", "worse"):
        return cell.verdict
    if cell.verdict or figure.better == NEITHER or not cell.difference:
        return "even"
    if math.isnan(cell.difference):
        return "even"
    is_better = (cell.difference < 0) == (figure.better == LOWER)
    return "better" if is_better else "worse"
