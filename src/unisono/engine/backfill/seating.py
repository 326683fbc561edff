"""Seats: on which nodes those would sit who have dates, for people who ask (spec time §6).

Where dates have nodes of their own (`node_capacity`) these are taken down. Where pods are counted
(`slot_capacity`) any nodes will do, so time is gone through once, date by date, and everybody takes
nodes that are free by then. Nothing is kept because of it: it is what people see, not a promise.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from unisono.engine.backfill.counted_gang import CountedGang
from unisono.engine.backfill.future_placement import free_after, free_beside
from unisono.engine.backfill.intervals import End
from unisono.engine.model.names import Instant, NodeName, WorkloadKey
from unisono.engine.model.plan import Date
from unisono.engine.placement.packing import pack
from unisono.engine.placement.placement import ClusterPlacement
from unisono.engine.state.placed_pods import PlacedPods
from unisono.engine.state.transaction import Booked


@dataclass(slots=True)
class _Sitting:
    """Somebody who sits, until somebody else may."""

    charges: tuple[()]
    placed_pods: tuple[PlacedPods, ...]


@dataclass(slots=True)
class Seats:
    """Takes down who sits where, and finds seats for those who were only counted."""

    placement: ClusterPlacement
    _ends: list[tuple[Instant, int, Booked]] = field(default_factory=list)
    _starting: list[Booked] = field(default_factory=list)
    _seated: dict[WorkloadKey, tuple[PlacedPods, ...]] = field(default_factory=dict)
    _counted: list[tuple[Date, CountedGang]] = field(default_factory=list)

    def begin(self, ends: Sequence[End]) -> None:
        """Hear who is there, and until when."""
        self._ends.extend(ends)

    def start(self, end: Instant, booked: Booked) -> None:
        """Hear who starts now, and until when it stays."""
        self._starting.append(booked)
        self._ends.append((end, 0, booked))

    def sit(self, date: Date, placed_pods: tuple[PlacedPods, ...]) -> None:
        """Hear on which nodes somebody has a date."""
        self._seated[date.workload] = placed_pods

    def count(self, date: Date, counted: CountedGang) -> None:
        """Hear that somebody has a date on any nodes."""
        self._counted.append((date, counted))

    def found(self) -> dict[WorkloadKey, tuple[NodeName, ...]]:
        """Return the nodes of everybody for whom there are any to name."""
        names = self.placement.nodes.table.names
        made = {
            key: tuple(name for placed in placed_pods for name in names(placed.rows))
            for key, placed_pods in self._seated.items()
        }
        made.update((key, tuple(names(placed.rows))) for key, placed in self._in_time())
        return made

    def _in_time(self) -> Iterator[tuple[WorkloadKey, PlacedPods]]:
        """Yield seats for those who were counted, whoever starts first first."""
        table = self.placement.nodes.table
        free = table.free
        for booked in self._starting:
            free = free_beside(free, booked.placed_pods, table)
        ends = [(end, number, booked) for number, (end, _, booked) in enumerate(self._ends)]
        heapq.heapify(ends)
        in_turn = sorted(self._counted, key=lambda pair: _turn(pair[0]))
        for number, (date, counted) in enumerate(in_turn, start=len(ends)):  # it ends every tie
            gone = []
            while ends and ends[0][0] <= date.start:
                gone.append(heapq.heappop(ends)[2])
            free = free_after(free, gone, table)
            order = self.placement.in_order(counted.levels)
            room = counted.pods_per_node(free)[order]
            if int(room.sum()) < counted.pods:
                continue  # somebody before it sits otherwise than was counted
            positions, counts = pack(room, counted.pods)
            placed = PlacedPods((), counted.requests, rows=order[positions], counts=counts)
            free = free_beside(free, (placed,), table)
            heapq.heappush(ends, (date.end, number, _Sitting((), (placed,))))
            yield date.workload, placed


def _turn(date: Date) -> tuple[Instant, WorkloadKey]:
    return date.start, date.workload
