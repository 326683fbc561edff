"""Free capacity in slots over time: where all pods are equal, how many fit is all there is to know.

If all pending workloads ask for equal pods (or do so in parts of the cluster that share no node),
each pod takes exactly one slot, whichever node it goes to. So a reservation needs no nodes of its
own: when it is due there are enough of them. And it may begin in an interval although the nodes
that are free at its start are not those that are free at its end (spec backfill §4, ADR 0014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unisono.engine.backfill.counted_gang import CountedGang, pods_per_node
from unisono.engine.backfill.intervals import End, Intervals
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.change_journal import Columns
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.occupancy import PlacedPods, give_back, parts_of
from unisono.engine.state.transaction import Booked

# More parts than this are a sign of something else: then nodes are counted one by one.
MOST_POOLS = 16
# An interval costs one number per pool, so that ends are rounded later than with `NodeCapacity`.
MOST_INTERVALS = 8192


@dataclass(slots=True, frozen=True)
class Pool:
    """Nodes that take pods of one kind."""

    columns: Columns
    allowed: Mask
    row: Integers  # one of them stands for all


class Pools:
    """Parts of the cluster in which all pods are equal."""

    def __init__(self, pools: Sequence[Pool], by_pods: dict[tuple[Columns, int], int]) -> None:
        self.all = pools
        self._by_pods = by_pods

    def find(self, counted: CountedGang | None) -> int | None:
        """Return the part to which a gang's pods go; None: to none of these."""
        if counted is None:
            return None
        found = self._by_pods.get((counted.columns, id(counted.allowed)))
        if found is not None and self.all[found].allowed is counted.allowed:
            return found
        for number, pool in enumerate(self.all):
            if _is_same(pool, counted):
                return number
        return None


def pools_of(gangs: Iterable[CountedGang | None]) -> Pools | None:
    """Divide the cluster by pending gangs; None if a node takes pods of two kinds."""
    pools: list[Pool] = []
    by_pods: dict[tuple[Columns, int], int] = {}
    for counted in gangs:
        if counted is None:
            return None
        pods = (counted.columns, id(counted.allowed))
        if pods in by_pods:
            continue
        for number, pool in enumerate(pools):
            if _is_same(pool, counted):
                by_pods[pods] = number
                break
            if (pool.allowed & counted.allowed).any():
                return None
        else:
            if len(pools) == MOST_POOLS:
                return None
            by_pods[pods] = len(pools)
            row = counted.allowed.nonzero()[0][:1]
            pools.append(Pool(counted.columns, counted.allowed, row))
    return Pools(pools, by_pods) if pools else None


def _is_same(pool: Pool, counted: CountedGang) -> bool:
    return pool.columns == counted.columns and np.array_equal(pool.allowed, counted.allowed)


class SlotCapacity:
    """How many pods fit, by pool and interval."""

    def __init__(
        self, table: NodeTable, pools: Pools, intervals: Intervals, ends: Sequence[End]
    ) -> None:
        self._table, self._pools, self._intervals = table, pools, intervals
        self._pool_of: Integers = np.full(len(table), -1, np.int64)
        for number, pool in enumerate(pools.all):
            self._pool_of[: pool.allowed.shape[0]][pool.allowed] = number
        self._series = [intervals.add_series(0) for _ in pools.all]
        self._count_slots(ends)

    def _count_slots(self, ends: Sequence[End]) -> None:
        """Count the slots that are free now, and those that come free with every end."""
        free = self._table.free.copy()
        for pool, series in zip(self._pools.all, self._series, strict=True):
            rows = pool.allowed.nonzero()[0]
            self._intervals.series(series)[:] = pods_per_node(free[:, rows], pool.columns).sum()
        ended = self._intervals.by_interval(ends)
        if self._is_even(free, ended):
            more = np.zeros(len(self._intervals.cuts), np.int64)
            for interval, booked in ended:
                for placed in booked.placed_pods:
                    more[interval] += placed.pods
            self._intervals.series(self._series[0])[:] += more.cumsum()
            return
        for interval, booked in ended:
            for placed in booked.placed_pods:
                self._give_back(free, placed, interval)

    def _is_even(self, free: Integers, ended: list[tuple[int, Booked]]) -> bool:
        """Say whether every end frees as many slots as there are pods.

        So it is if these pods equal the pending ones, on nodes that all take such pods, and no node
        is overcommitted (see `pod_capacity`).
        """
        (pool, *others), table = self._pools.all, self._table
        if others or table.devices or int(np.count_nonzero(pool.allowed)) != len(table.row_of):
            return False
        if any(int(free[column].min(initial=0)) < 0 for column, _ in pool.columns):
            return False
        return all(
            table.columns_of(placed.requests) == pool.columns and placed.layout == table.layout
            for _, booked in ended
            for placed in booked.placed_pods
        )

    def _give_back(self, free: Integers, placed: PlacedPods, interval: int) -> None:
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
            self._intervals.series(self._series[number])[interval:] += more

    # --- questions -------------------------------------------------------------------------------

    def copy(self, intervals: Intervals) -> SlotCapacity:
        """Return the same capacity, for another cycle to book on intervals of its own."""
        other = SlotCapacity.__new__(SlotCapacity)
        other.__dict__.update(self.__dict__)
        other._intervals = intervals
        return other

    def can_count(self, counted: CountedGang | None) -> bool:
        """Say whether a gang's pods are of a kind that is counted here."""
        return self._pools.find(counted) is not None

    def starts(self, counted: CountedGang, limit_ms: int, first: int) -> Iterator[int]:
        """Yield the intervals from `first` on with quota and slots for a gang."""
        slots = self._slots(counted)[first:]
        enough = self._intervals.with_quota(slots >= counted.pods, counted.cells, first)
        return iter(()) if enough is None else self._intervals.long_enough(enough, limit_ms, first)

    def find(self, counted: CountedGang) -> PlacedPods:
        """Return a gang's pods on nodes of its pool, whichever they will be."""
        pool = self._pools.all[self._number(counted)]
        return PlacedPods(
            (), counted.requests, rows=pool.row, counts=np.array([counted.pods], np.int64)
        )

    def allows(self, placed_pods: tuple[PlacedPods, ...], high: int) -> bool:
        """Say whether pods fit from now on in all intervals below `high`."""
        return all(
            int(self._intervals.series(series)[:high].min()) >= pods
            for series, pods in self._slots_of(placed_pods)
        )

    def book(self, placed_pods: tuple[PlacedPods, ...], low: int, high: int) -> None:
        """Take up slots in the intervals [low, high)."""
        for series, pods in self._slots_of(placed_pods):
            self._intervals.series(series)[low:high] -= pods

    def _slots_of(self, placed_pods: tuple[PlacedPods, ...]) -> Iterable[tuple[int, int]]:
        for placed in placed_pods:
            if placed.rows.shape[0]:
                number = int(self._pool_of[placed.rows[0]])
                yield self._series[number], int(placed.counts.sum())

    def _slots(self, counted: CountedGang) -> Integers:
        return self._intervals.series(self._series[self._number(counted)])

    def _number(self, counted: CountedGang) -> int:
        number = self._pools.find(counted)
        assert number is not None, "only gangs of these kinds get reservations here"
        return number
