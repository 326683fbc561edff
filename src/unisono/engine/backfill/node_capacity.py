"""Free capacity of nodes over time: what is free on every one of them in every interval.

Gangs of different pods share nodes, and what one leaves of a node may be too little for another. So
each reservation has nodes of its own from its start to its end (ADR 0014).

The array is (intervals, resources, nodes), see `Units`. While time is still cut, its rows stay
where they are (a series says which row belongs to which interval); with the last cut they are put
in order, which makes a range of intervals a plain slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from unisono.engine.backfill.counted_gang import CountedGang, pods_per_node
from unisono.engine.backfill.intervals import End, Intervals
from unisono.engine.model.resources import WHOLE_GPU, Amounts, is_share
from unisono.engine.placement.feasibility import Mask
from unisono.engine.placement.packing import pack
from unisono.engine.state.change_journal import Columns
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.occupancy import PlacedPods, Shared, give_back, parts_of, take

# Each interval has an array of all nodes: the bound is for memory and time. Later ends are rounded.
MOST_INTERVALS = 640
FULL = -WHOLE_GPU  # in the column of a device: nothing of it is left
# How many pods of each sort fit into an amount is looked up while that table stays small.
LARGEST_TABLE = 4096
# Of many intervals every eighth is checked first, once another start was tried in vain.
SAMPLE_STEP = 8


@dataclass(slots=True, frozen=True)
class _EqualPods:
    """Equal pods that pending gangs ask for, and where they may go."""

    allowed: Mask
    is_everywhere: bool  # they may go to any node
    columns: Columns
    series: int  # how many of them fit on all nodes together


class NodeCapacity:
    """Free capacity by interval and node."""

    def __init__(
        self,
        table: NodeTable,
        intervals: Intervals,
        ends: Sequence[End],
        requested: Iterable[tuple[Amounts, bool]],
    ) -> None:
        """Count for pods with these requests; True: of counted gangs only."""
        self._table, self._intervals = table, intervals
        wanted: dict[Amounts, bool] = {}
        for requests, is_counted in requested:
            wanted[requests] = wanted.get(requests, True) and is_counted
        self._units = Units(table, ends, wanted)
        self._free = self._free_by_interval(ends)
        if wanted and all(wanted.values()):
            self._free = self._units.drop_outlasting(self._free)
        self._row_of: int | None = intervals.add_series(np.arange(len(intervals.cuts)))
        self._equal_pods: dict[tuple[Columns, int], _EqualPods] = {}
        self._pods_in: Integers | None = None  # by amount: how many pods of each sort fit into it
        self._pod_series: Rows | slice = slice(0)
        self._totals: dict[int, int] = {}  # by column: the series of what all nodes together have
        intervals.follow(self)

    def _free_by_interval(self, ends: Sequence[End]) -> Integers:
        """Return what is free, with what runs gone from the interval on in which it has ended."""
        now = self._units.now()
        count = len(self._intervals.cuts)
        free = np.zeros((count, *now.shape), now.dtype)
        free[0] = now
        ended = self._intervals.by_interval(ends)
        done = 0
        for interval in range(1, count):
            here = free[interval]
            here[:] = free[interval - 1]
            while done < len(ended) and ended[done][0] <= interval:
                for placed in ended[done][1].placed_pods:
                    for place, amount in self._units.scaled(placed.requests):
                        here[place, placed.rows] += (placed.counts * amount).astype(now.dtype)
                    if (parts := parts_of(self._table, placed)) is not None:
                        give_back(self._table, parts, here)
                done += 1
        return free

    def _rows(self, low: int, high: int) -> Rows | slice:
        if self._row_of is None:
            return slice(low, high)
        return self._intervals.series(self._row_of)[low:high]

    def copy(self, intervals: Intervals) -> NodeCapacity:
        """Return the same capacity, for another cycle to book on intervals of its own."""
        other = NodeCapacity.__new__(NodeCapacity)
        other.__dict__.update(self.__dict__)
        other._intervals = intervals
        other._free = self._free.copy()
        other._equal_pods = {**self._equal_pods}
        other._totals = {**self._totals}
        intervals.follow(other)
        return other

    # --- cuts ------------------------------------------------------------------------------------

    def split(self, interval: int) -> None:
        """Give a new interval what the one before it has."""
        assert self._row_of is not None, "there is no cut after the last"
        rows = self._intervals.series(self._row_of)
        last = rows.shape[0] - 1
        if last >= self._free.shape[0]:
            self._free = np.concatenate([self._free, np.empty_like(self._free)])
        self._free[last] = self._free[rows[interval - 1]]
        rows[interval] = last

    def extend(self, intervals: int) -> None:
        """Append intervals like the last one, and put all in order."""
        assert self._row_of is not None, "this happens once"
        self._free = self._free[self._intervals.series(self._row_of)]
        self._row_of = None

    # --- when ------------------------------------------------------------------------------------

    def can_count(self, requests: Amounts) -> bool:
        """Say whether pods that no gang asked for so far can be counted, too."""
        return self._units.can_count(requests)

    def starts(self, counted: CountedGang, limit_ms: int, first: int) -> Iterator[int]:
        """Yield the intervals from `first` on with quota, and enough capacity in total.

        Whether the same nodes stay free for all of its time limit is for `find` to say.
        """
        capacity = self._intervals.series(self._equal_to(counted).series)[first:]
        enough = self._intervals.with_quota(capacity >= counted.pods, counted.cells, first)
        return iter(()) if enough is None else self._intervals.long_enough(enough, limit_ms, first)

    def starts_by_total(self, wanted: Amounts, limit_ms: int, first: int) -> Iterator[int]:
        """Yield the intervals from `first` on with enough of every resource in total."""
        enough = np.ones(len(self._intervals.cuts) - first, np.bool_)
        for resource, amount in wanted:
            column = self._table.column(resource)
            if amount > 0:
                if column is None and is_share(resource):
                    continue  # what is left of shared GPUs depends on the devices
                if column is None:
                    return iter(())
                if column in self._units.unit_of:
                    total = self._total(column)[first:]
                    enough &= total * self._units.unit_of[column] >= amount
        return self._intervals.long_enough(enough, limit_ms, first)

    def _total(self, column: int) -> Integers:
        number = self._totals.get(column)
        if number is None:
            place = self._units.place_of[column]
            free = self._free[self._rows(0, len(self._intervals.cuts)), place]
            there = self._table.usable.astype(np.int64)
            number = self._totals[column] = self._intervals.add_series(np.maximum(free, 0) @ there)
        return self._intervals.series(number)

    def _equal_to(self, counted: CountedGang) -> _EqualPods:
        """Return what equals a gang's pods, which are counted from the first such gang on."""
        key = (counted.columns, id(counted.allowed))
        found = self._equal_pods.get(key)
        if found is None:
            columns, count = self._units.scaled(counted.requests), counted.allowed.shape[0]
            free = self._free[self._rows(0, len(self._intervals.cuts))]
            fits = pods_per_node(free.transpose(1, 0, 2)[:, :, :count], columns)
            series = self._intervals.add_series(fits @ counted.allowed.astype(np.int64))
            found = self._equal_pods[key] = _EqualPods(
                counted.allowed, bool(counted.allowed.all()), columns, series
            )
            self._pod_series = _as_slice([pods.series for pods in self._equal_pods.values()])
            # Only rows that are in use: what is behind them was never set.
            self._pods_in = _pods_by_amount([*self._equal_pods.values()], free)
        return found

    # --- where -----------------------------------------------------------------------------------

    def find(
        self, counted: CountedGang, order: Rows, low: int, high: int, *, again: bool = False
    ) -> PlacedPods | None:
        """Find nodes that stay free for a gang in all of the intervals [low, high).

        As few as possible: a gang alone on its nodes leaves no holes in time behind. `again`:
        another start was tried in vain, so that a sample of the intervals is worth a look first.
        """
        pods = self._equal_to(counted)
        if again and high - low >= 2 * SAMPLE_STEP:
            rows = self._rows(low, high)
            some = slice(low, high, SAMPLE_STEP) if isinstance(rows, slice) else rows[::SAMPLE_STEP]
            sample = _pods_per_node(pods, np.minimum.reduce(self._free[some]))
            if not _is_enough(sample, counted.pods):
                return None
        caps = _pods_per_node(pods, self._least(low, high))
        if not _is_enough(caps, counted.pods):
            return None
        caps = caps[order]
        positions, counts = pack(caps, counted.pods)
        return PlacedPods((), counted.requests, rows=order[positions], counts=counts)

    def _least(self, low: int, high: int) -> Integers:
        """Return what stays free on every node; not to be changed."""
        free = self._free[self._rows(low, high)]
        least: Integers = free[0] if high - low == 1 else np.minimum.reduce(free)
        for _, devices in self._table.devices.values():
            # Shared at one time and whole at another: no pod may count on either.
            for column in devices:
                least[column][(least[column] < 0) & (free[:, column].max(axis=0) == 0)] = FULL
        return least

    def least_free(self, low: int, high: int) -> Integers:
        """Return what stays free on every node in [low, high), as the node table has it.

        Resources that are not counted are as they are now.
        """
        free = self._table.free.copy()
        least = self._least(low, high)
        for column, place in self._units.place_of.items():
            free[column] = least[place]
            free[column] *= self._units.unit_of[column]
        return free

    def allows(self, placed_pods: tuple[PlacedPods, ...], high: int) -> bool:
        """Say whether pods fit on their nodes from now on in all intervals below `high`."""
        free = self._least(0, high).copy()
        for placed in placed_pods:
            for place, amount in self._units.scaled(placed.requests):
                left = free[place, placed.rows] - placed.counts * amount
                if (left < 0).any():
                    return False
                free[place, placed.rows] = left
            if not self._take_devices(placed, free):
                return False
        return True

    def _take_devices(self, placed: PlacedPods, free: Integers) -> bool:
        """Take pods' parts of devices off `free`; say whether they fit."""
        parts = parts_of(self._table, placed)
        if parts is None:
            return True
        whole, devices = self._table.devices[parts.share]
        take(self._table, parts, free)
        return bool(
            (free[whole, placed.rows] >= 0).all()
            and (free[list(devices)][:, placed.rows] >= FULL).all()
        )

    # --- bookings --------------------------------------------------------------------------------

    def book(self, placed_pods: tuple[PlacedPods, ...], low: int, high: int) -> None:
        """Take up capacity in the intervals [low, high)."""
        for placed in placed_pods:
            if self._pods_in is not None and self._row_of is None and not self._totals:
                self._book_one(placed, self._pods_in, low, high)
                continue
            rows = self._rows(low, high)
            at = rows if isinstance(rows, slice) else rows[:, None]
            before = [self._free[at, place, placed.rows] for place in self._places]
            after = [*before]
            for place, amount in self._units.scaled(placed.requests):
                after[place] = before[place] - (placed.counts * amount).astype(self._free.dtype)
            if (parts := parts_of(self._table, placed)) is not None:
                after = self._share(placed, parts, after)
            for place, left in enumerate(after):
                if left is not before[place]:
                    self._free[at, place, placed.rows] = left
            self._count_less(placed.rows, before, after, low, high)

    def _book_one(self, placed: PlacedPods, pods_in: Integers, low: int, high: int) -> None:
        """Do the same where one resource is counted and intervals are in order: the usual case."""
        scaled = self._units.scaled(placed.requests)
        if not scaled:
            return
        amount, rows = scaled[0][1], placed.rows
        free = self._free[low:high, 0]
        if rows.shape[0] == 1:  # most gangs: one column is changed in place
            here = free[:, int(rows[0])]
            lost = pods_in.take(here, axis=0)
            here -= int(placed.counts[0]) * amount
            lost -= pods_in.take(here, axis=0)
        else:
            before = free[:, rows]
            after = before - (placed.counts * amount).astype(free.dtype)
            free[:, rows] = after
            each = pods_in.take(before, axis=0)
            each -= pods_in.take(after, axis=0)  # (intervals, nodes, equal pods)
            lost = np.ones(rows.shape[0], np.int64) @ each
        self._intervals.subtract(self._pod_series, low, high, lost.T)

    @property
    def _places(self) -> range:
        return range(len(self._units.place_of))

    def _share(self, placed: PlacedPods, parts: Shared, free: list[Integers]) -> list[Integers]:
        """Take a placed's parts of devices in every interval; return what is left."""
        place_of = {row: place for place, row in enumerate(placed.rows.tolist())}
        local = parts._replace(rows=[place_of[row] for row in parts.rows])
        here = np.stack(free, axis=1)  # (intervals, columns, its nodes)
        for interval in here:
            take(self._table, local, interval)
        return [here[:, place] for place in self._places]

    def _count_less(
        self, rows: Rows, before: list[Integers], after: list[Integers], low: int, high: int
    ) -> None:
        """Lower what is counted for all nodes together by what these nodes lost."""
        if self._pods_in is not None:  # (intervals, nodes, equal pods)
            lost = self._pods_in.take(before[0], axis=0)
            lost -= self._pods_in.take(after[0], axis=0)
            ones = np.ones(
                rows.shape[0], np.int64
            )  # a product is much faster than a sum over nodes
            self._intervals.subtract(self._pod_series, low, high, (ones @ lost).T)
        else:
            for pods in self._equal_pods.values():
                fewer = pods_per_node(before, pods.columns) - pods_per_node(after, pods.columns)
                allowed = pods.allowed[rows].astype(np.int64)
                self._intervals.series(pods.series)[low:high] -= fewer @ allowed
        for column, number in self._totals.items():
            place = self._units.place_of[column]
            less = np.maximum(before[place], 0) - np.maximum(after[place], 0)
            usable = self._table.usable[rows].astype(np.int64)
            self._intervals.series(number)[low:high] -= less @ usable


