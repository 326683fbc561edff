"""Everybody who watches a kind from outside, woken together and not too often.

Telling a hundred watchers costs milliseconds, most of it in encryption and the kernel, and hardly
depends on how much there is to tell. So after each round the fan rests for twice as long as the
round took: telling takes a third of the time at most, however many there are, and what was
committed meanwhile goes out in one piece. A few watchers are told at once, because a round of
them takes no time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from time import monotonic

Wake = Callable[[], None]

_REST = 2  # times what the round took
_LONGEST_REST_SECONDS = 0.015  # whoever watches shall know within 20 ms
_MOST_TOLD = 64  # pieces that are kept; watchers of one kind want few different ones


class Fan:
    """Who is to be woken, and what they were told in this round."""

    __slots__ = ("_began", "_is_planned", "_rests_until", "_told", "_wakes")

    def __init__(self) -> None:
        """Begin with nobody."""
        self._wakes: dict[Wake, None] = {}
        self._told: dict[Hashable, bytes] = {}
        self._is_planned = False
        self._began = 0.0
        self._rests_until = 0.0

    def join(self, wake: Wake) -> None:
        """Be woken from now on."""
        self._wakes[wake] = None

    def leave(self, wake: Wake) -> None:
        """Be woken no more."""
        self._wakes.pop(wake, None)

    def beat(self) -> None:
        """There is something to tell: wake everybody as soon as the rest is over."""
        self._told.clear()
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
        """Return what somebody is to be told, made once for all who are told the same."""
        found = self._told.get(key)
        if found is None:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            found = self._told[key] = make()
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
        self._told.clear()
