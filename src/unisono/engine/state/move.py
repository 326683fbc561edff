"""A move: pods of one request that came to rows of the node table, or left them."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Rows = NDArray[np.intp]
# What one pod takes of which column.
Columns = tuple[tuple[int, int], ...]


class Move(msgspec.Struct, frozen=True, gc=False):
    """Pods of one request that left rows, or came to rows that had room for them."""

    columns: Columns
    counts: Integers  # by row
    pods: int  # all of them; negative: they took room