def _as_slice(series: list[int]) -> Rows | slice:
    """Return ascending numbers as one slice if none is missing: that is much faster to index."""
    if series[-1] - series[0] == len(series) - 1:
        return slice(series[0], series[-1] + 1)
    return np.array(series, np.intp)


def _pods_per_node(pods: _EqualPods, free: Integers) -> Integers:
    """Return how many of these pods each node takes, given what is free."""
    caps = pods_per_node(free[:, : pods.allowed.shape[0]], pods.columns)
    if not pods.is_everywhere:
        caps *= pods.allowed
    return caps


def _is_enough(caps: Integers, pods: int) -> bool:
    """Say whether nodes take all pods; for most gangs one node does, and no sum is needed."""
    most = int(np.maximum.reduce(caps, initial=0))
    return most >= pods or int(np.add.reduce(caps)) >= pods


def _pods_by_amount(groups: list[_EqualPods], free: Integers) -> Integers | None:
    """Return how many pods of each sort fit into 0, 1, 2 … of the one resource that is counted.

    None if there are several, or if some nodes are not for all pods. Negative amounts index from
    the end, where rows of zeros say that nothing fits into them either.
    """
    if free.shape[1] != 1 or not free.size:
        return None
    least, most = int(free.min()), int(free.max())
    if most - min(least, 0) >= LARGEST_TABLE:
        return None
    first = groups[0].allowed
    if not all(np.array_equal(pods.allowed, first) for pods in groups):
        return None
    # As wide as the series: smaller integers would be converted with every booking.
    table: Integers = np.zeros((most + 1 - min(least, 0), len(groups)), np.int64)
    for number, pods in enumerate(groups):
        table[: most + 1, number] = np.arange(most + 1) // pods.columns[0][1]
    return table


# --- units ----------------------------------------------------------------------------------------

# Which resources have to be counted: only what pending workloads ask for, in the largest unit that
# divides all amounts. Of these only what can run short: if every pod asks for so much of one
# resource (GPUs) that another (cores, memory, pods) always outlasts it, the other need not be
# counted.


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

    def can_count(self, requests: Amounts) -> bool:
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
