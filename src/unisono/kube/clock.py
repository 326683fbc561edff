"""Time, as it is handed in: three calls, and what can be built from them.

The real clock lives in `cli`; tests and simulations pass one that jumps. Everything in this package
that waits does so through `Clock.sleep`, so virtual time reaches every back-off and every deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Where time comes from, in seconds."""

    def now(self) -> float:
        """The time since 1970, which never goes back: for what is written and what others wrote."""

    def monotonic(self) -> float:
        """A time that never jumps: for everything that is measured."""

    async def sleep(self, seconds: float) -> None:
        """Come back after so many seconds of `monotonic`."""


# How fast time goes on while the wall clock is behind. Half speed keeps every deadline and decay
# moving and is back in step after twice the jump; standing still would stop them for as long as the
# jump was, and full speed would never come back in step.
_SPEED_WHEN_AHEAD = 0.5


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

    def ahead(self) -> float:
        """Return by how many seconds this is ahead of the wall clock."""
        return self.now() - self._wall()


async def guarded(guard: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T:
    """Do the work while a guard looks on; if the guard raises, the work is cancelled.

    Exceptions come out as they were raised, not in a group: whoever calls this has one thing going
    on and wants one reason why it ended.
    """
    try:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(guard)
            try:
                return await work
            finally:
                watching.cancel()
    except BaseExceptionGroup as several:
        first = several.exceptions[0]
        raise first from first.__cause__


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Do the work, but raise TimeoutError when it takes longer than so many seconds."""

    async def alarm() -> None:
        await clock.sleep(seconds)
        raise TimeoutError(f"nothing came of it within {seconds:g} s")

    return await guarded(alarm(), work)
