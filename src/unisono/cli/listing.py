"""What `unisono queues`, `workloads` and `nodes` have in common: tables, forms, and watching.

A command says how to read its rows; the same rows become a table, JSON or YAML. Watching reads them
again once a second and prints the ones that changed, since a row is put together from objects of
several kinds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unisono.engine.model.errors import InvalidManifest

if TYPE_CHECKING:
    from unisono.cli.tables import Columns
    from unisono.kube.client import Client
    from unisono.kube.form import Json

# Between two looks while watching: soon enough for a person, and little work for the API.
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table: its name for programs, its headings, its rows as cells and as values.

    `more` are columns for `-o wide`, by their headings: one cell for every row. `notes` are
    sentences below the table.
    """

    name: str
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    values: Sequence[Json]
    more: Mapping[str, Sequence[object]] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def widened(self) -> Sheet:
        """Return it with all of its columns."""
        cells = zip(*self.more.values(), strict=True) if self.more else [()] * len(self.rows)
        rows = [[*row, *added] for row, added in zip(self.rows, cells, strict=True)]
        return Sheet(self.name, [*self.headings, *self.more], rows, self.values, notes=self.notes)


Reads = Callable[["Client", argparse.Namespace], Awaitable[list[Sheet]]]


def add_form(parser: argparse.ArgumentParser) -> None:
    """Add the options of all lists."""
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="output format (default: table); wide adds columns",
    )
    parser.add_argument("-w", "--watch", action="store_true", help="keep printing what changes")


async def show(client: Client, arguments: argparse.Namespace, reads: Reads) -> int:
    """Print the sheets in the form that was asked for."""
    if arguments.output in ("json", "yaml"):
        from unisono.cli.objects import dump

        if arguments.watch:
            raise InvalidManifest("-w", "is for tables")
        sheets = await reads(client, arguments)
        sys.stdout.write(
            dump({sheet.name: list(sheet.values) for sheet in sheets}, arguments.output)
        )
        return 0
    is_wide = arguments.output == "wide"
    sheets = await _sheets(client, arguments, reads, is_wide=is_wide)
    printed = [_columns(sheet, is_wide=is_wide) for sheet in sheets]
    _print_first(sheets, printed)
    while arguments.watch:
        await _pause()
        again = await _sheets(client, arguments, reads, is_wide=is_wide)
        for old, new, columns in zip(sheets, again, printed, strict=True):
            _print_changed(old, new, columns)
        sheets = again
    return 0


async def _sheets(
    client: Client, arguments: argparse.Namespace, reads: Reads, *, is_wide: bool
) -> list[Sheet]:
    sheets = await reads(client, arguments)
    return [sheet.widened() for sheet in sheets] if is_wide else sheets


async def _pause() -> None:
    from unisono.runtime.clock import RealClock

    await RealClock().sleep(_PAUSE_SECONDS)


def _columns(sheet: Sheet, *, is_wide: bool) -> Columns:
    from unisono.cli.language import say
    from unisono.cli.tables import Columns, screen_width
    from unisono.kube.tables import Column

    heads = [Column(name=say(title)) for title in sheet.headings]
    most = 0 if is_wide else screen_width()
    return Columns(heads, is_wide=False, has_namespace=False, most=most)


def _print_first(sheets: list[Sheet], printed: list[Columns]) -> None:
    from unisono.cli.tables import is_colourful, paint_table

    texts = [
        paint_table(columns.text(_rows(sheet.rows), with_head=True), on=is_colourful())
        for sheet, columns in zip(sheets, printed, strict=True)
        if sheet.rows
    ]
    if texts:
        notes = [note for sheet in sheets for note in sheet.notes]
        print("\n\n".join([*texts, *notes]), flush=True)
    else:
        print("unisono: nothing found", file=sys.stderr)


def _print_changed(old: Sheet, new: Sheet, columns: Columns) -> None:
    """Print the rows with other values than before; a greater age is no change."""
    changed = [
        row for row, value in zip(new.rows, new.values, strict=True) if value not in old.values
    ]
    if changed:
        from unisono.cli.tables import is_colourful, paint_table

        is_new = not old.rows
        text = columns.text(_rows(changed), with_head=is_new)
        print(paint_table(text, on=is_colourful(), with_head=is_new), flush=True)


def _rows(rows: Sequence[Sequence[object]]) -> list[Any]:
    from unisono.kube.tables import Row

    return [Row(cells=["-" if cell in (None, "") else cell for cell in row]) for row in rows]
