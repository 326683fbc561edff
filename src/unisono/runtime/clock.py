"""The real clock, the only one of a process: every part of it agrees what time it is.

It never goes back (`SteadyTime`). Everything else is handed an instant or this clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from unisono.engine.model.names import Instant

# How fast time goes on while the wall clock is behind. Half speed keeps every deadline and decay
# moving and is back in step after twice the jump; standing still would stop them for as long as the
# jump was, and full speed would never come back in step.
_SPEED_WHEN_AHEAD = 0.5
_FURTHEST_AHEAD = 86_400.0


class SteadyTime:
    """The wall clock, except that it never goes back.

    A clock that is set forward (NTP, a machine that slept) is followed at once: the time has
    passed, or was wrong before. One that is set back is not: what was measured by it would be
    undone, and new objects would seem older than those that wait. Time then goes on at half speed
    until the wall clock has caught up.

    >>> wall, elapsed = 1000.0, 0.0
    >>> steady = SteadyTime(lambda: wall, lambda: elapsed)
    >>> steady.now()
    1000.0
    >>> wall, elapsed = 402.0, 2.0  # two seconds later, ten minutes earlier
    >>> steady.now()
    1001.0
    >>> wall, elapsed = 1700.0, 1300.0
    >>> steady.now()
    1700.0
    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Take the two clocks of a machine."""
        self._wall = wall
        self._monotonic = monotonic
        self._now = wall()
        self._at = monotonic()

    def now(self) -> float:
        """Return the time since 1970."""
        at = self._monotonic()
        slow = self._now + (at - self._at) * _SPEED_WHEN_AHEAD
        self._at = at
        self._now = max(self._wall(), slow)
        return self._now

    def resume_from(self, at: float) -> None:
        """Go on from what was written last, if the process before this one was ahead.

        Otherwise a restart would be a clock that is set back: an hour longer until what has a
        deadline. More than a day ahead was never right, and a restart is the way out of it.

        >>> steady = SteadyTime(lambda: 1000.0, lambda: 0.0)
        >>> steady.resume_from(1060.0)
        >>> steady.now()
        1060.0
        >>> steady.resume_from(1000.0 + 90_000)
        >>> steady.now()
        1060.0
        """
        if self.now() < at <= self._wall() + _FURTHEST_AHEAD:
            self._now = at

    def ahead(self) -> float:
        """Return by how many seconds this is ahead of the wall clock."""
        return self.now() - self._wall()


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

    def resume_from(self, at: float) -> None:
        """Go on from what the process before this one wrote (`SteadyTime.resume_from`)."""
        _STEADY.resume_from(at)

    def monotonic(self) -> float:
        """Return a time that never jumps."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Come back after a while."""
        await asyncio.sleep(seconds)


def seconds_now() -> float:
    """Return the time in seconds since 1970."""
    return _STEADY.now()
