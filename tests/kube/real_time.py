"""The clock of the running loop, in real time: for tests that use sockets."""

from __future__ import annotations

import asyncio
import time


class RealClock:
    """Real seconds."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
