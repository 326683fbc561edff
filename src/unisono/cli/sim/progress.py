"""The progress of a simulation, as one line that is redrawn on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

WIDTH = 24
# Before so much is done, the remaining time cannot be estimated.
LEAST_PERCENT = 3


def progress(policy: str) -> Callable[[int, int], None] | None:
    """Return a function that shows the progress, if stderr is a terminal."""
    from unisono.runtime.clock import RealClock

    if not sys.stderr.isatty():
        return None
    clock = RealClock()
    began = clock.monotonic()
    is_plain = not (sys.stderr.encoding or "").lower().startswith("utf")
    shown = -1

    def tell(done: int, count: int) -> None:
        nonlocal shown
        percent = done * 100 // max(1, count)
        if percent == shown:
            return
        shown = percent
        text = line(policy, done, count, clock.monotonic() - began, is_plain=is_plain)
        # To the end of the line: what stood there before may have been longer.
        end = "\033[K\n" if done == count else "\033[K"
        print(f"\r{text}", end=end, file=sys.stderr, flush=True)

    return tell


def line(policy: str, done: int, count: int, seconds: float, *, is_plain: bool = False) -> str:
    """Say how far a simulation is, and how long it still takes if it goes on like that.

    >>> line("easy", 250, 1000, 3.0, is_plain=True)
    'easy          ######------------------  25 % of 1,000 jobs, 9s left'
    >>> line("fifo", 1000, 1000, 62.0, is_plain=True)
    'fifo          ######################## 100 % of 1,000 jobs in 1m2s'
    """
    from unisono.engine.explain.formatting import format_duration

    percent = done * 100 // max(1, count)
    full = WIDTH * done // max(1, count)
    some, none = ("#", "-") if is_plain else ("━", "─")
    told = f"{policy:13} {some * full}{none * (WIDTH - full)} {percent:3} % of {count:,} jobs"
    if done == count:
        return f"{told} in {format_duration(round(seconds) * 1000)}"
    if percent < LEAST_PERCENT:
        return told
    left = seconds * (count - done) / done
    return f"{told}, {format_duration(round(left) * 1000)} left"
