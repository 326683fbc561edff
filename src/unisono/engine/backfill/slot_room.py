"""Room that is counted: where all pods are alike, how many fit is all there is to know.

If everybody who waits asks for equal pods (or does so in parts of the cluster that share no node),
each pod takes exactly one slot, whichever node it goes to. So a date needs no nodes of its own:
when it comes, there are enough of them. Nobody is kept from a stretch of time because the nodes
that are free at its beginning are not those that are free at its end (spec time §4).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.engine.backfill.counted_gang import CountedGang, pods_per_node
from unisono.engine.backfill.pieces import End, Pieces
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.move import Columns
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.occupancy import give_back, parts_of
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.transaction import Booked

# More parts than this are a sign of something else: then nodes are looked at one by one.
MOST_POOLS = 16
# One number a piece is cheap: dates are rounded later than where there are nodes to look at.
MOST_PIECES = 8192


@dataclass(slots=True, frozen=True)
class Pool:
    """Nodes that take pods of one kind."""

    columns: Columns
    allowed: Mask
    row: Integers  # one of them, for who sits on any


class Pools:
    """Parts of the cluster in which all pods are alike."""

    def __init__(self, pools: Sequence[Pool], by_kind: dict[tuple[Columns, int], int]) -> None:
        self.all = pools
        self._by_kind = by_kind

    def find(self, counted: CountedGang | None) -> int | None:
        """Return the part in which a gang's pods go; None if it is none of these."""
        if counted is None:
            return None
        found = self._by_kind.get((counted.columns, id(counted.allowed)))
        if found is not None and self.all[found].allowed is counted.allowed:
            return found
        for number, pool in enumerate(self.all):
            if _is_same(pool, counted):
                return number
        return None


def pools_of(asked: Iterable[CountedGang | None]) -> Pools | None:
    """Divide the cluster among those who wait, if no node takes pods of two kinds."""
    pools: list[Pool] = []
    by_kind: dict[tuple[Columns, int], int] = {}
    for counted in asked:
        if counted is None:
            return None
        kind = (counted.columns, id(counted.allowed))
        if kind in by_kind:
            continue
        for number, pool in enumerate(pools):
            if _is_same(pool, counted):
                by_kind[kind] = number
                break
            if (pool.allowed & counted.allowed).any():
                return None
        else:
            if len(pools) == MOST_POOLS:
                return None
            by_kind[kind] = len(pools)
            row = counted.allowed.nonzero()[0][:1]
            pools.append(Pool(counted.columns, counted.allowed, row))
    return Pools(pools, by_kind) if pools else None


def _is_same(pool: Pool, counted: CountedGang) -> bool:
    return pool.columns == counted.columns and np.array_equal(pool.allowed, counted.allowed)


