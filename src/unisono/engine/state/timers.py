"""Instants that workloads wait for, earliest first. A reminder for one that left is harmless."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

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

    def is_due(self, now: Instant) -> bool:
        """Say whether a reminder is due."""
        return bool(self._heap) and self._heap[0][0] <= now

    def due(self, now: Instant) -> Iterator[WorkloadKey]:
        """Yield, once each, the workloads whose reminder is due."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[2]

    def all(self) -> tuple[tuple[Instant, WorkloadKey], ...]:
        """Return what is yet to come, once each."""
        return tuple(sorted({(instant, key) for instant, _, key in self._heap}))

    def set_all(self, reminders: Iterable[tuple[Instant, WorkloadKey]]) -> None:
        """Begin with these, as they were when a snapshot was taken."""
        self._heap.clear()
        for instant, key in reminders:
            self.remind(instant, key)

    def next(self) -> Instant | None:
        """Return when the next reminder is due."""
        return self._heap[0][0] if self._heap else None
