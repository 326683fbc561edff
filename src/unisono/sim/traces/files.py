"""Files of traces: plain or compressed with gzip by their suffix, and CSV as columns of text."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unisono.sim.trace import BadRows, BadTrace, FloatArray, IntArray, Trace


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in `.gz`."""
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (EOFError, gzip.BadGzipFile) as error:
        raise BadTrace(str(path), f"is not a whole gzip file: {error}") from error


def column_names(path: Path) -> list[str]:
    """Return the first line of a CSV file, without reading the rest."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        try:
            line = file.readline()
        except (EOFError, gzip.BadGzipFile) as error:
            raise BadTrace(str(path), f"is not a whole gzip file: {error}") from error
    names = next(csv.reader([line.decode("utf-8-sig", errors="replace")]), [])
    return [name.strip() for name in names]


def bare_name(path: Path) -> str:
    """Return a file's name without its endings.

    >>> bare_name(Path("logs/KTH-SP2-1996-2.1-cln.swf.gz"))
    'KTH-SP2-1996-2.1-cln'
    """
    name = path.name.removesuffix(".gz")
    for ending in (".swf", ".csv", ".jsonl"):
        name = name.removesuffix(ending)
    return name


@dataclass(frozen=True, slots=True)
class Sheet:
    """A CSV file as columns of text; rows that were too short are left out and counted."""

    path: str
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]  # where each row stands in the file
    unreadable: int = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    def column(self, name: str) -> Sequence[str]:
        """Return a column; raise BadTrace if the file has none of this name."""
        if name not in self.columns:
            raise BadTrace(self.path, f'has no column "{name}"; it has {", ".join(self.columns)}')
        return self.columns[name]

    def without(self, rows: Collection[int]) -> Sheet:
        """Return the sheet without some rows, which count as unreadable."""
        gone = set(rows)
        kept = [row for row in range(len(self)) if row not in gone]
        return Sheet(
            self.path,
            {name: [column[row] for row in kept] for name, column in self.columns.items()},
            [self.lines[row] for row in kept],
            self.unreadable + len(gone),
        )

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers; NaN where a cell is empty or says nan, none or null."""
        values = self.column(name)
        try:
            return np.array(values, np.float64)
        except ValueError:
            return self.each(name, _number)

    def each(self, name: str, read: Callable[[str], float]) -> FloatArray:
        """Return a column read cell by cell; the first that is refused is named by its line."""
        found = np.empty(len(self))
        refused: dict[int, str] = {}
        for row, text in enumerate(self.column(name)):
            try:
                found[row] = read(text)
            except ValueError as error:
                refused[row] = f'{name} is "{text}", which is {error}'
        if refused:
            first = min(refused)
            raise BadRows(f"{self.path}: line {self.lines[first]}", refused[first], [*refused])
        return found

    def whole_numbers(self, name: str) -> IntArray:
        """Return a column of which no cell may be empty, as integers."""
        found = self.numbers(name)
        if np.isnan(found).any():
            found = self.each(name, _present)
        return found.astype(np.int64)


def read_rows(path: Path, read: Callable[[Sheet], Trace], *, skip_bad: bool) -> Trace:
    """Read a CSV file; with `skip_bad`, rows with cells that are refused are left out."""
    sheet = read_sheet(path, skip_bad=skip_bad)
    while True:  # each time with fewer rows
        try:
            return read(sheet)
        except BadRows as error:
            if not skip_bad:
                raise
            sheet = sheet.without(error.rows)


def read_sheet(path: Path, *, skip_bad: bool = False) -> Sheet:
    """Read a CSV file with a line of names on top."""
    text = io.StringIO(read_bytes(path).decode("utf-8-sig", errors="replace"), newline="")
    reader = csv.reader(text)
    names = [name.strip() for name in next(reader, [])]
    if not names:
        raise BadTrace(str(path), "is empty; the first line must name the columns")
    rows: list[list[str]] = []
    lines: list[int] = []
    unreadable = 0
    for row in reader:
        if len(row) >= len(names):
            rows.append(row)
            lines.append(reader.line_num)
        elif row:
            if not skip_bad:
                where = f"{path}: line {reader.line_num}"
                raise BadTrace(where, f"has {len(row)} cells; {len(names)} are named on top")
            unreadable += 1
    columns = list(zip(*rows, strict=False)) or [()] * len(names)
    return Sheet(str(path), dict(zip(names, columns, strict=False)), lines, unreadable)


def _present(text: str) -> float:
    number = _number(text)
    if number != number:  # NaN
        raise ValueError("not a number")
    return number


def _number(text: str) -> float:
    plain = text.strip().lower()
    if plain in ("", "nan", "none", "null"):
        return float("nan")
    try:
        return float(plain)
    except ValueError:
        raise ValueError("not a number") from None