class SlotRoom:
    """How many pods fit when, in each pool."""

    def __init__(self, table: NodeTable, pools: Pools, pieces: Pieces, ends: Sequence[End]) -> None:
        self._table, self._pools, self._pieces = table, pools, pieces
        self._pool_of: Integers = np.full(len(table), -1, np.int64)
        for number, pool in enumerate(pools.all):
            self._pool_of[: pool.allowed.shape[0]][pool.allowed] = number
        self._lines = [pieces.add_line(0) for _ in pools.all]
        self._let_end(ends)

    def _let_end(self, ends: Sequence[End]) -> None:
        """Count the slots of now, and those that come free when somebody ends."""
        free = self._table.free.copy()
        for pool, line in zip(self._pools.all, self._lines, strict=True):
            rows = pool.allowed.nonzero()[0]
            self._pieces.line(line)[:] = pods_per_node(free[:, rows], pool.columns).sum()
        gone = self._pieces.ending(ends)
        if self._is_even(free, gone):
            more = np.zeros(len(self._pieces.cuts), np.int64)
            for piece, booked in gone:
                for placed in booked.placed_pods:
                    more[piece] += placed.pods
            self._pieces.line(self._lines[0])[:] += more.cumsum()
            return
        for piece, booked in gone:
            for placed in booked.placed_pods:
                self._give_back(free, placed, piece)

    def _is_even(self, free: Integers, gone: list[tuple[int, Booked]]) -> bool:
        """Say whether everybody who ends gives back as many slots as it has pods.

        They do if their pods are like those who wait, on nodes that all take such pods, and nobody
        sits where there is no room (see `pod_room`).
        """
        (pool, *others), table = self._pools.all, self._table
        if others or table.devices or int(np.count_nonzero(pool.allowed)) != len(table.row_of):
            return False
        if any(int(free[column].min(initial=0)) < 0 for column, _ in pool.columns):
            return False
        return all(
            table.columns_of(placed.requests) == pool.columns and placed.layout == table.layout
            for _, booked in gone
            for placed in booked.placed_pods
        )

    def _give_back(self, free: Integers, placed: PlacedPods, piece: int) -> None:
        pools = self._pool_of[placed.rows]
        here = [
            (number, placed.rows[pools == number], self._pools.all[number].columns)
            for number in sorted(set(pools.tolist()))
            if number >= 0
        ]
        before = [pods_per_node(free[:, rows], columns).sum() for _, rows, columns in here]
        for column, amount in self._table.columns_of(placed.requests):
            free[column, placed.rows] += placed.counts * amount
        if (parts := parts_of(self._table, placed)) is not None:
            give_back(self._table, parts, free)
        for (number, rows, columns), had in zip(here, before, strict=True):
            more = pods_per_node(free[:, rows], columns).sum() - had
            self._pieces.line(self._lines[number])[piece:] += more

    # --- questions -------------------------------------------------------------------------------

    def copy(self, pieces: Pieces) -> SlotRoom:
        """Return the same room, to be booked by another cycle on pieces of its own."""
        twin = copy.copy(self)
        twin._pieces = pieces
        return twin

    def knows(self, counted: CountedGang | None) -> bool:
        """Say whether a gang's pods are of a kind that is counted here."""
        return self._pools.find(counted) is not None

    def starts(self, counted: CountedGang, limit_ms: int, first: int) -> Iterator[int]:
        """Yield the pieces from `first` on at which a gang finds its place, and quota."""
        slots = self._slots(counted)[first:]
        enough = self._pieces.affordable(slots >= counted.pods, counted.cells, first)
        return iter(()) if enough is None else self._pieces.long_enough(enough, limit_ms, first)

    def find(self, counted: CountedGang) -> PlacedPods:
        """Return a gang that sits on nodes of its pool, whichever they will be."""
        pool = self._pools.all[self._number(counted)]
        return PlacedPods(
            (), counted.requests, rows=pool.row, counts=np.array([counted.pods], np.int64)
        )

    def leaves(self, placed_pods: tuple[PlacedPods, ...], high: int) -> bool:
        """Say whether there is room for placed pods from now on through the pieces below `high`."""
        return all(
            int(self._pieces.line(line)[:high].min()) >= pods
            for line, pods in self._counted(placed_pods)
        )

    def book(self, placed_pods: tuple[PlacedPods, ...], low: int, high: int) -> None:
        """Let somebody sit there through the pieces [low, high)."""
        for line, pods in self._counted(placed_pods):
            self._pieces.line(line)[low:high] -= pods

    def _counted(self, placed_pods: tuple[PlacedPods, ...]) -> Iterable[tuple[int, int]]:
        for placed in placed_pods:
            if placed.rows.shape[0]:
                number = int(self._pool_of[placed.rows[0]])
                yield self._lines[number], int(placed.counts.sum())

    def _slots(self, counted: CountedGang) -> Integers:
        return self._pieces.line(self._lines[self._number(counted)])

    def _number(self, counted: CountedGang) -> int:
        number = self._pools.find(counted)
        assert number is not None, "only gangs of these kinds get dates here"
        return number
