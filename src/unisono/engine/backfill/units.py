"""Which resources of nodes `NodeCapacity` has to count, and in which units.

Only what pending workloads ask for, in the largest unit that divides all amounts. Of these only
what can run short: if every pod asks for so much of one resource (GPUs) that another (cores,
memory, pods) always outlasts it, the other need not be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd

import numpy as np

from unisono.engine.backfill.intervals import End
from unisono.engine.model.resources import Amounts
from unisono.engine.state.change_journal import Columns
from unisono.engine.state.node_table import Integers, NodeTable

# Larger numbers could overflow when two of them are multiplied.
_LARGEST = 1 << 30


class Units:
    """Columns of the node table that are counted, and the unit of each."""

    def __init__(self, table: NodeTable, ends: Sequence[End], requested: Iterable[Amounts]) -> None:
        self._table = table
        self._requested = [table.columns_of(requests) for requests in requested]
        # Shared GPUs are taken column by column, as the node table has them: all, without units.
        self.is_plain = bool(table.devices)
        self.unit_of = _plain(table) if self.is_plain else _units(table, ends, self._requested)
        self.place_of = {column: place for place, column in enumerate(self.unit_of)}
        # A column that is left out: the one that it outlasts, and up to which ratio of requests.
        self._outlasting: dict[int, tuple[int, Fraction]] = {}
        self._scaled: dict[Amounts, Columns] = {}  # memo

    def now(self) -> Integers:
        """Return what is free now, in the smallest integers that hold all that can be free."""
        if self.is_plain:
            return self._table.free
        columns = [*self.unit_of]
        units = np.array([*self.unit_of.values()], np.int64)[:, None]
        now = self._table.free[columns] // units
        there = self._table.allocatable[columns] // units
        most = int(max(np.abs(now).max(initial=0), there.max(initial=0)))
        size = "i2" if most < 1 << 14 else "i4" if most < _LARGEST else "i8"
        small: Integers = now.astype(size)
        return small

    def scaled(self, requests: Amounts) -> Columns:
        """Return what a pod takes, by place in the array and in its units."""
        found = self._scaled.get(requests)
        if found is None:
            found = self._scaled[requests] = tuple(
                (self.place_of[column], amount // self.unit_of[column])
                for column, amount in self._table.columns_of(requests)
                if column in self.place_of
            )
        return found

    def drop_outlasting(self, free: Integers) -> Integers:
        """Leave out columns that outlast another one, whatever is booked.

        `free` is (intervals, columns, nodes) without any booking. Pods that fit into what is free
        of one column take at most `most` times as much of the other, and so much of it is free.
        """
        if self.is_plain or free.itemsize > np.dtype("i4").itemsize:
            return free
        for first in [*self.unit_of]:
            is_in_all = all(dict(columns).get(first) for columns in self._requested)
            if first in self._outlasting or not is_in_all:
                continue
            for other in [*self.unit_of]:
                most = max(_ratio(columns, other, first) for columns in self._requested)
                scaled = most * Fraction(self.unit_of[first], self.unit_of[other])
                if other == first or max(scaled.as_integer_ratio()) >= _LARGEST:
                    continue
                wanted = free[:, self.place_of[first]].astype(np.int64) * scaled.numerator
                there = free[:, self.place_of[other]].astype(np.int64) * scaled.denominator
                if (there >= np.maximum(wanted, 0)).all():
                    self._outlasting[other] = first, most
                    free = np.delete(free, self.place_of.pop(other), axis=1)
                    del self.unit_of[other]
                    self.place_of = {column: place for place, column in enumerate(self.unit_of)}
        self._scaled.clear()
        return free

    def knows(self, requests: Amounts) -> bool:
        """Say whether pods that no workload asked for so far can be counted, too."""
        columns = self._table.columns_of(requests)
        if bool(self._table.devices) != self.is_plain:
            return False
        for column, amount in columns:
            if column in self._outlasting:
                first, most = self._outlasting[column]
                if not dict(columns).get(first) or _ratio(columns, column, first) > most:
                    return False
            elif column not in self.unit_of or amount % self.unit_of[column]:
                return False
        return True


def _ratio(columns: Columns, column: int, first: int) -> Fraction:
    """Return how much a pod takes of a column per unit of the first."""
    amounts = dict(columns)
    return Fraction(amounts.get(column, 0), amounts[first])


def _plain(table: NodeTable) -> dict[int, int]:
    """Return all columns in units of one."""
    return dict.fromkeys(range(table.free.shape[0]), 1)


def _units(table: NodeTable, ends: Sequence[End], requested: list[Columns]) -> dict[int, int]:
    """Return the columns that are requested, and the largest unit that divides all amounts."""
    units: dict[int, int] = {}
    for columns in requested:
        for column, amount in columns:
            units[column] = gcd(units.get(column, 0), amount)
    for column, unit in units.items():
        there = np.concatenate([table.free[column], table.allocatable[column]])
        units[column] = gcd(unit, int(np.gcd.reduce(there, initial=0)))
    held = {placed.requests for _, _, booked in ends for placed in booked.placed_pods}
    for requests in held:
        for column, amount in table.columns_of(requests):
            if column in units:
                units[column] = gcd(units[column], amount)
    return {column: units[column] for column in sorted(units)}
