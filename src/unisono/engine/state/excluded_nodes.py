"""A fence: nodes that somebody must keep off, because they are reserved while it would run.

Fences are compared by identity, so that a mask of a hundred thousand nodes costs no more to look up
than one of two; whoever makes them makes one for each set of nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import NodeName
from unisono.engine.state.node_table import NodeTable


class Fence:
    """Nodes that are shut, by name."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: frozenset[NodeName] | None) -> None:
        self.nodes = nodes  # None: all of them

    def shuts(self, table: NodeTable) -> NDArray[np.bool_]:
        """Say for every row of a table whether it is shut."""
        if self.nodes is None:
            return np.ones(len(table), np.bool_)
        shut = np.zeros(len(table), np.bool_)
        rows = [table.row_of[name] for name in self.nodes if name in table.row_of]
        shut[rows] = True
        return shut
