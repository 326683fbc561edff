"""A loop whose time jumps: when nothing is left to do, it is as late as the next thing to do.

Everything that sleeps does so at once and in order, so hours of watching take milliseconds and two
runs are the same; what would go to a thread is done on the spot. A loop with nothing left to do and
nothing to wait for is a mistake and says so.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from unisono.kinds.overriding import override

T = TypeVar("T")

START = 1_800_000_000.0  # a time in 2027


class _Jumping(selectors.SelectSelector):
    """A selector that never waits: it lets the time pass instead."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    @override
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("every task waits for another")
            self.time += max(timeout, 0.0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    @override
    def time(self) -> float:
        return self._jumping.time

    @override
    def run_in_executor(  # type: ignore[override]  # typeshed has TypeVarTuples that we do not need
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Do the work at once: a thread would take real time, an unknown amount of it."""
        done = self.create_future()
        done.set_result(func(*args))
        return done


class VirtualClock:
    """The clock of whichever loop runs."""

    def now(self) -> float:
        return START + self.monotonic()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, from second 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


async def settle() -> None:
    """Run all tasks until each waits for time or for another."""
    # Time passes only when nothing else is left to do, however little of it.
    await asyncio.sleep(1e-6)
