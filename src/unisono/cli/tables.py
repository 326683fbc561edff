"""Text for people: aligned columns, wrapped words, and colours where they can be shown.

Nothing here breaks in a pipe or a small terminal. `table` takes all of its rows at once; `Columns`
stays aligned while rows keep coming.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from unisono.kube.tables import Column, Row

_NUMBER = re.compile(r"-?[0-9]+[a-zA-Z]{0,2}")  # 12, 500m, 64Gi
WIDTH = 100  # what most terminals show without wrapping
_NOTHING = "-"
# A column of texts is not cut below this: a line that is a little too long says more.
_LEAST_OF_A_TEXT = 26


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    indent: str = "  ",
    right: bool = False,
    most: int = 0,
) -> str:
    """Return rows under headings; numbers are aligned to the right.

    With `right`, everything after the first column is: for figures with units. With `most`, the
    last column is cut so that lines have about so many columns.

    >>> print(table(["NAME", "PODS"], [["a", 12], ["bb", 3]], indent=""))
    NAME  PODS
    a       12
    bb       3
    """
    cells = [list(headings), *([_text(value) for value in row] for row in rows)]
    numeric = [
        (right and column > 0) or _are_numbers([row[column] for row in cells[1:]])
        for column in range(len(headings))
    ]
    widths = [max(width_of(row[column]) for row in cells) for column in range(len(headings))]
    if most:
        before = len(indent) + sum(width + 2 for width in widths[:-1])
        for row in cells:
            row[-1] = cut(row[-1], most - before)
        widths[-1] = max(width_of(row[-1]) for row in cells)
    lines = []
    for row in cells:
        aligned = [
            padded(cell, width, right=right)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append((indent + "  ".join(aligned)).rstrip())
    return "\n".join(lines)


def width_of(text: str) -> int:
    """Return how many columns a terminal needs for a text: two for a letter of Korean.

    >>> width_of("ab"), width_of("대기")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Return a text as wide as a column."""
    space = " " * max(0, width - width_of(text))
    return space + text if right else text + space


def screen_width() -> int:
    """Return how many columns there are to print on; in a pipe those of a common terminal."""
    return shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH


def cut(text: str, width: int) -> str:
    """Return a cell that fits, with a sign where it was cut; at least its first words.

    >>> cut("starts once default/job/pretrain has ended", 30), cut("OnHold", 3)
    ('starts once default/job/pretr…', 'OnHold')
    """
    width = max(width, _LEAST_OF_A_TEXT)
    return text if width_of(text) <= width else shortened(text, width - 1).rstrip(" ,;") + "…"


def shortened(text: str, width: int) -> str:
    """Return as much of a text as fits into so many columns.

    >>> shortened("대기 중", 5), shortened("abc", 2)
    ('대기 ', 'ab')
    """
    if text.isascii():
        return text[:width]
    used = 0
    for at, one in enumerate(text):
        used += width_of(one)
        if used > width:
            return text[:at]
    return text


def _are_numbers(cells: list[str]) -> bool:
    """Say whether a column is of numbers; some may be missing."""
    there = [cell for cell in cells if cell != _NOTHING]
    return bool(there) and all(_NUMBER.fullmatch(cell) for cell in there)


def paragraph(text: str, *, indent: str = "  ") -> str:
    """Return text wrapped to the terminal, indented; a mark such as `- ` stands once."""
    return textwrap.fill(
        text,
        WIDTH * len(text) // max(1, width_of(text)),
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
    )


def _text(value: object) -> str:
    return _NOTHING if value is None or value == "" else str(value)


# ---- rows that keep coming -----------------------------------------------------------------------

_GAP = "   "


class Columns:
    """Prints rows of one table; a column that has once been wide stays so."""

    def __init__(
        self,
        columns: list[Column],
        *,
        is_wide: bool,
        has_namespace: bool,
        prefix: str = "",
        most: int = 0,
    ) -> None:
        """Take what the API says about its columns; `prefix` stands before every name.

        With `most`, the last column is cut so that lines have about so many columns.
        """
        self._most = most
        self._shown = [
            index for index, column in enumerate(columns) if is_wide or not column.priority
        ]
        self._has_namespace = has_namespace
        self._prefix = prefix
        self._name = next(
            (index for index, column in enumerate(columns) if column.format == "name"), 0
        )
        head = [columns[index].name.upper() for index in self._shown]
        self._head = ["NAMESPACE", *head] if has_namespace else head
        self._widths = [width_of(title) for title in self._head]

    def text(self, rows: list[Row], *, with_head: bool) -> str:
        """Return the rows as lines."""
        lines = [self._cells(row) for row in rows]
        if with_head:
            lines.insert(0, self._head)
        for line in lines:
            for index, cell in enumerate(line[:-1]):
                self._widths[index] = max(self._widths[index], width_of(cell))
        before = sum(width + len(_GAP) for width in self._widths[:-1])
        for line in lines:
            line[-1] = cut(line[-1], self._most - before) if self._most else line[-1]
            self._widths[-1] = max(self._widths[-1], width_of(line[-1]))
        return "\n".join(
            _GAP.join(
                padded(cell, width) for cell, width in zip(line, self._widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def _cells(self, row: Row) -> list[str]:
        cells = [
            (self._prefix if index == self._name else "") + cell_text(row.cells[index])
            for index in self._shown
        ]
        return [row.object.metadata.namespace, *cells] if self._has_namespace else cells


def cell_text(cell: Any) -> str:
    """Write one cell on one line.

    >>> cell_text(True), cell_text(None), cell_text(2.0), cell_text("a" + chr(10) + "b")
    ('true', '', '2', 'a...')
    """
    match cell:
        case None:
            return ""
        case bool():
            return str(cell).lower()
        case float() if cell.is_integer():
            return str(int(cell))
        case _:
            first, newline, _ = str(cell).partition("\n")
            return f"{first}..." if newline else first


# ---- colours -------------------------------------------------------------------------------------
# Never in a pipe, never with NO_COLOR, never the only sign.

BOLD, FAINT, REVERSE, RED, GREEN, YELLOW, BLUE = "1", "2", "7", "31", "32", "33", "34"
_END = "\x1b[0m"

# Words of tables that say how something stands, and nothing else.
_COLOURS_OF = {
    GREEN: ("running", "Ready", "Running", "Succeeded"),
    BLUE: ("starting", "buying", "checked"),
    YELLOW: ("waiting", "repairing", "leaving", "Pending", "Suspect"),
    RED: ("NotReady", "Failed", "Quarantine", "Stopped"),
    FAINT: ("finished", "deactivated"),
}
_COLOURS = {word: colour for colour, words in _COLOURS_OF.items() for word in words}
_WORD = re.compile(
    r"(?<=\s)(" + "|".join(sorted(_COLOURS, key=len, reverse=True)) + r")(?=[\s:,]|$)"
)


def is_colourful(stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether to use colours: at a terminal that has them, without NO_COLOR."""
    there = sys.stdout if stream is None else stream
    if there is None or environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return there.isatty()


def paint(text: str, colour: str, *, on: bool) -> str:
    """Return text in a colour.

    >>> paint("n1", RED, on=False)
    'n1'
    """
    return f"\x1b[{colour}m{text}{_END}" if on and text else text


def paint_table(text: str, *, on: bool, with_head: bool = True) -> str:
    """Return a table with its headings bold, and words in colour that say how something stands."""
    if not on or not text:
        return text
    lines = text.split("\n")
    first = 1 if with_head else 0
    body = [
        _WORD.sub(lambda found: paint(found[1], _COLOURS[found[1]], on=True), line)
        for line in lines[first:]
    ]
    return "\n".join([*(paint(line, BOLD, on=True) for line in lines[:first]), *body])


def paint_answer(text: str, *, on: bool) -> str:
    """Return an answer in words with its first line and its titles bold."""
    if not on:
        return text
    lines = text.split("\n")
    return "\n".join(
        paint(line, BOLD, on=True) if number == 0 or re.fullmatch(r"[a-z ]+:", line) else line
        for number, line in enumerate(lines)
    )
