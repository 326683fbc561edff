"""Machines for equal pods: never dearer than the best of all choices, as each policy means it."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.engine.model.provisioning import Packing
from unisono.engine.provisioning.cover import EXACT_SLOTS, MachineKind, cost_of, cover

SLACK = 250
kinds_of_machines = st.lists(
    st.builds(MachineKind, st.integers(1, 8), st.integers(1, 60), st.integers(0, 4)),
    min_size=1,
    max_size=3,
)


def brute(pods: int, kinds: tuple[MachineKind, ...], packing: Packing) -> tuple[int, int] | None:
    """Try everything: the price and the number of machines of the best choice."""
    ranges = [range(min(kind.stock, -(-pods // kind.slots)) + 1) for kind in kinds]
    ways = [
        (cost_of(counts, kinds), sum(counts))
        for counts in product(*ranges)
        if sum(n * kind.slots for n, kind in zip(counts, kinds, strict=True)) >= pods
    ]
    if not ways:
        return None
    cheapest = min(ways)
    if packing == "MinCost":
        return cheapest
    if packing == "Balanced":
        ways = [way for way in ways if way[0] <= cheapest[0] * (1000 + SLACK) // 1000]
    return min(ways, key=lambda way: (way[1], way[0]))


@given(st.integers(1, 18), kinds_of_machines.map(tuple), st.sampled_from(get_args(Packing)))
def test_it_is_what_trying_everything_finds(
    pods: int, kinds: tuple[MachineKind, ...], packing: Packing
) -> None:
    counts = cover(pods, kinds, packing, SLACK)
    best = brute(pods, kinds, packing)
    if counts is None:
        assert best is None
        return
    assert (cost_of(counts, kinds), sum(counts)) == best
    assert all(n <= kind.stock for n, kind in zip(counts, kinds, strict=True))


@given(st.integers(1, 6 * EXACT_SLOTS), st.lists(st.tuples(st.integers(1, 8), st.integers(1, 60))))
def test_large_gangs_cost_at_most_one_machine_more_than_the_best(
    pods: int, sizes: list[tuple[int, int]]
) -> None:
    kinds = tuple(MachineKind(slots, price, 10**6) for slots, price in sizes)
    counts = cover(pods, kinds, "MinCost", SLACK)
    if counts is None:
        assert not kinds
        return
    assert sum(n * kind.slots for n, kind in zip(counts, kinds, strict=True)) >= pods
    best = min(kinds, key=lambda kind: kind.price / kind.slots)
    assert cost_of(counts, kinds) <= pods * best.price / best.slots + best.price


@pytest.mark.parametrize("packing", get_args(Packing))
def test_stock_that_is_just_enough_is_used_up(packing: Packing) -> None:
    kinds = (MachineKind(4, 40, 2), MachineKind(1, 5, 3))
    assert cover(11, kinds, packing, SLACK) == (2, 3)
    assert cover(12, kinds, packing, SLACK) is None
