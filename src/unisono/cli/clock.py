"""The real clock, the only one of a process: every part of it agrees what time it is.

It never goes back (`kube.clock.SteadyTime`). Everything else is handed an instant or this clock.
"""

from __future__ import annotations

import asyncio
import time

from unisono.engine.model.names import Instant
from unisono.kube.clock import SteadyTime

_STEADY = SteadyTime(time.time, time.monotonic)


def now() -> Instant:
    """Return the current time in milliseconds since the epoch."""
    return Instant(int(_STEADY.now() * 1000))


def cpu_seconds() -> float:
    """Return how long this process has computed."""
    return time.process_time()


class RealClock:
    """The clock of the world, as `kube.clock.Clock` wants it: in seconds."""

    def now(self) -> float:
        """Return the time since 1970."""
        return _STEADY.now()

    def monotonic(self) -> float:
        """Return a time that never jumps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Come back after a while."""
        await asyncio.sleep(seconds)


def seconds_now() -> float:
    """Return the time in seconds since 1970."""
    return _STEADY.now()


def seconds_ahead() -> float:
    """Return by how many seconds our time is ahead of a wall clock that was set back."""
    return _STEADY.ahead()
