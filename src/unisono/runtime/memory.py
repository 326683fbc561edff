"""The memory of a process that keeps many objects for long: collected seldom, given back when free.

The engine holds hundreds of thousands of small objects and makes hardly any cycles. With Python's
defaults the collector walks them again and again; a drain of 50,000 workloads spends a third of its
time there. What was loaded is frozen, and young objects are looked at a hundred times less often.

A list of ten thousand pods takes tens of megabytes for a moment. The C library keeps what was freed
in between, in case it is wanted again; a cluster on a laptop rather has it back, once the work that
needed it is done.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Awaitable, Callable

YOUNG_OBJECTS = 70_000  # Python's default is 700
LOOK_SECONDS = 1.0
WORKED_SECONDS = 0.1  # of processor time: less than that leaves little behind
RESTING_SHARE = 0.2  # of one core


def calm_collector() -> None:
    """Call after loading, and again when what is kept for long is there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)


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
