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

    __slots__ = ("columns", "counts", "pods", "rows")

    def __init__(self, rows: Rows, columns: Columns, counts: Integers, pods: int) -> None:
        self.rows = rows
        self.columns = columns
        self.counts = counts  # by row
        self.pods = pods  # all of them; negative: they took room
