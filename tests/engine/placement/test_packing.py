"""Packing keeps pods together, filling uses up holes; numbers of spec placement §8.5 and §14."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.placement_builders import GPU, RACK, node, table_of
from unisono.engine.model.resources import amounts
from unisono.engine.placement.demand import Constraint
from unisono.engine.placement.feasibility import Capacity, Feasibility
from unisono.engine.placement.packing import Taken, descend, fill, pack
from unisono.engine.state.node_table import Integers, Rows


def shown(taken: Taken) -> dict[int, int]:
    positions, counts = taken
    assert len(set(positions.tolist())) == positions.shape[0], "a sibling twice"
    return dict(zip(positions.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("caps", "need", "expected"),
    [
        ([3, 8, 5], 8, {1: 8}),
        ([3, 8, 5], 3, {0: 3}),  # the smallest that holds it, not the largest
        ([3, 8, 5], 4, {2: 4}),
        ([3, 8, 5], 10, {1: 8, 0: 2}),  # the rest goes where it fits tightest
        ([3, 8, 5], 12, {1: 8, 2: 4}),
        ([3, 8, 5], 16, {1: 8, 2: 5, 0: 3}),
        ([4, 4, 4], 4, {0: 4}),  # equals: the first
        ([4, 4, 4], 6, {0: 4, 1: 2}),
        ([0, 2, 0, 1], 1, {3: 1}),
        ([1], 1, {0: 1}),
    ],
)
def test_pack(caps: list[int], need: int, expected: dict[int, int]) -> None:
    assert shown(pack(np.array(caps), need)) == expected


def test_the_short_ways_to_one_and_to_full_siblings_are_the_long_way() -> None:
    dice = np.random.default_rng(5)
    for _ in range(600):
        most = int(dice.integers(1, 9))  # if it is small, many have as much room as any
        caps = dice.integers(0, most + 1, size=int(dice.integers(1, 12))).astype("i2")
        need = int(dice.integers(1, max(2, int(caps.sum()) + 1)))
        if need > int(caps.sum()):
            continue
        long_way = pack(caps, need, np.zeros_like)  # a score that is the same for all
        for short, long in zip(pack(caps, need), long_way, strict=True):
            assert (short.tolist(), short.dtype) == (long.tolist(), long.dtype)


@pytest.mark.parametrize(
    ("caps", "need", "expected"),
    [
        ([2, 1, 1], 2, {1: 1, 2: 1}),  # scenario 4: small holes first
        ([2, 1, 1], 1, {1: 1}),
        ([2, 1, 1], 3, {1: 1, 2: 1, 0: 1}),
        ([2, 1, 1], 4, {1: 1, 2: 1, 0: 2}),
        ([5, 0, 3], 4, {2: 3, 0: 1}),
        ([7], 3, {0: 3}),
    ],
)
def test_fill(caps: list[int], need: int, expected: dict[int, int]) -> None:
    assert shown(fill(np.array(caps), need)) == expected


def test_a_score_decides_among_equals_only() -> None:
    def later_is_better(positions: Rows) -> Integers:
        return -positions.astype(np.int64)

    caps = np.array([4, 4, 2, 4])
    assert shown(pack(caps, 4, later_is_better)) == {3: 4}
    assert shown(pack(caps, 2, later_is_better)) == {2: 2}
    assert shown(pack(caps, 6, later_is_better)) == {3: 4, 2: 2}
    assert shown(fill(caps, 1, later_is_better)) == {2: 1}
    assert shown(fill(caps, 5, later_is_better)) == {2: 2, 3: 3}


def test_scores_belong_to_their_positions() -> None:
    asked: list[list[int]] = []

    def score(positions: Rows) -> Integers:
        asked.append(positions.tolist())
        return np.zeros(positions.shape[0], np.int64)

    pack(np.array([1, 1]), 1, score, offset=10)
    assert asked == [[10, 11]]


def two_racks() -> Capacity:
    """Scenario 5: rack r0 has a with 8 and b with 3, rack r1 has c and d with 5."""
    nodes = (("a", 8, "r0"), ("b", 3, "r0"), ("c", 5, "r1"), ("d", 5, "r1"))
    table = table_of(*(node(name, gpus, {RACK: rack}) for name, gpus, rack in nodes))
    return Feasibility(table).capacity(Constraint(), amounts({GPU: 1}), (RACK,))


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (12, {0: 8, 1: 3, 2: 1}),  # r0 is the largest and taken whole
        (11, {0: 8, 1: 3}),
        (21, {0: 8, 1: 3, 2: 5, 3: 5}),
        (16, {0: 8, 1: 3, 2: 5}),
        (10, {2: 5, 3: 5}),  # exactly one rack
        (9, {2: 5, 3: 4}),  # less than the only rack that is needed
    ],
)
def test_descending_takes_few_domains_and_then_few_nodes(
    need: int, expected: dict[int, int]
) -> None:
    assert shown(descend(two_racks(), 0, 4, 0, need, None)) == expected


def test_descending_into_one_rack() -> None:
    capacity = two_racks()
    assert shown(descend(capacity, 2, 4, 1, 9, None)) == {2: 5, 3: 4}
    assert shown(descend(capacity, 0, 2, 1, 3, None)) == {1: 3}
