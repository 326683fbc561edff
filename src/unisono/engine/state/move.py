"""A move: pods of one request that came to rows of the node table, or left them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Rows = NDArray[np.intp]
# What one pod takes of which column.
Columns = tuple[tuple[int, int], ...]


class Move:
    """Pods of one request that left rows, or came to rows that had room for them."""

    __slots__ = ("columns", "counts", "pods")

    def __init__(self, columns: Columns, counts: Integers, pods: int) -> None:
        self.columns = columns
        self.counts = counts  # by row
        self.pods = pods  # all of them; negative: they took room


def without_visits(moves: list[tuple[Rows, Move]]) -> list[tuple[Rows, Move]]:
    """Leave out who came and went again: whoever takes rows gives back the very same ones."""
    kept: dict[int, tuple[Rows, Move]] = {}
    came: dict[tuple[int, int, Columns], list[int]] = {}  # by the identity of rows and counts
    for number, entry in enumerate(moves):
        rows, move = entry
        trace = (id(rows), id(move.counts), move.columns)
        there = came.get(trace)
        if move.pods < 0:
            if there is None:
                there = came[trace] = []
            there.append(number)
        elif there:
            del kept[there.pop()]
            continue
        kept[number] = entry
    return [*kept.values()]
