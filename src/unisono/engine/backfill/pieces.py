"""Pieces of time: how much of every account is used, and whatever else is counted, cut by cut.

Time is cut wherever somebody ends or starts; the last piece has no end. Everything that is one
number a piece is a line of one array, so that a cut moves all of them at once. When there are as
many pieces as there may be, no more are made, and later instants are rounded up to the next cut.
"""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from unisono.engine.model.names import Instant
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.node_table import Integers, Rows
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.transaction import Booked, Charges

# Beyond the last piece, so many more are made when there are enough, further and further apart.
FAR_PIECES = 96

End = tuple[Instant, int, Booked]  # when, a number that breaks ties, and what comes free
_NEVER = Instant(1 << 62)
_WHEN = 0  # the line that says when pieces begin


class Cutting(Protocol):
    """Somebody who keeps more than one number for each piece."""

    def split(self, piece: int) -> None:
        """Cut the piece before in two: what was true of all of it is true of both."""

    def lengthen(self, pieces: int) -> None:
        """Add so many pieces to the end, like the last one."""


class Pieces:
    """Time, and what is used when."""

    def __init__(self, now: Instant, ends: Sequence[End], *, resolution_ms: int, most: int) -> None:
        self._resolution_ms, self._most = resolution_ms, most
        self._is_full = False
        self.cuts = _cuts(now, ends, resolution_ms, most)
        self._numbers: Integers = np.zeros((8, max(64, 2 * len(self.cuts))), np.int64)
        self._numbers[_WHEN, : len(self.cuts)] = self.cuts
        self._lines = 1
        self._accounts: dict[Cell, int] = {}
        self._others: list[Cutting] = []
        self._let_end(ends)

    def _let_end(self, ends: Sequence[End]) -> None:
        """Give back the quota of those who run, from the cut on at which they have ended."""
        freed: dict[Cell, list[tuple[int, int]]] = {}
        for piece, booked in self.ending(ends):
            for cell, amount in booked.charges:
                freed.setdefault(cell, []).append((piece, amount))
        for cell, entries in freed.items():
            change = np.zeros(len(self.cuts), np.int64)
            np.add.at(change, [piece for piece, _ in entries], [amount for _, amount in entries])
            self._accounts[cell] = self.add_line(cell.usage - change.cumsum())

    def ending(self, ends: Sequence[End]) -> list[tuple[int, Booked]]:
        """Return from which piece on each of those who end is gone."""
        last = len(self.cuts) - 1
        return [(min(last, max(1, self.piece_at(end))), booked) for end, _, booked in ends]

    def copy(self) -> Pieces:
        """Return the same pieces, to be cut and charged by another cycle."""
        twin = copy.copy(self)
        twin.cuts = [*self.cuts]
        twin._numbers = self._numbers.copy()
        twin._accounts = {**self._accounts}
        twin._others = []
        return twin

    # --- lines -----------------------------------------------------------------------------------

    def add_line(self, values: Integers | int) -> int:
        """Count something else, piece by piece; return its number."""
        if self._lines == self._numbers.shape[0]:
            self._numbers = np.concatenate([self._numbers, np.zeros_like(self._numbers)])
        line = self._lines
        self._lines += 1
        self._numbers[line, : len(self.cuts)] = values
        return line

    def line(self, line: int) -> Integers:
        """Return what is counted there, to be looked at or changed."""
        numbers: Integers = self._numbers[line, : len(self.cuts)]
        return numbers

    def lower(self, lines: Rows | slice, low: int, high: int, by: Integers) -> None:
        """Take so much off several lines through the pieces [low, high)."""
        self._numbers[lines, low:high] -= by

    def join(self, other: Cutting) -> None:
        """Tell somebody else about cuts, too."""
        self._others.append(other)

    # --- cuts ------------------------------------------------------------------------------------

    @property
    def next_cut(self) -> Instant:
        """Return when the first piece, which began when this was made, is over."""
        return self.cuts[1] if len(self.cuts) > 1 else _NEVER

    def piece_at(self, instant: Instant) -> int:
        """Return the first piece that begins at `instant` or later: all before it end by then."""
        return bisect_left(self.cuts, instant)

    def cut(self, instant: Instant) -> int:
        """Cut time at an instant, or at the next cut when there are enough; return the piece."""
        found = bisect_left(self.cuts, instant)
        count = len(self.cuts)
        if found < count and self.cuts[found] == instant:
            return found
        if not self._is_full and count >= self._most:
            self._fill_up()
        if self._is_full:
            return bisect_left(self.cuts, instant)
        self._make_room(count + 1)
        numbers = self._numbers
        numbers[:, found + 1 : count + 1] = numbers[:, found:count]
        numbers[:, found] = numbers[:, found - 1]
        numbers[_WHEN, found] = instant
        self.cuts.insert(found, instant)
        for other in self._others:
            other.split(found)
        return found

    def _fill_up(self) -> None:
        """Cut the time beyond the last cut in growing steps, for good."""
        self._is_full = True
        count = len(self.cuts)
        for _ in range(FAR_PIECES):
            step = max(self._resolution_ms, (self.cuts[-1] - self.cuts[0]) // 16)
            self.cuts.append(Instant(self.cuts[-1] + step))
        self._make_room(len(self.cuts))
        self._numbers[:, count : len(self.cuts)] = self._numbers[:, count - 1 : count]
        self._numbers[_WHEN, count : len(self.cuts)] = self.cuts[count:]
        for other in self._others:
            other.lengthen(FAR_PIECES)

    def _make_room(self, count: int) -> None:
        if count > self._numbers.shape[1]:
            more = np.zeros((self._numbers.shape[0], count), np.int64)
            self._numbers = np.concatenate([self._numbers, more], axis=1)

    # --- quota -----------------------------------------------------------------------------------

    @property
    def accounts(self) -> list[Cell]:
        """Return the accounts whose use changes."""
        return [*self._accounts]

    def most_used(self, cell: Cell, low: int, high: int) -> int:
        """Return the most that is used of an account through the pieces [low, high)."""
        line = self._accounts.get(cell)
        return cell.usage if line is None else int(self._numbers[line, low:high].max())

    def charge(self, charges: Charges, low: int, high: int) -> None:
        """Use accounts through the pieces [low, high)."""
        for cell, amount in charges:
            line = self._accounts.get(cell)
            if line is None:
                line = self._accounts[cell] = self.add_line(cell.usage)
            self._numbers[line, low:high] += amount

    def affordable(self, enough: Mask, charges: Charges, first: int) -> Mask | None:
        """Return where, from `first` on, there is enough of these, too; None: nowhere."""
        for cell, amount in charges:
            line = self._accounts.get(cell)
            most = available(cell) + cell.usage - amount
            if line is not None:
                enough &= self.line(line)[first:] <= most
            elif cell.usage > most:
                return None
        return enough

    # --- stretches -------------------------------------------------------------------------------

    def long_enough(self, enough: Mask, limit_ms: int, first: int) -> Iterator[int]:
        """Yield pieces with enough until the limit is over; those told of begin at `first`."""
        flags, cuts = enough.tobytes(), self.cuts  # mostly few pieces are asked for: no arrays
        at = flags.find(1)
        while at >= 0:
            stop = flags.find(0, at)
            start, last = first + at, len(cuts) if stop < 0 else first + stop
            latest = _NEVER if stop < 0 else cuts[last] - limit_ms
            while start < last and cuts[start] <= latest:
                yield start
                start += 1
            at = -1 if stop < 0 else flags.find(1, stop)


def _cuts(now: Instant, ends: Sequence[End], resolution_ms: int, most: int) -> list[Instant]:
    """Cut time where somebody ends; with very many, at whole steps only."""
    soon = Instant(now + 1)  # whoever is over their limit may end at any moment
    exact = sorted({max(end, soon) for end, _, _ in ends})
    if len(exact) >= most // 2:
        head, tail = exact[: most // 4], exact[most // 4 :]
        step = max(resolution_ms, -(-(tail[-1] - tail[0]) // (most // 4)))
        rounded = {Instant(tail[0] + -(-(end - tail[0]) // step) * step) for end in tail}
        exact = [*head, *sorted(rounded - set(head))]
    return [now, *exact]
