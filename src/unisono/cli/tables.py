"""Tables for people: aligned columns, nothing that a pipe or a small terminal would break."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"-?[0-9]+[a-zA-Z]{0,2}")  # 12, 500m, 64Gi
WIDTH = 100  # what most terminals show without wrapping
_NOTHING = "-"


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    indent: str = "  ",
    right: bool = False,
) -> str:
    """Return rows under headings; numbers are aligned to the right.

    With `right`, everything after the first column is: for figures with units.

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
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    lines = []
    for row in cells:
        aligned = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append((indent + "  ".join(aligned)).rstrip())
    return "\n".join(lines)


def _are_numbers(cells: list[str]) -> bool:
    """Say whether a column is of numbers; some may be missing."""
    there = [cell for cell in cells if cell != _NOTHING]
    return bool(there) and all(_NUMBER.fullmatch(cell) for cell in there)


def paragraph(text: str, *, indent: str = "  ") -> str:
    """Return text wrapped to the terminal, indented."""
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )


def _text(value: object) -> str:
    return _NOTHING if value is None or value == "" else str(value)
