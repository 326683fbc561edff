"""Room for one kind of pod, kept by bookings, is what counting all nodes again would find."""

from __future__ import annotations

import random

import numpy as np
import pytest

from unisono.engine.backfill.pod_room import PodRoom
from unisono.engine.model.names import PODS, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.placement.packing import fill
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.occupancy import Occupancy
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.pod_index import PodIndex
from unisono.engine.state.transaction import Ledger

ONE = amounts({"cpu": 1000})
TWO = amounts({"cpu": 2000, "memory": 3})


def _floor(seed: int, sizes: tuple[int, ...]) -> Occupancy:
    chance, table = random.Random(seed), NodeTable()
    for number in range(6):
        has = amounts({"cpu": chance.choice(sizes), "memory": 10})
        table.put(Node(name=NodeName(f"n{number}"), allocatable=has))
    return Occupancy(table, PodIndex())


def _plainly(table: NodeTable, requests: Amounts, closed: int | None) -> list[int]:
    """Count pods node by node."""
    found = []
    for row in range(len(table)):
        room = [
            int(table.free[table.resources[name], row]) // amount
            for name, amount in ((PODS, 1), *requests)
        ]
        found.append(0 if row == closed else max(0, min(room)))
    return found


def _some(chance: random.Random, requests: Amounts) -> PlacedPods:
    names = chance.sample(range(6), chance.randint(1, 3))
    nodes = tuple((NodeName(f"n{name}"), chance.randint(1, 2)) for name in sorted(names))
    return PlacedPods(nodes=nodes, requests=requests)


def _has_room(occupancy: Occupancy, placed: PlacedPods) -> bool:
    caps = _plainly(occupancy.table, placed.requests, None)
    return all(caps[occupancy.table.row_of[name]] >= count for name, count in placed.nodes)


def _best_fit(caps: Integers, pods: int) -> tuple[Rows, Integers] | None:
    """Fill the smallest holes first, as the placer does for pods that no score tells apart."""
    if int(caps.sum()) < pods:
        return None
    chosen, counts = fill(caps, pods)
    order = np.argsort(chosen)
    return chosen[order], counts[order]


@pytest.mark.parametrize("closed", [None, 3])
@pytest.mark.parametrize("sizes", [(1000,), (2000, 5000)])
@pytest.mark.parametrize("kinds", [(ONE,), (ONE, TWO)])
def test_room_follows_bookings(
    kinds: tuple[Amounts, ...], sizes: tuple[int, ...], closed: int | None
) -> None:
    for seed in range(12):
        chance, occupancy = random.Random(seed), _floor(seed, sizes)
        table, there = occupancy.table, list[PlacedPods]()
        allowed = np.ones(6, np.bool_)
        if closed is not None:
            allowed[closed] = False
        rows = np.array(chance.sample(range(6), 6), np.intp)
        rooms = {kind: PodRoom(table, kind, allowed, rows) for kind in kinds}
        for _ in range(60):
            if there and chance.random() < 0.45:
                occupancy.vacate(there.pop(chance.randrange(len(there))))
            else:
                placed = _some(chance, chance.choice(kinds))
                if _has_room(occupancy, placed) or chance.random() < 0.2:  # others may overdo it
                    occupancy.occupy(placed)
                    there.append(placed)
            for kind, room in rooms.items():
                ledger = Ledger(occupancy)
                caps = _plainly(table, kind, closed)
                assert room.total(ledger) == sum(caps)
                pods = chance.randint(1, 4)
                chosen = room.choose(pods, ledger)
                wanted = _best_fit(np.array(caps)[rows], pods)
                if chosen is None or wanted is None:
                    assert chosen is wanted is None
                    continue
                assert chosen[0].tolist() == rows[wanted[0]].tolist()
                assert chosen[1].tolist() == wanted[1].tolist()


def test_who_is_seated_later_counts_at_once_and_is_seated_for_whoever_looks_at_nodes() -> None:
    occupancy = _floor(0, (4000,))
    table = occupancy.table
    rows = table.in_name_order()
    room = PodRoom(table, ONE, np.ones(6, np.bool_), rows)
    other = PodRoom(table, TWO, np.ones(6, np.bool_), rows)
    ledger = Ledger(occupancy)
    assert (room.total(ledger), other.total(ledger)) == (24, 12)
    placed = PlacedPods(nodes=((NodeName("n1"), 3),), requests=ONE)
    occupancy.locate(placed)
    ledger.occupy_later(placed)
    assert room.total(ledger) == 21
    assert table.usage.version == 6, "nobody has looked at nodes yet"
    assert other.total(ledger) == 10
    assert int(table.free[table.resources[ONE[0][0]], 1]) == 1000
    chosen = room.choose(2, ledger)
    assert chosen is not None
    assert [list(part) for part in chosen] == [[0, 1], [1, 1]]
    ledger.rollback()
    assert room.total(ledger) == 24
    assert not ledger.later


@pytest.mark.parametrize("seed", range(6))
def test_room_on_the_only_node_is_one_number(seed: int) -> None:
    chance, table = random.Random(seed), NodeTable()
    table.put(Node(name=NodeName("n"), allocatable=amounts({"cpu": 20_000, "memory": 100})))
    occupancy, there = Occupancy(table, PodIndex()), list[PlacedPods]()
    room = PodRoom(table, ONE, np.ones(1, np.bool_), table.in_name_order())
    for _ in range(80):
        pods = chance.randint(1, 6)
        if there and chance.random() < 0.45:
            occupancy.vacate(there.pop(chance.randrange(len(there))))
        elif room.free >= pods or chance.random() < 0.1:  # others may overdo it, or ask for more
            asked = ONE if chance.random() < 0.9 else TWO
            there.append(PlacedPods(nodes=((NodeName("n"), pods),), requests=asked))
            occupancy.occupy(there[-1], fits=asked is ONE and room.free >= pods)
        (left,) = _plainly(table, ONE, None)
        caps = room.caps.copy()
        assert (room.free, caps.tolist()) == (left, [left])
        chosen = room.pick(caps, pods)
        assert (chosen is not None) == (pods <= left)
        if chosen is not None:
            assert [part.tolist() for part in chosen] == [[0], [pods]]
            assert chosen == room.only(pods)
