"""Capacity over time: what is kept in few numbers equals what plain counting finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from unisono.engine.backfill.conservative import Bounds
from unisono.engine.backfill.counted_gang import CountedGang, pods_per_node
from unisono.engine.backfill.intervals import End, Intervals
from unisono.engine.backfill.node_capacity import NodeCapacity, Units
from unisono.engine.backfill.pod_capacity import PodCapacity
from unisono.engine.backfill.slot_capacity import SlotCapacity, pools_of
from unisono.engine.model.names import FlavorName, Instant, NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.transaction import Starting

NOW = Instant(0)


def _table(*nodes: dict[str, int]) -> NodeTable:
    table = NodeTable()
    for number, has in enumerate(nodes):
        table.put(Node(name=NodeName(f"n{number}"), allocatable=amounts(has)))
    return table


def _put_pods(table: NodeTable, requests: Amounts, pods: dict[int, int]) -> PlacedPods:
    """Put pods on rows."""
    rows, counts = np.array([*pods], np.intp), np.array([*pods.values()], np.int64)
    table.take(rows, counts, requests)
    return PlacedPods((), requests, rows=rows, counts=counts)


def _gang(
    table: NodeTable, requests: Amounts, pods: int, allowed: Mask | None = None
) -> CountedGang:
    everywhere = np.ones(len(table), np.bool_) if allowed is None else allowed
    return CountedGang(
        pods=pods,
        admission_count=pods,
        flavor=FlavorName("f"),
        flavors=(),
        pod_set="main",
        levels=(),
        is_best_fit=True,
        cells=(),
        charges=(),
        columns=table.columns_of(requests),
        requests=requests,
        allowed=everywhere,
        capacity=PodCapacity(table, requests, everywhere, table.in_name_order()),
    )


def _intervals(ends: list[End], most: int = 640) -> Intervals:
    return Intervals(NOW, ends, resolution_ms=1, most=most)


# --- nodes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_memory", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_node_capacity_equals_a_plain_count(seed: int, with_memory: bool) -> None:
    random_source = random.Random(seed)
    more = {"memory": 64} if with_memory else {}
    table = _table(*[{"gpu": random_source.choice((4, 8)), **more} for _ in range(6)])
    ends: list[End] = []
    for number in range(4):
        asks = amounts({"gpu": random_source.choice((1, 2))})
        pods = dict.fromkeys(random_source.sample(range(6), 3), 1)
        placed = _put_pods(table, asks, pods)
        ends.append((Instant(random_source.randrange(1, 9) * 10), number, Starting((), (placed,))))
    ends.sort(key=lambda entry: entry[0])
    # With memory that runs short no look-up table is used, and both resources are counted.
    kinds = [
        _gang(table, amounts({"gpu": gpus, **({"memory": 30} if with_memory else {})}), pods)
        for gpus, pods in ((1, 5), (2, 3), (4, 2), (8, 1))
    ]
    intervals = _intervals(ends, most=24)  # so few that the last of them are put in order
    capacity = NodeCapacity(table, intervals, ends, [(kind.requests, True) for kind in kinds])
    order = np.arange(len(table))
    booked: list[tuple[Instant, Instant, PlacedPods]] = []
    for _ in range(60):
        kind, limit = random_source.choice(kinds), random_source.randrange(1, 40)
        for low in capacity.starts(kind, limit, 0):
            start = intervals.cuts[low]
            high = max(low + 1, intervals.interval_at(Instant(start + limit)))
            placed_ = capacity.find(kind, order, low, high)
            if placed_ is not None:
                high = intervals.cut(Instant(start + limit))
                capacity.book((placed_,), intervals.interval_at(start), high)
                until = intervals.cuts[high] if high < len(intervals.cuts) else Instant(1 << 60)
                booked.append((start, until, placed_))
                break
    assert len(booked) > 30
    for interval, at in enumerate(intervals.cuts):
        free = table.free.copy()
        for end, _, ran in ends:
            for placed in ran.placed_pods if end <= at else ():
                _put(table, free, placed, 1)
        for start, until, placed in booked:
            if start <= at < until:
                _put(table, free, placed, -1)
                assert free[:, placed.rows].min() >= 0, f"too many at {at}"
        seen = capacity.least_free(interval, interval + 1)
        gpus = table.column(ResourceName("gpu"))
        assert gpus is not None
        assert seen[gpus].tolist() == free[gpus].tolist()
        for kind in kinds:
            there = int(pods_per_node(free, kind.columns).sum())
            assert (interval in capacity.starts(kind, 0, 0)) == (there >= kind.pods)


def test_memory_that_was_never_set_decides_nothing() -> None:
    """Arrays are longer than there are intervals; what is behind these is not read."""
    table = _table({"gpu": 8}, {"gpu": 8})
    ran = _put_pods(table, amounts({"gpu": 1}), {0: 8})
    ends: list[End] = [(Instant(10), 0, Starting((), (ran,)))]
    intervals = _intervals(ends)
    gang = _gang(table, amounts({"gpu": 2}), 1)
    capacity = NodeCapacity(table, intervals, ends, [(gang.requests, True)])
    intervals.cut(Instant(5))
    capacity._free[len(intervals.cuts) :] = np.iinfo(capacity._free.dtype).max
    assert [*capacity.starts(gang, 1, 0)] == [0, 1, 2]
    assert capacity._pods_in is not None, "a table of capacities is kept: the amounts are small"


def _put(table: NodeTable, free: Integers, placed: PlacedPods, sign: int) -> None:
    for column, amount in table.columns_of(placed.requests):
        free[column, placed.rows] += sign * placed.counts * amount


def test_resources_that_outlast_another_are_left_out() -> None:
    table = _table(*[{"gpu": 8, "cpu": 64, "memory": 512}] * 3)
    asked = [amounts({"gpu": gpus, "cpu": 6 * gpus, "memory": 65}) for gpus in (1, 2)]
    units = Units(table, [], asked)
    free = units.drop_outlasting(units.now()[None])
    # Eight pods of one GPU take 520 of memory: that runs short first. Cores and pods do not.
    assert {*units.unit_of} == {
        table.column(ResourceName("gpu")),
        table.column(ResourceName("memory")),
    }
    assert free.shape[:2] == (1, 2)
    assert units.can_count(amounts({"gpu": 4, "cpu": 24, "memory": 65}))
    assert not units.can_count(amounts({"gpu": 1, "cpu": 7, "memory": 65}))  # more cores a GPU
    assert not units.can_count(amounts({"cpu": 8, "memory": 65}))  # cores without GPUs


# --- slots ---------------------------------------------------------------------------------------


def test_slots_come_free_with_every_end() -> None:
    table = _table({"gpu": 8}, {"gpu": 8})
    other = _put_pods(table, amounts({"gpu": 3}), {0: 1})
    equal = _put_pods(table, amounts({"gpu": 2}), {0: 1, 1: 2})
    ends: list[End] = [
        (Instant(10), 1, Starting((), (other,))),
        (Instant(20), 2, Starting((), (equal,))),
    ]
    asks = _gang(table, amounts({"gpu": 2}), 2)
    pools = pools_of([asks, _gang(table, asks.requests, 5)])
    assert pools is not None
    intervals = _intervals(ends)
    capacity = SlotCapacity(table, pools, intervals, ends)
    # Free now: 3 of one node and 4 of the other; 6 and 4 from ten on; all from twenty on.
    for pods, starts in ((3, [0, 1, 2]), (4, [1, 2]), (5, [1, 2]), (6, [2]), (8, [2]), (9, [])):
        assert [*capacity.starts(_gang(table, asks.requests, pods, asks.allowed), 1, 0)] == starts
    capacity.book((capacity.find(_gang(table, asks.requests, 3, asks.allowed)),), 1, 2)
    assert [*capacity.starts(_gang(table, asks.requests, 3, asks.allowed), 1, 0)] == [0, 2]
    assert not capacity.allows((equal,), 2)
    assert capacity.allows((equal,), 1)


def test_slots_need_equal_pods_on_each_part_of_the_cluster() -> None:
    table = _table(*[{"gpu": 8}] * 4)
    two, four = amounts({"gpu": 2}), amounts({"gpu": 4})
    left, right = np.array([1, 1, 0, 0], np.bool_), np.array([0, 0, 1, 1], np.bool_)
    assert pools_of([_gang(table, two, 1), _gang(table, four, 1)]) is None
    assert pools_of([_gang(table, two, 1), _gang(table, two, 1, left)]) is None
    assert pools_of([_gang(table, two, 1), None]) is None
    apart = pools_of([_gang(table, two, 1, left), _gang(table, four, 1, right)])
    assert apart is not None
    assert len(apart.all) == 2
    assert apart.find(_gang(table, four, 9, right.copy())) == 1
    assert apart.find(_gang(table, four, 9, left)) is None


# --- bounds --------------------------------------------------------------------------------------


def test_longer_time_limits_do_not_start_earlier() -> None:
    bounds = Bounds()
    for limit, start in ((10, 100), (50, 300), (30, 200), (10, 150), (40, 120)):
        bounds.note(limit, Instant(start))
    assert [bounds.earliest(limit) for limit in (5, 10, 29, 30, 45, 50, 99)] == [
        *(0, 150, 150, 200, 200, 300, 300)
    ]
