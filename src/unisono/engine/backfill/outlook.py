"""Nodes as they will be: the placer on another picture of what is free.

The picture is a whole array of free amounts, as the node table has it. Only rows that differ from
the last picture count as changed, so that what the placer remembers about nodes stays in use.
"""

from __future__ import annotations

import copy
from typing import cast

import numpy as np

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.placement.gang import Gang, PodSetPlacement
from unisono.engine.placement.placement import ClusterPlacement, placement_of
from unisono.engine.state.change_journal import Journal
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.tenancy import parts_of, take
from unisono.engine.state.tenant import Tenant


class Outlook:
    """Places gangs on nodes at another time."""

    def __init__(self, placement: ClusterPlacement) -> None:
        self._placement = placement
        self._table: NodeTable | None = None
        self._feasibility: Feasibility | None = None

    def place(self, gang: Gang, free: Integers) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
        """Find nodes for a gang, given what is free."""
        return self._placement.placer_on(self._at(free)).place(gang)

    def _at(self, free: Integers) -> Feasibility:
        """Show what is free then."""
        now, table, feasibility = self._placement.nodes.table, self._table, self._feasibility
        if (
            table is None
            or feasibility is None
            or table.layout != now.layout
            or table.allocatable is not now.allocatable
        ):
            table = self._table = copy.copy(now)
            table.free, table.usage = free, Journal()
            feasibility = self._feasibility = Feasibility(table)
        else:
            changed = np.flatnonzero((table.free != free).any(axis=0))
            if changed.shape[0]:
                table.usage.note(changed)
        table.free = free
        return feasibility


def outlook_of(state: ClusterState) -> Outlook:
    """Return the placer on other pictures, with what it remembers about nodes."""
    known = state.derived.get(Outlook)
    if known is None:
        known = state.derived[Outlook] = Outlook(placement_of(state))
    return cast("Outlook", known)


def without(free: Integers, tenants: tuple[Tenant, ...], table: NodeTable) -> Integers:
    """Return what is left once tenants, whose rows are known, sit there too."""
    left = free.copy()
    for tenant in tenants:
        for column, amount in table.columns_of(tenant.requests):
            left[column, tenant.rows] -= tenant.counts * amount
        if (parts := parts_of(table, tenant)) is not None:
            take(table, parts, left)
    return left
