"""The real clock. Everybody else is handed an instant."""

from __future__ import annotations

import asyncio
import time

from unisono.engine.model.names import Instant


def now() -> Instant:
    """Return the current time in milliseconds since the epoch."""
    return Instant(time.time_ns() // 1_000_000)


def cpu_seconds() -> float:
    """Return how long this process has computed."""
    return time.process_time()


class RealClock:
    """The clock of the world, as `kube.clock.Clock` wants it: in seconds."""

    def now(self) -> float:
        """Return the time since 1970."""
        return time.time_ns() / 1e9

    def monotonic(self) -> float:
        """Return a time that never jumps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Come back after a while."""
        await asyncio.sleep(seconds)


def seconds_now() -> float:
    """Return the time in seconds since 1970."""
    return time.time_ns() / 1e9
