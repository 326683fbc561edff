"""What the page says in words and numbers: tiles on top, and the table of all figures."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from unisono.sim.comparison import Cell, Comparison, Row
from unisono.sim.figures import FIGURES, LOWER, NEITHER, Figure
from unisono.sim.texts import difference

# What a reader wants to know first.
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
    """Return the value to mark; NaN if they are all alike or nobody can say which is best."""
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
