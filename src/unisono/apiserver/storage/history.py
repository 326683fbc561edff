"""The recent past of one kind: what a watch reads, from wherever it left off.

No events are queued for a watcher. It keeps the version it has seen and reads on from there; one
that falls behind the kept past has lost its place and is told so. A slow watcher thus costs
nothing and delays no other.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Hashable
from operator import attrgetter
from time import monotonic

from unisono.apiserver.storage.record import Change

# ---- watchers over HTTP, woken together and not too often ----------------------------------------
#
# Telling a hundred watchers costs milliseconds, most of it in encryption and the kernel, and hardly
# depends on how much there is to tell. So after each round the notifier pauses for twice as long as
# the round took: telling takes a third of the time at most, however many there are, and what was
# committed meanwhile goes out in one piece. A few watchers are told at once, because a round of
# them takes no time.


Wake = Callable[[], None]

_REST = 2  # times what the round took
_LONGEST_REST_SECONDS = 0.015  # watchers shall know within 20 ms
_MOST_RENDERED = 64  # pieces that are kept; watchers of one kind want few different ones


class WatchNotifier:
    """The watchers to be woken, and what was sent in this round."""

    __slots__ = ("_began", "_is_planned", "_rendered", "_rests_until", "_wakes")

    def __init__(self) -> None:
        """Begin without watchers."""
        self._wakes: dict[Wake, None] = {}
        self._rendered: dict[Hashable, bytes] = {}
        self._is_planned = False
        self._began = 0.0
        self._rests_until = 0.0

    def join(self, wake: Wake) -> None:
        """Be woken from now on."""
        self._wakes[wake] = None

    def leave(self, wake: Wake) -> None:
        """Be woken no more."""
        self._wakes.pop(wake, None)

    def notify(self) -> None:
        """There is news: wake all watchers as soon as the pause is over."""
        self._rendered.clear()
        if self._is_planned or not self._wakes:
            return
        self._is_planned = True
        loop = asyncio.get_running_loop()
        rest = self._rests_until - monotonic()
        if rest > 0:
            loop.call_later(rest, self._wake_all)
        else:
            loop.call_soon(self._wake_all)

    def shared(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """Return a piece that is to be sent, made once for all watchers of the same."""
        found = self._rendered.get(key)
        if found is None:
            if len(self._rendered) >= _MOST_RENDERED:
                self._rendered.clear()
            found = self._rendered[key] = make()
        return found

    def _wake_all(self) -> None:
        self._is_planned = False
        self._began = monotonic()
        loop = asyncio.get_running_loop()
        for wake in self._wakes:
            loop.call_soon(wake)
        # The loop writes to sockets between two turns, so the round is over one turn later.
        loop.call_soon(loop.call_soon, self._is_done)

    def _is_done(self) -> None:
        now = monotonic()
        rest = _REST * (now - self._began)
        self._rests_until = now + min(rest, _LONGEST_REST_SECONDS)
        self._rendered.clear()


# ---- --------------------------------------------------------------------------------------------


_RV = attrgetter("rv")


class History:
    """Changes of one kind, oldest first, and the watchers that wait for the next.

    Watchers over HTTP are woken by the notifier; our own controllers wait in `near` and are woken
    at once, which costs next to nothing.
    """

    __slots__ = ("_changes", "complete_after", "near", "watchers")

    def __init__(self, complete_after: int) -> None:
        """Begin with nothing known about versions up to `complete_after`."""
        self.complete_after = complete_after  # changes after this version are all here
        self._changes: list[Change] = []
        self.watchers = WatchNotifier()
        self.near: dict[Wake, None] = {}

    def __len__(self) -> int:
        return len(self._changes)

    def append(self, change: Change) -> None:
        """Take the newest change."""
        self._changes.append(change)

    def forget(self, up_to: int) -> None:
        """Drop the past up to and including a version."""
        keep = bisect_right(self._changes, up_to, key=_RV)
        if keep:
            self.complete_after = self._changes[keep - 1].rv
            del self._changes[:keep]

    def after(self, rv: int, most_bytes: int | None = None) -> list[Change]:
        """Return the changes since a version, which must not be older than the complete_after.

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
        """Tell all watchers that there is something to read."""
        for wake in tuple(self.near):
            wake()
        self.watchers.notify()
