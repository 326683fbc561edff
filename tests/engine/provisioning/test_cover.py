"""Machines for equal pods: never dearer than the best of all choices, as each policy means it."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.engine.model.provisioning import Packing
from unisono.engine.provisioning.cover import EXACT_SLOTS, MachineOffer, cost_of, cover

SLACK = 250
machine_offers = st.lists(
    st.builds(MachineOffer, st.integers(1, 8), st.integers(1, 60), st.integers(0, 4)),
    min_size=1,
    max_size=3,
)


def brute(pods: int, offers: tuple[MachineOffer, ...], packing: Packing) -> tuple[int, int] | None:
    """Try everything: the price and the number of machines of the best choice."""
    ranges = [range(min(machine.stock, -(-pods // machine.slots)) + 1) for machine in offers]
    ways = [
        (cost_of(counts, offers), sum(counts))
        for counts in product(*ranges)
        if sum(n * machine.slots for n, machine in zip(counts, offers, strict=True)) >= pods
    ]
    if not ways:
        return None
    cheapest = min(ways)
    if packing == "MinCost":
        return cheapest
    if packing == "Balanced":
        ways = [way for way in ways if way[0] <= cheapest[0] * (1000 + SLACK) // 1000]
    return min(ways, key=lambda way: (way[1], way[0]))


@given(st.integers(1, 18), machine_offers.map(tuple), st.sampled_from(get_args(Packing)))
def test_it_is_what_trying_everything_finds(
    pods: int, offers: tuple[MachineOffer, ...], packing: Packing
) -> None:
    counts = cover(pods, offers, packing, SLACK)
    best = brute(pods, offers, packing)
    if counts is None:
        assert best is None
        return
    assert (cost_of(counts, offers), sum(counts)) == best
    assert all(n <= machine.stock for n, machine in zip(counts, offers, strict=True))


@given(st.integers(1, 6 * EXACT_SLOTS), st.lists(st.tuples(st.integers(1, 8), st.integers(1, 60))))
def test_large_gangs_cost_at_most_one_machine_more_than_the_best(
    pods: int, sizes: list[tuple[int, int]]
) -> None:
    offers = tuple(MachineOffer(slots, price, 10**6) for slots, price in sizes)
    counts = cover(pods, offers, "MinCost", SLACK)
    if counts is None:
        assert not offers
        return
    assert sum(n * machine.slots for n, machine in zip(counts, offers, strict=True)) >= pods
    best = min(offers, key=lambda machine: machine.price / machine.slots)
    assert cost_of(counts, offers) <= pods * best.price / best.slots + best.price


@pytest.mark.parametrize("packing", get_args(Packing))
def test_stock_that_is_just_enough_is_used_up(packing: Packing) -> None:
    offers = (MachineOffer(4, 40, 2), MachineOffer(1, 5, 3))
    assert cover(11, offers, packing, SLACK) == (2, 3)
    assert cover(12, offers, packing, SLACK) is None
