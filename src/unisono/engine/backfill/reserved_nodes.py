"""Reserved nodes: on which nodes reservations would start, for display only (spec backfill §6).

Where reservations have nodes of their own (`node_capacity`) these are recorded. Where pods are only
counted (`slot_capacity`) any nodes will do: then time is gone through once, in the order of starts,
and each takes nodes that are free by then. Nothing is kept free because of it: users see it in
`squeue --start`, and no decision reads it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from unisono.engine.backfill.counted_gang import CountedGang
from unisono.engine.backfill.future_placement import free_after, free_beside
from unisono.engine.backfill.intervals import End
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import BackfillReservation
from unisono.engine.placement.packing import pack
from unisono.engine.placement.placement import ClusterPlacement
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.transaction import Booked


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
