"""Instants that workloads wait for, earliest first. A reminder for one that left is harmless."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from unisono.engine.model.names import Instant, WorkloadKey

NODES = WorkloadKey("")  # a reminder about nodes, and about no workload


class Timers:
    """A heap of reminders."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, WorkloadKey]] = []
        self._count = 0

    def remind(self, instant: Instant, key: WorkloadKey) -> None:
        """Ask to be reminded of a workload."""
        self._count += 1
        heapq.heappush(self._heap, (instant, self._count, key))

    def due(self, now: Instant) -> Iterator[WorkloadKey]:
        """Yield, once each, who was to be looked at by now."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]

    def next(self) -> Instant | None:
        """Return when the next reminder is due."""
        return self._heap[0][0] if self._heap else None
