"""The recent past of one kind: what a watch reads, from wherever it left off.

Nobody queues events for a watcher. It keeps the version it has seen and reads on from there; one
that falls behind the kept past has lost its place and is told so. A slow watcher thus costs
nothing and delays nobody.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from operator import attrgetter

from unisono.apiserver.storage.record import Change

_RV = attrgetter("rv")


class History:
    """Changes of one kind, oldest first, and who waits for the next."""

    __slots__ = ("_changes", "_waiters", "floor", "size")

    def __init__(self, floor: int) -> None:
        """Begin with nothing known about versions up to `floor`."""
        self.floor = floor  # changes after this version are all here
        self.size = 0  # bytes of the objects held
        self._changes: list[Change] = []
        self._waiters: list[asyncio.Future[None]] = []

    def __len__(self) -> int:
        return len(self._changes)

    def append(self, change: Change) -> None:
        """Take the newest change."""
        self._changes.append(change)
        self.size += len(change.record.data)

    def forget(self, up_to: int) -> None:
        """Drop the past up to and including a version."""
        keep = bisect_right(self._changes, up_to, key=_RV)
        if keep:
            self.floor = self._changes[keep - 1].rv
            self.size -= sum(len(change.record.data) for change in self._changes[:keep])
            del self._changes[:keep]

    def after(self, rv: int) -> list[Change]:
        """Return the changes since a version, which must not be older than the floor."""
        changes = self._changes
        if not changes or changes[-1].rv <= rv:
            return []
        return changes[bisect_right(changes, rv, key=_RV) :]

    def wake(self) -> None:
        """Tell everybody who waits that there is something to read."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        """Wait for the next change."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if not waiter.done() or waiter.cancelled():
                self._waiters = [one for one in self._waiters if one is not waiter]
