"""Room on nodes: what is free on every one of them, from one cut to the next.

Gangs of different pods share nodes, and what one leaves of a node may be too little for the other.
So each date has nodes of its own, on which it stays from its beginning to its end.

The array is (pieces, resources, nodes), see `units`. Its rows stay where they are when a cut is
added in between (a line of the pieces says which row is whose), until there are enough pieces: then
they are put in order for good.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.engine.backfill.counted_gang import CountedGang, pods_per_node
from unisono.engine.backfill.pieces import End, Pieces
from unisono.engine.backfill.units import Units
from unisono.engine.model.resources import WHOLE_GPU, Amounts, is_share
from unisono.engine.placement.feasibility import Mask
from unisono.engine.placement.packing import pack
from unisono.engine.state.move import Columns
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.occupancy import give_back, parts_of, take
from unisono.engine.state.placed_pods import PlacedPods, Shared

MOST_PIECES = 640
FULL = -WHOLE_GPU  # what the column of a device says of which nothing is left
# How many pods of each kind fit into so much is looked up, as long as the table stays small.
LARGEST_TABLE = 4096
# Of many pieces, every so many-th is looked at first where another stretch was in vain.
GLANCE = 8


@dataclass(slots=True, frozen=True)
class _Kind:
    """Pods of one kind that were asked for."""

    allowed: Mask
    is_for_all: bool  # they may go to any node
    columns: Columns
    line: int  # how many of them fit on all nodes together


class NodeRoom:
    """What is free when, node by node."""

    def __init__(
        self,
        table: NodeTable,
        pieces: Pieces,
        ends: Sequence[End],
        asked: Iterable[tuple[Amounts, bool]],
    ) -> None:
        """Count for pods that ask for so much; True: only numbers say where they may go."""
        self._table, self._pieces = table, pieces
        wanted: dict[Amounts, bool] = {}
        for requests, is_counted in asked:
            wanted[requests] = wanted.get(requests, True) and is_counted
        self._units = Units(table, ends, wanted)
        self._free = self._let_end(ends)
        if wanted and all(wanted.values()):
            self._free = self._units.drop_lasting(self._free)
        self._row_of: int | None = pieces.add_line(np.arange(len(pieces.cuts)))
        self._kinds: dict[tuple[Columns, int], _Kind] = {}
        self._look_up: Integers | None = None  # how many pods of each kind fit into an amount
        self._lines: Rows | slice = slice(0)  # of all kinds
        self._totals: dict[int, int] = {}  # of columns: the line for all nodes together
        pieces.join(self)

    def _let_end(self, ends: Sequence[End]) -> Integers:
        """Give back what those who run hold, from the cut on at which they have ended."""
        now = self._units.now()
        count = len(self._pieces.cuts)
        free = np.zeros((count, *now.shape), now.dtype)
        free[0] = now
        gone = self._pieces.ending(ends)
        done = 0
        for piece in range(1, count):
            here = free[piece]
            here[:] = free[piece - 1]
            while done < len(gone) and gone[done][0] <= piece:
                for placed in gone[done][1].placed_pods:
                    for place, amount in self._units.scaled(placed.requests):
                        here[place, placed.rows] += (placed.counts * amount).astype(now.dtype)
                    if (parts := parts_of(self._table, placed)) is not None:
                        give_back(self._table, parts, here)
                done += 1
        return free

    def _rows(self, low: int, high: int) -> Rows | slice:
        if self._row_of is None:
            return slice(low, high)
        return self._pieces.line(self._row_of)[low:high]

    def copy(self, pieces: Pieces) -> NodeRoom:
        """Return the same room, to be booked by another cycle on pieces of its own."""
        twin = copy.copy(self)
        twin._pieces = pieces
        twin._free = self._free.copy()
        twin._kinds = {**self._kinds}
        twin._totals = {**self._totals}
        pieces.join(twin)
        return twin

    # --- cuts ------------------------------------------------------------------------------------

    def split(self, piece: int) -> None:
        """Cut the piece before in two."""
        assert self._row_of is not None, "pieces in order are not cut any more"
        rows = self._pieces.line(self._row_of)
        last = rows.shape[0] - 1
        if last >= self._free.shape[0]:
            self._free = np.concatenate([self._free, np.empty_like(self._free)])
        self._free[last] = self._free[rows[piece - 1]]
        rows[piece] = last

    def lengthen(self, pieces: int) -> None:
        """Add pieces to the end, and put all in order."""
        assert self._row_of is not None, "this is done once"
        self._free = self._free[self._pieces.line(self._row_of)]
        self._row_of = None

    # --- when ------------------------------------------------------------------------------------

    def knows(self, requests: Amounts) -> bool:
        """Say whether pods that nobody asked for before can be counted, too."""
        return self._units.know(requests)

    def starts(self, counted: CountedGang, limit_ms: int, first: int) -> Iterator[int]:
        """Yield the pieces from `first` on at which a gang may find its place, and has quota."""
        room = self._pieces.line(self._kind(counted).line)[first:]
        enough = self._pieces.affordable(room >= counted.pods, counted.cells, first)
        return iter(()) if enough is None else self._pieces.long_enough(enough, limit_ms, first)

    def starts_by_total(self, wanted: Amounts, limit_ms: int, first: int) -> Iterator[int]:
        """Yield the pieces from `first` on at which there is enough of everything in total."""
        enough = np.ones(len(self._pieces.cuts) - first, np.bool_)
        for resource, amount in wanted:
            column = self._table.column(resource)
            if amount > 0:
                if column is None and is_share(resource):
                    continue  # which depends on the devices
                if column is None:
                    return iter(())
                if column in self._units.unit_of:
                    total = self._total(column)[first:]
                    enough &= total * self._units.unit_of[column] >= amount
        return self._pieces.long_enough(enough, limit_ms, first)

    def _total(self, column: int) -> Integers:
        line = self._totals.get(column)
        if line is None:
            place = self._units.place_of[column]
            free = self._free[self._rows(0, len(self._pieces.cuts)), place]
            there = self._table.usable.astype(np.int64)
            line = self._totals[column] = self._pieces.add_line(np.maximum(free, 0) @ there)
        return self._pieces.line(line)

    def _kind(self, counted: CountedGang) -> _Kind:
        """Return what is counted for a gang's kind of pods, from its first question on."""
        name = (counted.columns, id(counted.allowed))
        found = self._kinds.get(name)
        if found is None:
            columns, count = self._units.scaled(counted.requests), counted.allowed.shape[0]
            free = self._free[self._rows(0, len(self._pieces.cuts))]
            fits = pods_per_node(free.transpose(1, 0, 2)[:, :, :count], columns)
            line = self._pieces.add_line(fits @ counted.allowed.astype(np.int64))
            found = self._kinds[name] = _Kind(
                counted.allowed, bool(counted.allowed.all()), columns, line
            )
            self._lines = _together([kind.line for kind in self._kinds.values()])
            self._look_up = _table_of([*self._kinds.values()], self._free)
        return found

    # --- where -----------------------------------------------------------------------------------

    def find(self, counted: CountedGang, order: Rows, low: int, high: int) -> PlacedPods | None:
        """Find nodes for a gang that has them to itself through the pieces [low, high).

        As few as possible: who sits alone on nodes leaves no holes in time for others.
        """
        caps = self._capacities(counted, self._least(low, high))
        if not _is_enough(caps, counted.pods):
            return None
        caps = caps[order]
        positions, counts = pack(caps, counted.pods)
        return PlacedPods((), counted.requests, rows=order[positions], counts=counts)

    def is_in_vain(self, counted: CountedGang, low: int, high: int) -> bool:
        """Say whether a look at some of the pieces is enough to know that there are no nodes."""
        if high - low < 2 * GLANCE:
            return False
        rows = self._rows(low, high)
        some = slice(low, high, GLANCE) if isinstance(rows, slice) else rows[::GLANCE]
        return not _is_enough(
            self._capacities(counted, np.minimum.reduce(self._free[some])), counted.pods
        )

    def _capacities(self, counted: CountedGang, free: Integers) -> Integers:
        """Return how many pods of a gang's kind each node takes, given what is free."""
        kind = self._kind(counted)
        caps = pods_per_node(free[:, : counted.allowed.shape[0]], kind.columns)
        if not kind.is_for_all:
            caps *= counted.allowed
        return caps

    def _least(self, low: int, high: int) -> Integers:
        """Return what stays free on every node; to be looked at only."""
        pieces = self._free[self._rows(low, high)]
        least: Integers = pieces[0] if high - low == 1 else np.minimum.reduce(pieces)
        for _, devices in self._table.devices.values():
            # Shared now and whole later, or the other way round: nobody may count on either.
            for column in devices:
                least[column][(least[column] < 0) & (pieces[:, column].max(axis=0) == 0)] = FULL
        return least

    def least_free(self, low: int, high: int) -> Integers:
        """Return what stays free on every node through [low, high), as the node table has it.

        What is not counted is as it is now.
        """
        free = self._table.free.copy()
        least = self._least(low, high)
        for column, place in self._units.place_of.items():
            free[column] = least[place]
            free[column] *= self._units.unit_of[column]
        return free

    def leaves(self, placed_pods: tuple[PlacedPods, ...], high: int) -> bool:
        """Say whether nodes have room for placed pods from now through the pieces below `high`."""
        free = self._least(0, high).copy()
        for placed in placed_pods:
            for place, amount in self._units.scaled(placed.requests):
                left = free[place, placed.rows] - placed.counts * amount
                if (left < 0).any():
                    return False
                free[place, placed.rows] = left
            if not self._leaves_devices(placed, free):
                return False
        return True

    def _leaves_devices(self, placed: PlacedPods, free: Integers) -> bool:
        """Say whether devices have room for placed pods, and count them there."""
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
        """Let somebody sit there through the pieces [low, high)."""
        for placed in placed_pods:
            if self._look_up is not None and self._row_of is None and not self._totals:
                self._book_one(placed, self._look_up, low, high)
                continue
            rows = self._rows(low, high)
            pieces = rows if isinstance(rows, slice) else rows[:, None]
            before = [self._free[pieces, place, placed.rows] for place in self._places]
            after = [*before]
            for place, amount in self._units.scaled(placed.requests):
                after[place] = before[place] - (placed.counts * amount).astype(self._free.dtype)
            if (parts := parts_of(self._table, placed)) is not None:
                after = self._share(placed, parts, after)
            for place, left in enumerate(after):
                if left is not before[place]:
                    self._free[pieces, place, placed.rows] = left
            self._count_less(placed.rows, before, after, low, high)

    def _book_one(self, placed: PlacedPods, look_up: Integers, low: int, high: int) -> None:
        """Do the same where one resource is counted and pieces are in order: mostly so."""
        scaled = self._units.scaled(placed.requests)
        if not scaled:
            return
        amount, rows = scaled[0][1], placed.rows
        free = self._free[low:high, 0]
        if rows.shape[0] == 1:  # most gangs: then a column is changed where it is
            here = free[:, int(rows[0])]
            lost = look_up.take(here, axis=0)
            here -= int(placed.counts[0]) * amount
            lost -= look_up.take(here, axis=0)
        else:
            before = free[:, rows]
            after = before - (placed.counts * amount).astype(free.dtype)
            free[:, rows] = after
            each = look_up.take(before, axis=0)
            each -= look_up.take(after, axis=0)  # (pieces, nodes, kinds)
            lost = np.ones(rows.shape[0], np.int64) @ each
        self._pieces.lower(self._lines, low, high, lost.T)

    @property
    def _places(self) -> range:
        return range(len(self._units.place_of))

    def _share(self, placed: PlacedPods, parts: Shared, free: list[Integers]) -> list[Integers]:
        """Take parts of devices in every piece; return what is left."""
        place_of = {row: place for place, row in enumerate(placed.rows.tolist())}
        local = parts._replace(rows=[place_of[row] for row in parts.rows])
        here = np.stack(free, axis=1)  # (pieces, columns, its nodes)
        for piece in here:
            take(self._table, local, piece)
        return [here[:, place] for place in self._places]

    def _count_less(
        self, rows: Rows, before: list[Integers], after: list[Integers], low: int, high: int
    ) -> None:
        """Take off what each kind has lost, given what was free on these nodes and what is."""
        if self._look_up is not None:  # (pieces, nodes, kinds)
            lost = self._look_up.take(before[0], axis=0)
            lost -= self._look_up.take(after[0], axis=0)
            all_of = np.ones(rows.shape[0], np.int64)  # adds up much faster than a sum over nodes
            self._pieces.lower(self._lines, low, high, (all_of @ lost).T)
        else:
            for kind in self._kinds.values():
                fewer = pods_per_node(before, kind.columns) - pods_per_node(after, kind.columns)
                self._pieces.line(kind.line)[low:high] -= fewer @ kind.allowed[rows].astype(
                    np.int64
                )
        for column, line in self._totals.items():
            place = self._units.place_of[column]
            less = np.maximum(before[place], 0) - np.maximum(after[place], 0)
            self._pieces.line(line)[low:high] -= less @ self._table.usable[rows].astype(np.int64)


