"""Which rows of a table changed, for readers that come back now and then.

A reader remembers the version that it saw. What changed since is a list of rows; if nothing but
pods of one request came and went (a `Move`), it is also how many: room for that request changed by
just that.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Rows = NDArray[np.intp]
# What one pod takes of which column.
Columns = tuple[tuple[int, int], ...]


class Move:
    """Pods of one request that left rows, or came to rows that had room for them."""

    __slots__ = ("columns", "counts", "pods", "rows")

    def __init__(self, rows: Rows, columns: Columns, counts: Integers, pods: int) -> None:
        self.rows = rows
        self.columns = columns
        self.counts = counts  # by row
        self.pods = pods  # all of them; negative: they took room


# --- the journal ----------------------------------------------------------------------------------


# A reader that is further behind than this rereads everything; keeping more would only cost memory.
JOURNAL_KEPT: Final = 16384
MANY_ROWS = 512
# What is tried and put back leaves a note, so that no reader counts again for it. Each use
# follows a few of them; what is forgotten is only looked at once more.
PUT_BACK_KEPT = 1024
# A reader that is further behind than so many bookings counts nodes again: about the same cost.
MOVES_FOLLOWED: Final = 16
_Trace = tuple[
    int, int, Columns
]  # rows, counts and columns: what was booked and taken back has the same


class Journal:
    """Which rows changed, for readers that come back now and then."""

    __slots__ = ("_chunks", "_kept", "_moves", "_same", "version")

    def __init__(self) -> None:
        self.version = 0
        self._chunks: list[Rows] = []
        self._moves: list[Move | None] = []  # beside each chunk: what changed there, if known
        self._kept = 0
        self._same: dict[int, int] = {}  # versions after which all was put back, and until when

    def put_back(self, version: int) -> None:
        """Say that everything is again as it was at an earlier version, to the last bit."""
        if version != self.version:
            if len(self._same) >= PUT_BACK_KEPT:
                self._same.clear()
            self._same[version] = self.version

    def note(self, rows: Rows, move: Move | None = None) -> None:
        """Write down that rows changed, and by what if that is all that did."""
        count = len(rows)
        self._chunks.append(rows)
        self._moves.append(move)
        self._kept += count
        self.version += count
        if self._kept > 2 * JOURNAL_KEPT:
            self._trim()

    def _trim(self) -> None:
        """Forget what is oldest; many at once, because that costs as much as one."""
        old = 0
        while self._kept - len(self._chunks[old]) > JOURNAL_KEPT:
            self._kept -= len(self._chunks[old])
            old += 1
        del self._chunks[:old]
        del self._moves[:old]

    def moves_since(self, version: int, columns: Columns) -> list[Move] | None:
        """Return what moved after `version`, the newest first, if only pods of one request did."""
        while self._same and version in self._same:
            version = self._same[version]
        behind = self.version - version
        found: list[Move] = []
        at = len(self._chunks)
        while behind > 0 and at > 0:
            at -= 1
            move = self._moves[at]
            if move is None or len(found) >= MOVES_FOLLOWED:
                return None
            if move.columns is not columns and move.columns != columns:
                return None
            found.append(move)
            behind -= len(move.rows)
        return None if behind else found

    def since(self, version: int) -> Rows | None:
        """Return the rows that changed after `version`; None means: reread everything."""
        while version in self._same:
            version = self._same[version]
        behind = self.version - version
        if behind > min(self._kept, JOURNAL_KEPT):
            return None
        # What takes rows gives back the very same ones, so that most chunks are there twice; what
        # came and went again has changed nothing.
        found: dict[_Trace, Rows] = {}
        net: dict[_Trace, int] = {}
        for rows, move in zip(reversed(self._chunks), reversed(self._moves), strict=True):
            if behind <= 0:
                break
            part = rows[-behind:] if behind < rows.shape[0] else rows
            behind -= rows.shape[0]
            if move is None or part is not rows:
                found[id(part), 0, ()] = part
                continue
            trace = (id(rows), id(move.counts), move.columns)
            net[trace] = net.get(trace, 0) + move.pods
            found[trace] = rows
        for trace, pods in net.items():
            if not pods:
                del found[trace]
        if not found:
            return np.zeros(0, np.intp)
        parts = [*found.values()]
        return _distinct(np.concatenate(parts)) if len(parts) > 1 else parts[0]


def _distinct(rows: Rows) -> Rows:
    """Return rows (at least one; they are ours) once each, in order.

    Marking beats sorting as soon as there are many.
    """
    if rows.shape[0] < MANY_ROWS:  # what np.unique does, without its many questions
        rows.sort()
        first = np.empty(rows.shape[0], np.bool_)
        first[0] = True
        np.not_equal(rows[1:], rows[:-1], out=first[1:])
        return rows[first]
    marked = np.zeros(int(rows.max()) + 1, np.bool_)
    marked[rows] = True
    return np.flatnonzero(marked)
