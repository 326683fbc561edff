"""A clock that moves only when all controllers have done what there was to do.

`time` only grows, and is what `monotonic` tells. The clock on the wall (`now`) is ahead of it or
behind, and jumps when it is set. The API and people go by the wall, as those of a real
cluster do. A process of ours has a `SteadyClock`: until it dies, its time never goes back.
"""

from __future__ import annotations

import asyncio
import heapq

from unisono.runtime.clock import SteadyTime

START = 1_700_000_000.0


class SteppedClock:
    """Time for controllers and clients (`kube.clock.Clock`); `move` wakes sleepers."""

    def __init__(self) -> None:
        self.time = START
        self._ahead = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0

    def now(self) -> float:
        return self.time + self._ahead

    def set_ahead(self, seconds: float) -> None:
        """Set the clock on the wall; nothing that is measured notices."""
        self._ahead = seconds

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + max(seconds, 0.0), self._count, woken))
        await woken

    def next_due(self) -> float | None:
        """Return when the next sleeper wakes; sleepers of dead processes are forgotten."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def move(self, time: float) -> None:
        """Move on to a time and wake the sleepers that waited for it."""
        self.time = max(self.time, time)
        while (due := self.next_due()) is not None and due <= self.time:
            heapq.heappop(self._sleepers)[2].set_result(None)


class SteadyClock:
    """The clock of one life of a process, as `runtime.clock.RealClock` is one."""

    def __init__(self, machine: SteppedClock) -> None:
        self._machine = machine
        self._steady = SteadyTime(machine.now, machine.monotonic)

    def now(self) -> float:
        return self._steady.now()

    def resume_from(self, at: float) -> None:
        self._steady.resume_from(at)

    def monotonic(self) -> float:
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._machine.sleep(seconds)
