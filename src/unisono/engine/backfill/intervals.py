"""Time in intervals: how much of every quota cell is used, and what else is counted, in each.

Time is cut wherever a workload ends or starts; the last interval has no end. Everything that is one
number per interval is a series, a row of one array, so that a cut shifts all of them at once. With
as many intervals as there may be no more cuts are made, and later instants are rounded up to the
next cut: rounding down would let a reservation begin before what it waits for has ended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from unisono.engine.model.names import Instant
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.node_table import Integers, Rows
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.transaction import Booked, Charges

# Appended after the last cut when there are enough intervals, further and further apart, so that
# long time limits still end somewhere.
FAR_INTERVALS = 96

End = tuple[Instant, int, Booked]  # when, a number that breaks ties, and what comes free
_NEVER = Instant(1 << 62)
_BEGINS = 0  # the series of the instants at which intervals begin


class PerInterval(Protocol):
    """What keeps more than one number per interval, and so has to follow every cut."""

    def split(self, interval: int) -> None:
        """Cut the interval before in two: what was true of all of it is true of both."""

    def extend(self, intervals: int) -> None:
        """Append so many intervals like the last one; no cut follows."""


class Intervals:
    """Time in intervals, and what is used in each."""

    def __init__(self, now: Instant, ends: Sequence[End], *, resolution_ms: int, most: int) -> None:
        self._resolution_ms, self._most = resolution_ms, most
        self._is_frozen = False  # set: no more cuts
        self.cuts = _cuts(now, ends, resolution_ms, most)
        self._numbers: Integers = np.zeros((8, max(64, 2 * len(self.cuts))), np.int64)
        self._numbers[_BEGINS, : len(self.cuts)] = self.cuts
        self._series = 1  # how many there are
        self._usage: dict[Cell, int] = {}  # the series of each quota cell whose usage changes
        self._followers: list[PerInterval] = []
        self._release_quota(ends)

    def _release_quota(self, ends: Sequence[End]) -> None:
        """Give back the quota of what runs, from the interval on in which it has ended."""
        freed: dict[Cell, list[tuple[int, int]]] = {}
        for interval, booked in self.by_interval(ends):
            for cell, amount in booked.charges:
                freed.setdefault(cell, []).append((interval, amount))
        for cell, entries in freed.items():
            change = np.zeros(len(self.cuts), np.int64)
            at = [interval for interval, _ in entries]
            np.add.at(change, at, [amount for _, amount in entries])
            self._usage[cell] = self.add_series(cell.usage - change.cumsum())

    def by_interval(self, ends: Sequence[End]) -> list[tuple[int, Booked]]:
        """Return the first interval without each of those that end."""
        last = len(self.cuts) - 1
        return [(min(last, max(1, self.interval_at(end))), booked) for end, _, booked in ends]

    def copy(self) -> Intervals:
        """Return the same intervals, for another cycle to cut and to charge."""
        other = Intervals.__new__(Intervals)  # `copy.copy` takes ten times as long
        other.__dict__.update(self.__dict__)
        other.cuts = [*self.cuts]
        other._numbers = self._numbers.copy()
        other._usage = {**self._usage}
        other._followers = []
        return other

    # --- series ----------------------------------------------------------------------------------

    def add_series(self, values: Integers | int) -> int:
        """Count something else per interval; return the number of its series."""
        if self._series == self._numbers.shape[0]:
            self._numbers = np.concatenate([self._numbers, np.zeros_like(self._numbers)])
        number = self._series
        self._series += 1
        self._numbers[number, : len(self.cuts)] = values
        return number

    def series(self, number: int) -> Integers:
        """Return a series, to be read or changed in place; a cut makes it stale."""
        numbers: Integers = self._numbers[number, : len(self.cuts)]
        return numbers

    def subtract(self, series: Rows | slice, low: int, high: int, by: Integers) -> None:
        """Take so much off several series in the intervals [low, high)."""
        self._numbers[series, low:high] -= by

    def follow(self, follower: PerInterval) -> None:
        """Report every cut to a follower."""
        self._followers.append(follower)

    # --- cuts ------------------------------------------------------------------------------------

    @property
    def next_cut(self) -> Instant:
        """The end of the first interval, which began when these were made."""
        return self.cuts[1] if len(self.cuts) > 1 else _NEVER

    def interval_at(self, instant: Instant) -> int:
        """Return the first interval that begins at `instant` or later: all before end by then."""
        return bisect_left(self.cuts, instant)

    def cut(self, instant: Instant) -> int:
        """Cut time at an instant, or find the next cut if frozen; return what begins there."""
        found = bisect_left(self.cuts, instant)
        count = len(self.cuts)
        if found < count and self.cuts[found] == instant:
            return found
        if not self._is_frozen and count >= self._most:
            self._freeze()
        if self._is_frozen:
            return bisect_left(self.cuts, instant)
        self._widen(count + 1)
        numbers = self._numbers
        numbers[:, found + 1 : count + 1] = numbers[:, found:count]
        numbers[:, found] = numbers[:, found - 1]
        numbers[_BEGINS, found] = instant
        self.cuts.insert(found, instant)
        for follower in self._followers:
            follower.split(found)
        return found

    def _freeze(self) -> None:
        """Cut the time after the last cut in growing steps; these are the last cuts."""
        self._is_frozen = True
        count = len(self.cuts)
        for _ in range(FAR_INTERVALS):
            step = max(self._resolution_ms, (self.cuts[-1] - self.cuts[0]) // 16)
            self.cuts.append(Instant(self.cuts[-1] + step))
        self._widen(len(self.cuts))
        self._numbers[:, count : len(self.cuts)] = self._numbers[:, count - 1 : count]
        self._numbers[_BEGINS, count : len(self.cuts)] = self.cuts[count:]
        for follower in self._followers:
            follower.extend(FAR_INTERVALS)

    def _widen(self, count: int) -> None:
        if count > self._numbers.shape[1]:
            more = np.zeros((self._numbers.shape[0], count), np.int64)
            self._numbers = np.concatenate([self._numbers, more], axis=1)

    # --- quota -----------------------------------------------------------------------------------

    @property
    def cells(self) -> list[Cell]:
        """The quota cells whose usage changes."""
        return [*self._usage]

    def peak_usage(self, cell: Cell, low: int, high: int) -> int:
        """Return the most that is used of a quota cell in the intervals [low, high)."""
        number = self._usage.get(cell)
        return cell.usage if number is None else int(self._numbers[number, low:high].max())

    def charge(self, charges: Charges, low: int, high: int) -> None:
        """Use quota in the intervals [low, high)."""
        for cell, amount in charges:
            number = self._usage.get(cell)
            if number is None:
                number = self._usage[cell] = self.add_series(cell.usage)
            self._numbers[number, low:high] += amount

    def with_quota(self, enough: Mask, charges: Charges, first: int) -> Mask | None:
        """Narrow a mask of the intervals from `first` on to those with quota; None: in none."""
        for cell, amount in charges:
            number = self._usage.get(cell)
            most = available(cell) + cell.usage - amount
            if number is not None:
                enough &= self.series(number)[first:] <= most
            elif cell.usage > most:
                return None
        return enough

    # --- where a time limit fits -----------------------------------------------------------------

    def long_enough(self, enough: Mask, limit_ms: int, first: int) -> Iterator[int]:
        """Yield intervals from which on there is enough for a time limit; masked from `first`."""
        # Mostly the caller takes the first few: searching bytes beats arrays for those.
        flags, cuts = enough.tobytes(), self.cuts
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
    """Cut time at every end; with very many, later ones at whole steps only, rounded up."""
    soon = Instant(now + 1)  # what is over its time limit may end at any moment
    exact = sorted({max(end, soon) for end, _, _ in ends})
    if len(exact) >= most // 2:
        head, tail = exact[: most // 4], exact[most // 4 :]
        step = max(resolution_ms, -(-(tail[-1] - tail[0]) // (most // 4)))
        rounded = {Instant(tail[0] + -(-(end - tail[0]) // step) * step) for end in tail}
        exact = [*head, *sorted(rounded - set(head))]
    return [now, *exact]
