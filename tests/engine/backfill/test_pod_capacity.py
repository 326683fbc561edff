"""Capacity for one kind of pod, kept by bookings, equals a count of all nodes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from unisono.engine.backfill.pod_capacity import PodCapacity
from unisono.engine.model.names import PODS, NodeName
from unisono.engine.model.node import Node
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.placement.packing import fill
from unisono.engine.state.node_table import Integers, NodeTable, Rows
from unisono.engine.state.occupancy import Occupancy, PlacedPods, PodIndex
from unisono.engine.state.transaction import Transaction

ONE = amounts({"cpu": 1000})
TWO = amounts({"cpu": 2000, "memory": 3})


def _occupancy(seed: int, sizes: tuple[int, ...]) -> Occupancy:
    random_source, table = random.Random(seed), NodeTable()
    for number in range(6):
        has = amounts({"cpu": random_source.choice(sizes), "memory": 10})
        table.put(Node(name=NodeName(f"n{number}"), allocatable=has))
    return Occupancy(table, PodIndex())


def _plainly(table: NodeTable, requests: Amounts, closed: int | None) -> list[int]:
    """Count pods node by node."""
    found = []
    for row in range(len(table)):
        fitting = [
            int(table.free[table.resources[name], row]) // amount
            for name, amount in ((PODS, 1), *requests)
        ]
        found.append(0 if row == closed else max(0, min(fitting)))
    return found


def _some(random_source: random.Random, requests: Amounts) -> PlacedPods:
    names = random_source.sample(range(6), random_source.randint(1, 3))
    nodes = tuple((NodeName(f"n{name}"), random_source.randint(1, 2)) for name in sorted(names))
    return PlacedPods(nodes=nodes, requests=requests)


def _fits(occupancy: Occupancy, placed: PlacedPods) -> bool:
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
def test_capacity_follows_bookings(
    kinds: tuple[Amounts, ...], sizes: tuple[int, ...], closed: int | None
) -> None:
    for seed in range(12):
        random_source, occupancy = random.Random(seed), _occupancy(seed, sizes)
        table, there = occupancy.table, list[PlacedPods]()
        allowed = np.ones(6, np.bool_)
        if closed is not None:
            allowed[closed] = False
        rows = np.array(random_source.sample(range(6), 6), np.intp)
        capacities = {kind: PodCapacity(table, kind, allowed, rows) for kind in kinds}
        for _ in range(60):
            if there and random_source.random() < 0.45:
                occupancy.vacate(there.pop(random_source.randrange(len(there))))
            else:
                placed = _some(random_source, random_source.choice(kinds))
                if _fits(occupancy, placed) or random_source.random() < 0.2:  # overcommitted
                    occupancy.occupy(placed)
                    there.append(placed)
            for kind, capacity in capacities.items():
                transaction = Transaction(occupancy)
                caps = _plainly(table, kind, closed)
                assert capacity.total(transaction) == sum(caps)
                pods = random_source.randint(1, 4)
                chosen = capacity.choose(pods, transaction)
                wanted = _best_fit(np.array(caps)[rows], pods)
                if chosen is None or wanted is None:
                    assert chosen is wanted is None
                    continue
                assert chosen[0].tolist() == rows[wanted[0]].tolist()
                assert chosen[1].tolist() == wanted[1].tolist()


def test_deferred_pods_count_at_once_and_are_placed_when_nodes_are_read() -> None:
    occupancy = _occupancy(0, (4000,))
    table = occupancy.table
    rows = table.in_name_order()
    capacity = PodCapacity(table, ONE, np.ones(6, np.bool_), rows)
    other = PodCapacity(table, TWO, np.ones(6, np.bool_), rows)
    transaction = Transaction(occupancy)
    assert (capacity.total(transaction), other.total(transaction)) == (24, 12)
    placed = PlacedPods(nodes=((NodeName("n1"), 3),), requests=ONE)
    occupancy.locate(placed)
    transaction.occupy_later(placed)
    assert capacity.total(transaction) == 21
    assert table.usage.version == 6, "nodes were not read yet"
    assert other.total(transaction) == 10
    assert int(table.free[table.resources[ONE[0][0]], 1]) == 1000
    chosen = capacity.choose(2, transaction)
    assert chosen is not None
    assert [list(part) for part in chosen] == [[0, 1], [1, 1]]
    transaction.rollback()
    assert capacity.total(transaction) == 24
    assert not transaction.later


@pytest.mark.parametrize("seed", range(6))
def test_capacity_of_the_only_node_is_one_number(seed: int) -> None:
    random_source, table = random.Random(seed), NodeTable()
    table.put(Node(name=NodeName("n"), allocatable=amounts({"cpu": 20_000, "memory": 100})))
    occupancy, there = Occupancy(table, PodIndex()), list[PlacedPods]()
    capacity = PodCapacity(table, ONE, np.ones(1, np.bool_), table.in_name_order())
    for _ in range(80):
        pods = random_source.randint(1, 6)
        if there and random_source.random() < 0.45:
            occupancy.vacate(there.pop(random_source.randrange(len(there))))
        elif (
            capacity.free >= pods or random_source.random() < 0.1
        ):  # overcommitted, or of another kind
            asked = ONE if random_source.random() < 0.9 else TWO
            there.append(PlacedPods(nodes=((NodeName("n"), pods),), requests=asked))
            occupancy.occupy(there[-1], fits=asked is ONE and capacity.free >= pods)
        (left,) = _plainly(table, ONE, None)
        caps = capacity.caps.copy()
        assert (capacity.free, caps.tolist()) == (left, [left])
        chosen = capacity.pick(caps, pods)
        assert (chosen is not None) == (pods <= left)
        if chosen is not None:
            assert [part.tolist() for part in chosen] == [[0], [pods]]
            assert chosen == capacity.only(pods)