def _together(lines: list[int]) -> Rows | slice:
    """Return lines that grow as one slice, if none is between them: that is much faster."""
    if lines[-1] - lines[0] == len(lines) - 1:
        return slice(lines[0], lines[-1] + 1)
    return np.array(lines, np.intp)


def _is_enough(caps: Integers, pods: int) -> bool:
    """Say whether nodes take all pods; most gangs that one node holds need no sum to know it."""
    most = int(np.maximum.reduce(caps, initial=0))
    return most >= pods or int(np.add.reduce(caps)) >= pods


def _table_of(kinds: list[_Kind], free: Integers) -> Integers | None:
    """Return how many pods of each kind fit into 0, 1, 2 … of the one resource that is counted.

    None if there are several, or if some nodes are not for all kinds. Less than nothing counts from
    the end: nothing fits there either.
    """
    if free.shape[1] != 1 or not free.size:
        return None
    least, most = int(free.min()), int(free.max())
    if most - min(least, 0) >= LARGEST_TABLE:
        return None
    first = kinds[0].allowed
    if not all(np.array_equal(kind.allowed, first) for kind in kinds):
        return None
    # As wide as what is added up: small numbers would have to be converted every time.
    table: Integers = np.zeros((most + 1 - min(least, 0), len(kinds)), np.int64)
    for number, kind in enumerate(kinds):
        table[: most + 1, number] = np.arange(most + 1) // kind.columns[0][1]
    return table
