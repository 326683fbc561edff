"""The recent past of one kind: what a watch reads, from wherever it left off.

Nobody queues events for a watcher. It keeps the version it has seen and reads on from there; one
that falls behind the kept past has lost its place and is told so. A slow watcher thus costs
nothing and delays nobody.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter

from unisono.apiserver.storage.fan import Fan, Wake
from unisono.apiserver.storage.record import Change

_RV = attrgetter("rv")


class History:
    """Changes of one kind, oldest first, and who waits for the next.

    Who watches from outside is woken by the fan; our own controllers wait in `near` and are woken
    at once, which costs next to nothing.
    """

    __slots__ = ("_changes", "fan", "floor", "near", "size")

    def __init__(self, floor: int) -> None:
        """Begin with nothing known about versions up to `floor`."""
        self.floor = floor  # changes after this version are all here
        self.size = 0  # bytes of the objects held
        self._changes: list[Change] = []
        self.fan = Fan()
        self.near: dict[Wake, None] = {}

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

    def after(self, rv: int, most_bytes: int | None = None) -> list[Change]:
        """Return the changes since a version, which must not be older than the floor.

        With `most_bytes` the list ends with the change whose object goes beyond that.
        """
        changes = self._changes
        if not changes or changes[-1].rv <= rv:
            return []
        start = bisect_right(changes, rv, key=_RV)
        if most_bytes is None:
            return changes[start:]
        end, size = start, 0
        while end < len(changes) and size < most_bytes:
            size += len(changes[end].record.data)
            end += 1
        return changes[start:end]

    def wake(self) -> None:
        """Tell everybody who waits that there is something to read."""
        for wake in tuple(self.near):
            wake()
        self.fan.beat()
