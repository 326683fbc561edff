"""What a user of `unisono top` has chosen: a table, a row, an order; and what a key changes.

A row is remembered by its name, so that it stays selected while rows come and go around it. When it
goes, the one that took its place is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

# fmt: off
Key = Literal[
    "up", "down", "page-up", "page-down", "home", "end", "left", "right",
    "next", "previous", "open", "sort", "reverse", "help", "close", "leave",
]
# fmt: on
# What a terminal sends; letters as in less and vi.
_KEYS: dict[bytes, Key] = {
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"k": "up",
    b"\x1b[B": "down",
    b"\x1bOB": "down",
    b"j": "down",
    b"\x1b[C": "right",
    b"\x1bOC": "right",
    b"\x1b[D": "left",
    b"\x1bOD": "left",
    b"\x1b[5~": "page-up",
    b"b": "page-up",
    b"\x1b[6~": "page-down",
    b" ": "page-down",
    b"\x1b[H": "home",
    b"\x1bOH": "home",
    b"\x1b[1~": "home",
    b"g": "home",
    b"\x1b[F": "end",
    b"\x1bOF": "end",
    b"\x1b[4~": "end",
    b"G": "end",
    b"\t": "next",
    b"\x1b[Z": "previous",
    b"\r": "open",
    b"\n": "open",
    b"s": "sort",
    b"r": "reverse",
    b"?": "help",
    b"h": "help",
    b"\x1b": "close",
    b"q": "leave",
    b"Q": "leave",
    b"\x03": "leave",
}
_LONGEST_KEY = 8

HELP = """\
Up, Down, j, k         select a row
PgUp, PgDn, b, Space   a page
Home, End, g, G        the first row, the last row
Tab, Shift-Tab         the next table, the one before
s, Left, Right         sort the table by the next column, the one before
r                      turn its order around
Enter                  everything about the selected row, as unisono why says it; again to close
?, h                   this help
Esc                    close it
q, Ctrl-C              leave

A row stays selected while others come and go. Sorted columns have a mark: ^ the least first,
v the most first; without one a table has its own order (queues by name, what runs by GPUs,
what is pending by its expected start)."""


class Row(NamedTuple):
    """A row of a table: what it is remembered by, its cells, and what it is sorted by."""

    key: str
    cells: Sequence[object]
    ranks: Sequence[Any]


class Section(NamedTuple):
    """A table with a title."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Row]


def keys_of(typed: bytes) -> tuple[list[Key], bytes]:
    """Return the keys in what was typed, and what may be the beginning of another one.

    >>> keys_of(bytes([27, 91, 65]) + b"jx?")
    (['up', 'down', 'help'], b'')
    >>> keys_of(bytes([113, 27, 91]))
    (['leave'], b'\\x1b[')
    """
    found: list[Key] = []
    rest = typed
    while rest:
        size = next((n for n in range(_LONGEST_KEY, 0, -1) if rest[:n] in _KEYS), 0)
        is_open = len(rest) < _LONGEST_KEY and any(
            one.startswith(rest) and one != rest for one in _KEYS
        )
        if is_open and rest[:1] == b"\x1b":
            return found, rest  # more may come
        if size == 1 and rest[:2] in (b"\x1b[", b"\x1bO"):
            # A key that means nothing here; its sequence ends with a letter or ~.
            ends = (at + 1 for at in range(2, len(rest)) if rest[at : at + 1] > b"9;")
            size = next(ends, len(rest))
        elif size:
            found.append(_KEYS[rest[:size]])
        rest = rest[max(1, size) :]
    return found, b""


