"""A table of the API as text: columns that align, also while rows keep coming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono.kube.tables import Column, Row

_GAP = "   "


class Columns:
    """Prints rows of one table; a column that has once been wide stays so."""

    def __init__(
        self, columns: list[Column], *, is_wide: bool, has_namespace: bool, prefix: str = ""
    ) -> None:
        """Take what the API says about its columns; `prefix` stands before every name."""
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
        self._widths = [len(title) for title in self._head]

    def text(self, rows: list[Row], *, with_head: bool) -> str:
        """Return the rows as lines."""
        lines = [self._cells(row) for row in rows]
        if with_head:
            lines.insert(0, self._head)
        for line in lines:
            for index, cell in enumerate(line):
                self._widths[index] = max(self._widths[index], len(cell))
        return "\n".join(
            _GAP.join(
                cell.ljust(width) for cell, width in zip(line, self._widths, strict=True)
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
