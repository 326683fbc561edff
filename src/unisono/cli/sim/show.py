"""`unisono sim show`: saved outcomes as a table, as JSON, or as a page to look at."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.cli.help_format import Options

if TYPE_CHECKING:
    from unisono.sim.comparison import Comparison
    from unisono.sim.outcome import Outcome

NAME = "show"
HELP = "compare saved outcomes: a table, JSON, or a page with charts"
DESCRIPTION = """\
Compare outcomes that a simulation saved. The first policy is what the others are compared with.
Outcomes of the same policy with several seeds make one column.

examples:
  unisono sim show fifo.npz easy.npz
  unisono sim show fifo.npz easy.npz --html comparison.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.add_argument("outcomes", metavar="FILE.npz", nargs="+")
    add_showing(parser)


def add_showing(parser: Options) -> None:
    """Add the options of everything that shows outcomes."""
    parser.add_argument("--html", metavar="FILE", help="write one page with charts, for a browser")
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml"),
        default="table",
        help="output format (default: table)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    from unisono.sim.archive import load_outcome

    show([load_outcome(Path(name)) for name in arguments.outcomes], arguments)
    return 0


def show(outcomes: Sequence[Outcome], arguments: argparse.Namespace) -> None:
    """Print outcomes as they were asked for, and write the page."""
    from unisono.sim.comparison import compare

    found = compare(outcomes)
    if arguments.html:
        from unisono.sim.page.render import page

        Path(arguments.html).write_text(page(outcomes, found), encoding="utf-8")
    if arguments.output == "table":
        print(table_of(found))
    else:
        from unisono.sim.report import report

        write_value(report(outcomes, found), arguments.output)


def write_value(value: object, form: str) -> None:
    """Write a value for programs; what is not a number is null."""
    import msgspec

    encoded = msgspec.json.encode(value)
    if form == "json":
        sys.stdout.buffer.write(msgspec.json.format(encoded) + b"\n")
        return
    from unisono.cli.objects import dump

    sys.stdout.write(dump(msgspec.json.decode(encoded), form))


def table_of(found: Comparison) -> str:
    """Return the comparison as an aligned table: a column per policy, differences beside them."""
    from unisono.cli.tables import table
    from unisono.sim.comparison import FIGURES, cell_texts

    forms = {figure.key: figure.form for figure in FIGURES}
    headings = ["FIGURE", found.policies[0]]
    for policy in found.policies[1:]:
        headings += [policy, "DIFFERENCE"]
    rows = [[row.label, *cell_texts(row, forms[row.key])] for row in found.rows]
    return table(headings, rows, right=True, indent="")