@dataclass(slots=True)
class View:
    """What was chosen; `press` changes it."""

    focus: int = -1  # the table with the selection; -1: not chosen yet
    selected: dict[int, str] = field(default_factory=dict)  # by table, the key of a row
    places: dict[int, int] = field(default_factory=dict)  # by table, where that row was
    tops: dict[int, int] = field(default_factory=dict)  # by table, the first row that is shown
    orders: dict[int, tuple[int, bool]] = field(default_factory=dict)  # by table: column, turned
    shows: Literal["tables", "reason", "help"] = "tables"
    scroll: int = 0  # of the reason
    page: int = 5  # rows of the table with the selection, as it was last drawn

    def press(self, key: Key, sections: Sequence[Section]) -> bool:
        """Change what a key changes; return False to leave."""
        if key == "leave":
            return False
        if key == "close":
            if self.shows == "tables":
                return False
            self.shows = "tables"
        elif key == "help":
            self.shows = "tables" if self.shows == "help" else "help"
        elif key == "open":
            self.shows, self.scroll = ("reason" if self.shows == "tables" else "tables"), 0
        elif self.shows == "reason":
            self._scroll(key)
        elif self.shows == "tables":
            self._press(key, sections)
        return True

    def _scroll(self, key: Key) -> None:
        steps = {"up": -1, "down": 1, "page-up": -self.page, "page-down": self.page}
        if key == "home":
            self.scroll = 0
        else:
            self.scroll = max(0, self.scroll + (1 << 20 if key == "end" else steps.get(key, 0)))

    def _press(self, key: Key, sections: Sequence[Section]) -> None:
        self.settle(sections)
        section = sections[self.focus]
        if key in ("next", "previous"):
            step = 1 if key == "next" else -1
            there = [at for at, one in enumerate(sections) if one.rows] or [self.focus]
            at = there.index(self.focus) if self.focus in there else 0
            self.focus = there[(at + step) % len(there)]
        elif key in ("sort", "right", "left"):
            column, _ = self.orders.get(self.focus, (-1, False))
            # One more than there are columns: its own order again.
            count = len(section.headings) + 1
            column = (column + (-1 if key == "left" else 1) + 1) % count - 1
            if column < 0:
                self.orders.pop(self.focus, None)
            else:
                self.orders[self.focus] = column, False
        elif key == "reverse":
            column, is_turned = self.orders.get(self.focus, (0, False))
            self.orders[self.focus] = column, not is_turned
        else:
            self._move(key, self.in_order(self.focus, section))
        self.settle(sections)

    def _move(self, key: Key, rows: Sequence[Row]) -> None:
        at = self.places.get(self.focus, 0)
        steps = {"up": -1, "down": 1, "page-up": -self.page, "page-down": self.page}
        at = {"home": 0, "end": len(rows) - 1}.get(key, at + steps.get(key, 0))
        at = max(0, min(at, len(rows) - 1))
        self.places[self.focus] = at
        if rows:
            self.selected[self.focus] = rows[at].key

    def settle(self, sections: Sequence[Section]) -> None:
        """Select what is there: the same row, or the one in its place."""
        if self.focus < 0 or not sections[self.focus].rows:
            # What is pending is asked about most; else what there is.
            there = [at for at in (2, 1, 0) if sections[at].rows]
            self.focus = there[0] if there else max(0, self.focus)
        for at, section in enumerate(sections):
            rows = self.in_order(at, section)
            keys = [row.key for row in rows]
            key = self.selected.get(at)
            if key in keys:
                self.places[at] = keys.index(key)
            elif keys:
                self.places[at] = min(self.places.get(at, 0), len(keys) - 1)
                self.selected[at] = keys[self.places[at]]

    def in_order(self, at: int, section: Section) -> Sequence[Row]:
        """Return the rows of a table as they are shown; what is missing is last."""
        order = self.orders.get(at)
        if order is None:
            return section.rows
        column, is_turned = order
        there = [row for row in section.rows if row.ranks[column] is not None]
        missing = [row for row in section.rows if row.ranks[column] is None]
        ordered = sorted(there, key=lambda row: row.ranks[column], reverse=is_turned)
        return [*ordered, *missing]

    def window(self, at: int, count: int, most: int) -> int:
        """Return the first row to show of a table, so that the selected one is among them."""
        top, place = self.tops.get(at, 0), self.places.get(at, 0)
        if place < top:
            top = place
        elif place >= top + most:
            top = place - most + 1
        self.tops[at] = top = max(0, min(top, count - most))
        return top
