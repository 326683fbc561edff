"""Placement at another time: the placer on another picture of what is free on nodes.

A picture is a whole array of free amounts, as the node table has it. Only rows that differ from
the last picture count as changed, so that what the placer keeps about nodes stays in use.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import cast

import numpy as np

from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.resources import Amounts
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.placement.gang import Gang, PodSetPlacement
from unisono.engine.placement.placement import ClusterPlacement, placement_of
from unisono.engine.state.change_journal import Journal
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.occupancy import give_back, parts_of, take
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.transaction import Booked


class FuturePlacement:
    """Places gangs on nodes as they will be."""

    def __init__(self, placement: ClusterPlacement) -> None:
        self._placement = placement
        self._table: NodeTable | None = None
        self._feasibility: Feasibility | None = None

    def place(self, gang: Gang, free: Integers) -> tuple[PodSetPlacement, ...] | GangDoesNotFit:
        """Find nodes for a gang, given what is free."""
        return self._placement.placer_on(self._feasibility_of(free)).place(gang)

    def _feasibility_of(self, free: Integers) -> Feasibility:
        """Return the feasibility of nodes with so much free."""
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


def future_placement_of(state: ClusterState) -> FuturePlacement:
    """Return the placer on other pictures, with what it keeps about nodes."""
    known = state.derived.get(FuturePlacement)
    if known is None:
        known = state.derived[FuturePlacement] = FuturePlacement(placement_of(state))
    return cast("FuturePlacement", known)


def free_beside(free: Integers, placed_pods: tuple[PlacedPods, ...], table: NodeTable) -> Integers:
    """Return what is left free beside pods whose rows are known."""
    left = free.copy()
    for placed in placed_pods:
        for column, amount in table.columns_of(placed.requests):
            left[column, placed.rows] -= placed.counts * amount
        if (parts := parts_of(table, placed)) is not None:
            take(table, parts, left)
    return left


def free_after(free: Integers, ended: Iterable[Booked], table: NodeTable) -> Integers:
    """Return what is free once these have ended."""
    after = free.copy()
    by_request: dict[Amounts, list[PlacedPods]] = {}
    for booked in ended:
        for placed in booked.placed_pods:
            by_request.setdefault(placed.requests, []).append(placed)
    for requests, placed_pods in by_request.items():
        rows = np.concatenate([placed.rows for placed in placed_pods])
        pods = np.concatenate([placed.counts for placed in placed_pods])
        for column, amount in table.columns_of(requests):
            np.add.at(after[column], rows, pods * amount)
        for placed in placed_pods:
            if (parts := parts_of(table, placed)) is not None:
                give_back(table, parts, after)
    return after
