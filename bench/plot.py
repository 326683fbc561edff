"""A plot of every series: cost against size, both logarithmic, so that slopes are exponents."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

from bench.harness import PER_SECOND, Result, Row, exponent, series

COLUMNS = 2  # as many as fit side by side on a page and can still be read
PANEL_INCHES = (7.0, 4.5)


class NoMatplotlib(Exception):
    """A plot was asked for and nothing can draw it."""


def check_matplotlib() -> None:
    """Complain before minutes of measuring rather than after."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise NoMatplotlib(
            "--plot needs matplotlib, which is not installed; "
            "install it with: .venv/bin/python -m pip install -e '.[plot]'"
        ) from error


def curves(result: Result) -> list[list[Row]]:
    """Return the series of a result that are durations."""
    return [same for same in series(result.rows) if same[0].unit in PER_SECOND]


def label(curve: Sequence[Row]) -> str:
    """Name a curve in the legend, with its exponent."""
    return f"{curve[0].what}: n^{exponent([(row.n, row.median) for row in curve]):.2f}"


def draw(results: Sequence[Result], path: Path) -> int:
    """Write a plot with one panel a benchmark; return how many panels there are."""
    pyplot = importlib.import_module("matplotlib.pyplot")
    pyplot.switch_backend("Agg")  # files only, no display
    panels = {result.benchmark: curves(result) for result in results if curves(result)}
    lines = max(1, -(-len(panels) // COLUMNS))
    width, height = PANEL_INCHES
    figure, grid = pyplot.subplots(
        lines, COLUMNS, figsize=(width * COLUMNS, height * lines), squeeze=False
    )
    axes = [axis for line in grid for axis in line]
    for axis, (name, shown) in zip(axes, panels.items(), strict=False):
        for curve in shown:
            sizes = [row.n for row in curve]
            taken_s = [row.median / PER_SECOND[row.unit] for row in curve]
            axis.plot(sizes, taken_s, marker="o", label=label(curve))
        axis.set(title=name, xscale="log", yscale="log", ylabel="seconds")
        axis.set_xlabel(" or ".join(dict.fromkeys(curve[0].of for curve in shown)))
        axis.grid(visible=True, alpha=0.3)
        axis.legend(fontsize="x-small")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return len(panels)
