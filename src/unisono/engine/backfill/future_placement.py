"""Placement at another time: the placer on another picture of what is free on nodes.

A picture is a whole array of free amounts, as the node table has it. Only rows that differ from
the last picture count as changed, so that what the placer keeps about nodes stays in use.
`ReservedNodes` says on which nodes reservations would start, for display only.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from unisono.engine.backfill.counted_gang import CountedGang
from unisono.engine.backfill.intervals import End
from unisono.engine.model.explanation import GangDoesNotFit
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.model.resources import Amounts
from unisono.engine.placement.feasibility import Feasibility
from unisono.engine.placement.gang import Gang, PodSetPlacement
from unisono.engine.placement.packing import pack
from unisono.engine.placement.placement import ClusterPlacement, placement_of
from unisono.engine.state.change_journal import Journal
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.node_table import Integers, NodeTable
from unisono.engine.state.occupancy import PlacedPods, give_back, parts_of, take
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


# --- the nodes of reservations, for display -------------------------------------------------------

# On which nodes reservations would start (spec backfill §6). Where reservations have nodes of their
# own (`node_capacity`) these are recorded. Where pods are only counted (`slot_capacity`) any nodes
# will do: then time is gone through once, in the order of starts, and each takes nodes that are
# free by then. Nothing is kept free because of it: users see it in `squeue --start`, and no
# decision reads it.


@dataclass(slots=True)
class _OnNodes:
    """Pods that occupy nodes until an end."""

    charges: tuple[()]
    placed_pods: tuple[PlacedPods, ...]


@dataclass(slots=True)
class ReservedNodes:
    """Records the nodes of reservations, and finds nodes for those that were only counted."""

    placement: ClusterPlacement
    _ends: list[tuple[Instant, int, Booked]] = field(default_factory=list)
    _starting: list[Booked] = field(default_factory=list)
    _on_nodes: dict[WorkloadKey, tuple[PlacedPods, ...]] = field(default_factory=dict)
    _counted: list[tuple[BackfillReservation, CountedGang]] = field(default_factory=list)

    def running(self, ends: Sequence[End]) -> None:
        """Take in what is on nodes, and until when."""
        self._ends.extend(ends)

    def started(self, end: Instant, booked: Booked) -> None:
        """Take in what starts now, and until when it runs."""
        self._starting.append(booked)
        self._ends.append((end, 0, booked))

    def reserved(
        self, reservation: BackfillReservation, placed_pods: tuple[PlacedPods, ...]
    ) -> None:
        """Take in a reservation of certain nodes."""
        self._on_nodes[reservation.workload] = placed_pods

    def counted(self, reservation: BackfillReservation, counted: CountedGang) -> None:
        """Take in a reservation of any nodes."""
        self._counted.append((reservation, counted))

    def by_workload(self) -> dict[WorkloadKey, tuple[NodeName, ...]]:
        """Return the nodes of all reservations that have any to name."""
        names = self.placement.nodes.table.names
        made = {
            key: tuple(name for placed in placed_pods for name in names(placed.rows))
            for key, placed_pods in self._on_nodes.items()
        }
        made.update((key, tuple(names(placed.rows))) for key, placed in self._placed_in_time())
        return made

    def _placed_in_time(self) -> Iterator[tuple[WorkloadKey, PlacedPods]]:
        """Place reservations that were counted, in the order of their starts."""
        table = self.placement.nodes.table
        free = table.free
        for booked in self._starting:
            free = free_beside(free, booked.placed_pods, table)
        ends = [(end, number, booked) for number, (end, _, booked) in enumerate(self._ends)]
        heapq.heapify(ends)
        by_start = sorted(self._counted, key=lambda pair: (pair[0].start, pair[0].workload))
        for number, (reservation, counted) in enumerate(
            by_start, start=len(ends)
        ):  # breaks every tie
            ended = []
            while ends and ends[0][0] <= reservation.start:
                ended.append(heapq.heappop(ends)[2])
            free = free_after(free, ended, table)
            order = self.placement.in_order(counted.levels)
            caps = counted.pods_per_node(free)[order]
            if int(caps.sum()) < counted.pods:
                continue  # an earlier one was placed otherwise than it was counted
            positions, counts = pack(caps, counted.pods)
            placed = PlacedPods((), counted.requests, rows=order[positions], counts=counts)
            free = free_beside(free, (placed,), table)
            heapq.heappush(ends, (reservation.end, number, _OnNodes((), (placed,))))
            yield reservation.workload, placed
