"""How many pods of each set a gang needs."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.gang_rules import least_of_each


@given(st.lists(st.integers(0, 3), max_size=4), st.integers(0, 12))
def test_a_minimum_is_the_fewest_pods_with_which_the_gang_can_be_complete(
    counts: list[int], least: int
) -> None:
    least = min(least, sum(counts))
    complete = [
        chosen
        for chosen in product(*(range(count + 1) for count in counts))
        if sum(chosen) >= least
    ]
    fewest = tuple(min(chosen[index] for chosen in complete) for index in range(len(counts)))
    assert least_of_each(least, counts) == fewest
