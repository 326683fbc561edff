"""Excluded nodes: those that an advance reservation keeps for others while a workload would run.

They are compared by identity, so that a mask of a hundred thousand nodes costs no more to look up
than one of two: there has to be one object for each set of nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unisono.engine.model.names import NodeName
from unisono.engine.state.node_table import NodeTable


class ExcludedNodes:
    """Nodes that a workload must not use, by name."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: frozenset[NodeName] | None) -> None:
        self.nodes = nodes  # None: all of them

    def rows(self, table: NodeTable) -> NDArray[np.bool_]:
        """Say for every row of a table whether it is excluded."""
        if self.nodes is None:
            return np.ones(len(table), np.bool_)
        found = np.zeros(len(table), np.bool_)
        rows = [table.row_of[name] for name in self.nodes if name in table.row_of]
        found[rows] = True
        return found
