"""Time, as it is handed in: three calls, and what can be built from them.

The real clock lives in `runtime`; tests and simulations pass one that jumps. Everything in this
package that waits does so through `Clock.sleep`, so virtual time reaches every back-off and every
deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
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


async def guarded(guard: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T]) -> T:
    """Do the work while a guard looks on; if the guard raises, the work is cancelled.

    Exceptions come out as they were raised, not in a group: the caller has one thing going
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
