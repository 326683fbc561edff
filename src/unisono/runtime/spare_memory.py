"""Memory that is free again goes back to the system, once the work that needed it is done.

A list of ten thousand pods takes tens of megabytes for a moment. The C library keeps what was freed
in between, in case it is wanted again; a cluster on a laptop rather has it back.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import Awaitable, Callable

LOOK_SECONDS = 1.0
WORKED_SECONDS = 0.1  # of processor time: less than that leaves little behind
RESTING_SHARE = 0.2  # of one core


def give_back() -> None:
    """Hand free memory back; other C libraries than glibc have other habits, and need no call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def give_back_when_idle(
    give_back: Callable[[], None] = give_back,
    spent: Callable[[], float] = time.process_time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Look from time to time whether the process rests after some work; never returns."""
    given_back = last = spent()
    while True:
        await sleep(LOOK_SECONDS)
        now = spent()
        is_resting = now - last < RESTING_SHARE * LOOK_SECONDS
        if is_resting and now - given_back > WORKED_SECONDS:
            give_back()
            now = given_back = spent()
        last = now
