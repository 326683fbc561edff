"""Room in time: what is kept in few numbers is what plain counting finds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from unisono.engine.backfill.conservative import Bounds
from unisono.engine.backfill.counted_gang import CountedGang, pods_per_node
from unisono.engine.backfill.node_room import NodeRoom
from unisono.engine.backfill.pieces import End, Pieces
from unisono.engine.backfill.pod_room import PodRoom
from unisono.engine.backfill.slot_room import SlotRoom, pools_of
from unisono.engine.backfill.units import Units
from unisono.engine.model.names import FlavorName, Instant, NodeName, ResourceName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.placement.feasibility import Mask
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.transaction import Starting

NOW = Instant(0)


def _table(*nodes: dict[str, int]) -> NodeTable:
    table = NodeTable()
    for number, has in enumerate(nodes):
        table.put(Node(name=NodeName(f"n{number}"), allocatable=amounts(has)))
    return table


def _sits(table: NodeTable, requests: Amounts, pods: dict[int, int]) -> PlacedPods:
    """Let pods sit on rows."""
    rows, counts = np.array([*pods], np.intp), np.array([*pods.values()], np.int64)
    table.take(rows, counts, requests)
    return PlacedPods((), requests, rows=rows, counts=counts)


def _asks(
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
        room=PodRoom(table, requests, everywhere, table.in_name_order()),
    )


def _pieces(ends: list[End], most: int = 640) -> Pieces:
    return Pieces(NOW, ends, resolution_ms=1, most=most)


# --- nodes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_memory", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_room_on_nodes_is_what_counting_finds(seed: int, with_memory: bool) -> None:
    chance = random.Random(seed)
    more = {"memory": 64} if with_memory else {}
    table = _table(*[{"gpu": chance.choice((4, 8)), **more} for _ in range(6)])
    ends: list[End] = []
    for number in range(4):
        asks = amounts({"gpu": chance.choice((1, 2))})
        pods = dict.fromkeys(chance.sample(range(6), 3), 1)
        placed = _sits(table, asks, pods)
        ends.append((Instant(chance.randrange(1, 9) * 10), number, Starting((), (placed,))))
    ends.sort(key=lambda entry: entry[0])
    # With memory that runs short no table is looked up, and both resources are counted.
    kinds = [
        _asks(table, amounts({"gpu": gpus, **({"memory": 30} if with_memory else {})}), pods)
        for gpus, pods in ((1, 5), (2, 3), (4, 2), (8, 1))
    ]
    pieces = _pieces(ends, most=24)  # so few that the last of them are put in order
    room = NodeRoom(table, pieces, ends, [(kind.requests, True) for kind in kinds])
    order = np.arange(len(table))
    booked: list[tuple[Instant, Instant, PlacedPods]] = []
    for _ in range(60):
        kind, limit = chance.choice(kinds), chance.randrange(1, 40)
        for low in room.starts(kind, limit, 0):
            start = pieces.cuts[low]
            high = max(low + 1, pieces.piece_at(Instant(start + limit)))
            tenant_ = room.find(kind, order, low, high)
            if tenant_ is not None:
                high = pieces.cut(Instant(start + limit))
                room.book((tenant_,), pieces.piece_at(start), high)
                until = pieces.cuts[high] if high < len(pieces.cuts) else Instant(1 << 60)
                booked.append((start, until, tenant_))
                break
    assert len(booked) > 30
    for piece, at in enumerate(pieces.cuts):
        free = table.free.copy()
        for end, _, ran in ends:
            for placed in ran.placed_pods if end <= at else ():
                _put(table, free, placed, 1)
        for start, until, placed in booked:
            if start <= at < until:
                _put(table, free, placed, -1)
                assert free[:, placed.rows].min() >= 0, f"too many at {at}"
        seen = room.least_free(piece, piece + 1)
        gpus = table.column(ResourceName("gpu"))
        assert gpus is not None
        assert seen[gpus].tolist() == free[gpus].tolist()
        for kind in kinds:
            there = int(pods_per_node(free, kind.columns).sum())
            assert (piece in room.starts(kind, 0, 0)) == (there >= kind.pods)


def _put(table: NodeTable, free: Integers, placed: PlacedPods, sign: int) -> None:
    for column, amount in table.columns_of(placed.requests):
        free[column, placed.rows] += sign * placed.counts * amount


def test_what_lasts_longer_need_not_be_counted() -> None:
    table = _table(*[{"gpu": 8, "cpu": 64, "memory": 512}] * 3)
    asked = [amounts({"gpu": gpus, "cpu": 6 * gpus, "memory": 65}) for gpus in (1, 2)]
    units = Units(table, [], asked)
    free = units.drop_lasting(units.now()[None])
    # Eight pods of one GPU take 520 of memory: that runs short first. Cores and places do not.
    assert {*units.unit_of} == {
        table.column(ResourceName("gpu")),
        table.column(ResourceName("memory")),
    }
    assert free.shape[:2] == (1, 2)
    assert units.know(amounts({"gpu": 4, "cpu": 24, "memory": 65}))
    assert not units.know(amounts({"gpu": 1, "cpu": 7, "memory": 65}))  # more cores a GPU
    assert not units.know(amounts({"cpu": 8, "memory": 65}))  # cores without GPUs


# --- slots ---------------------------------------------------------------------------------------


def test_slots_come_free_when_others_end() -> None:
    table = _table({"gpu": 8}, {"gpu": 8})
    other = _sits(table, amounts({"gpu": 3}), {0: 1})
    alike = _sits(table, amounts({"gpu": 2}), {0: 1, 1: 2})
    ends: list[End] = [
        (Instant(10), 1, Starting((), (other,))),
        (Instant(20), 2, Starting((), (alike,))),
    ]
    asks = _asks(table, amounts({"gpu": 2}), 2)
    pools = pools_of([asks, _asks(table, asks.requests, 5)])
    assert pools is not None
    pieces = _pieces(ends)
    room = SlotRoom(table, pools, pieces, ends)
    # Free now: 3 of one node and 4 of the other; 6 and 4 from ten on; everything from twenty on.
    for pods, starts in ((3, [0, 1, 2]), (4, [1, 2]), (5, [1, 2]), (6, [2]), (8, [2]), (9, [])):
        assert [*room.starts(_asks(table, asks.requests, pods, asks.allowed), 1, 0)] == starts
    room.book((room.find(_asks(table, asks.requests, 3, asks.allowed)),), 1, 2)
    assert [*room.starts(_asks(table, asks.requests, 3, asks.allowed), 1, 0)] == [0, 2]
    assert not room.leaves((alike,), 2)
    assert room.leaves((alike,), 1)


def test_only_where_pods_are_alike_are_slots_counted() -> None:
    table = _table(*[{"gpu": 8}] * 4)
    two, four = amounts({"gpu": 2}), amounts({"gpu": 4})
    left, right = np.array([1, 1, 0, 0], np.bool_), np.array([0, 0, 1, 1], np.bool_)
    assert pools_of([_asks(table, two, 1), _asks(table, four, 1)]) is None
    assert pools_of([_asks(table, two, 1), _asks(table, two, 1, left)]) is None
    assert pools_of([_asks(table, two, 1), None]) is None
    apart = pools_of([_asks(table, two, 1, left), _asks(table, four, 1, right)])
    assert apart is not None
    assert len(apart.all) == 2
    assert apart.find(_asks(table, four, 9, right.copy())) == 1
    assert apart.find(_asks(table, four, 9, left)) is None


# --- bounds --------------------------------------------------------------------------------------


def test_who_runs_as_long_does_not_start_earlier() -> None:
    bounds = Bounds()
    for limit, start in ((10, 100), (50, 300), (30, 200), (10, 150), (40, 120)):
        bounds.note(limit, Instant(start))
    assert [bounds.earliest(limit) for limit in (5, 10, 29, 30, 45, 50, 99)] == [
        *(0, 150, 150, 200, 200, 300, 300)
    ]
