"""What several demands ask for together: where is that much free? (Spec placement §8.4.)

A domain may hold each of several demands alone and yet not all of them. Whether it has the sum of
what they ask for can be told without placing anybody. GPUs are what is short, so they are compared
for all domains at once; other resources only where somebody is about to be placed.
"""

from __future__ import annotations

import numpy as np

from unisono.engine.model.names import ResourceName
from unisono.engine.model.resources import is_gpu
from unisono.engine.placement.demand import Demand
from unisono.engine.placement.feasible import Feasibility, Mask
from unisono.engine.placement.views import View
from unisono.engine.state.node_table import Rows


class Together:
    """The sum of what a group of demands needs, resource by resource."""

    def __init__(self, group: tuple[Demand, ...], feasibility: Feasibility, view: View) -> None:
        self._feasibility = feasibility
        self._view = view
        self._gpus: dict[ResourceName, int] = {}
        self._others: dict[ResourceName, int] = {}
        for demand in group:
            for resource, amount in demand.requests:
                # What no node has is left to the demand that wants it.
                if amount and demand.least and feasibility.table.column(resource) is not None:
                    totals = self._gpus if is_gpu(resource) else self._others
                    totals[resource] = totals.get(resource, 0) + amount * demand.least

    def on_nodes(self, nodes: Rows) -> Mask:
        """Say for single nodes (by position) whether they have enough of everything."""
        table, rows = self._feasibility.table, self._view.rows[nodes]
        enough = np.ones(nodes.shape[0], np.bool_)
        for resource, total in (*self._gpus.items(), *self._others.items()):
            enough &= table.free_of(table.resources[resource])[rows] >= total
        return enough

    def gpus_in(self, domains: Rows, level: int) -> Mask:
        """Say for domains whether they have enough GPUs."""
        return self._enough(self._gpus, domains, level)

    def others_in(self, domains: Rows, level: int) -> Mask:
        """Say for domains whether they have enough of everything else."""
        return self._enough(self._others, domains, level)

    def others_within(self, low: int, high: int) -> bool:
        """Say whether positions [low, high) have enough of everything else."""
        table, rows = self._feasibility.table, self._view.rows[low:high]
        return all(
            int(np.maximum(table.free_of(table.resources[resource])[rows], 0).sum()) >= total
            for resource, total in self._others.items()
        )

    def _enough(self, totals: dict[ResourceName, int], domains: Rows, level: int) -> Mask:
        enough = np.ones(domains.shape[0], np.bool_)
        for resource, total in totals.items():
            free = self._feasibility.free(resource, self._view.keys)
            enough &= free.sums[level][domains] >= total
        return enough
