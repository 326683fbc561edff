"""Who came and went again makes no difference, whoever came and went meanwhile."""

from __future__ import annotations

import random

import numpy as np
import pytest

from unisono.engine.state.move import Columns, Integers, Move, Rows, without_visits

NODES = 5
CPU: Columns = ((0, 1000),)
BOTH: Columns = ((0, 500), (1, 2))


def _sums(moves: list[tuple[Rows, Move]]) -> Integers:
    """Write moves down one by one."""
    free: Integers = np.zeros((2, NODES), np.int64)
    for rows, move in moves:
        sign = 1 if move.pods > 0 else -1
        for column, amount in move.columns:
            np.add.at(free[column], rows, sign * amount * move.counts)
    return free


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_out_adds_up_to_nothing(seed: int) -> None:
    chance = random.Random(seed)
    shared = np.array([0], np.intp), np.array([2], np.int64)  # as on a cluster of one node
    there: list[tuple[Rows, Integers, Columns]] = []
    moves: list[tuple[Rows, Move]] = []
    for _ in range(200):
        if there and chance.random() < 0.5:
            rows, counts, columns = there.pop(chance.randrange(len(there)))
            moves.append((rows, Move(columns, counts, int(counts.sum()))))
            continue
        rows, counts = shared
        if chance.random() < 0.7:
            rows = np.array(chance.sample(range(NODES), 2), np.intp)
            counts = np.array([1, chance.randint(1, 3)], np.int64)
        columns = chance.choice((CPU, BOTH))
        there.append((rows, counts, columns))
        moves.append((rows, Move(columns, counts, -int(counts.sum()))))
    left = without_visits(moves)
    assert len(left) == len(there)
    assert _sums(left).tolist() == _sums(moves).tolist()


def test_who_leaves_was_there_before() -> None:
    rows, counts = np.array([1], np.intp), np.array([1], np.int64)
    goes, comes = Move(CPU, counts, 1), Move(CPU, counts, -1)
    assert without_visits([(rows, goes), (rows, comes)]) == [(rows, goes), (rows, comes)]
    assert without_visits([(rows, comes), (rows, goes)]) == []
