"""Cells of a comparison in words, the same for terminals and pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from unisono.sim.comparison import Cell, Row
from unisono.sim.form import NOTHING


def cell_texts(row: Row, form: Callable[[float], str]) -> list[str]:
    """Return a row's values, each after the first with its difference beside it."""
    return list(_texts(row, form))


def _texts(row: Row, form: Callable[[float], str]) -> Iterator[str]:
    first, *others = row.cells
    yield form(first.mean)
    for cell in others:
        yield form(cell.mean)
        yield difference(cell, first, form)


def difference(cell: Cell, first: Cell, form: Callable[[float], str]) -> str:
    """Return a difference: relative where that means something, and what it is worth.

    >>> from unisono.sim.form import number
    >>> difference(Cell(5, 5, 5, -5, 1, "better"), Cell(10, 10, 10), number)
    '-50.0 % better'
    """
    if math.isnan(cell.difference):
        return NOTHING
    if cell.difference == 0:
        return "="
    if first.mean and math.isfinite(first.mean):
        change = 100 * cell.difference / abs(first.mean)
        text = f"{change:+.1f} %" if abs(change) < 1000 else f"x {cell.mean / first.mean:.3g}"
    else:
        text = "+" + form(cell.difference) if cell.difference > 0 else form(cell.difference)
    return f"{text} {cell.verdict}".rstrip()
