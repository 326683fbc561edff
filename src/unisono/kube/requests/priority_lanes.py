"""Which request goes next: lanes by importance, a rate, and a bound on what is in flight.

A renewed lease keeps the leader a leader and goes first; events can wait. The API's own wish to be
left alone (429 with Retry-After) stops the lane that it was said to and no other (kube-api.md, 4.2
and 4.4). An API that has enough to do is asked no more at once (`concurrency_limit`): our
requests, and those of all other clients, would only wait in its own queue, where a lease is one
request among many.

    free and within the rate         go at once, nothing is awaited
    a more important one waits       wait to be woken
    only time stands in the way      the first of each lane sleeps so long itself

There is no task in the background: waiting requests keep the time.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import NamedTuple

from unisono.kube.clock import Clock
from unisono.kube.rate_limit import TokenBucket
from unisono.kube.requests.concurrency_limit import MOST_IN_FLIGHT, ConcurrencyLimit

# As Kueue asks a real API server, which copes with it by default.
RATE = 300.0
BURST = 500.0
# An API that has enough to do hears of an event so often, and not for each that there is: they are
# a courtesy, and cost it a quarter of what a decision does.
BUSY_EVENTS_S = 0.2


class Lane(IntEnum):
    """What a request is for; the smaller number goes first."""

    LEASE = 0
    BINDING = 1  # and evictions: they finish what was decided
    NORMAL = 2  # status, reads, everything else
    EVENT = 3


class InFlight(NamedTuple):
    """A request that is out."""

    began: float
    beside: int  # how many were out when it went, itself among them


class Lanes:
    """The gate in front of one API."""

    def __init__(
        self,
        clock: Clock,
        *,
        rate: float = RATE,
        burst: float = BURST,
        most_in_flight: int = MOST_IN_FLIGHT,
    ) -> None:
        """Open the gate; an infinite rate means no limit, as for an API in the same process."""
        self._clock = clock
        self._bucket = None if math.isinf(rate) else TokenBucket(rate=rate, burst=burst)
        self._most = most_in_flight
        self._room = None if math.isinf(rate) else ConcurrencyLimit(most_in_flight)
        self._in_flight = 0
        self._waiting: dict[Lane, deque[asyncio.Event]] = {lane: deque() for lane in Lane}
        self._paused_until: dict[Lane, float] = dict.fromkeys(Lane, 0.0)
        self._last_event = -math.inf

    @property
    def in_flight(self) -> int:
        """How many requests are out."""
        return self._in_flight

    def waiting(self, lane: Lane) -> int:
        """How many requests of a lane wait for their turn."""
        return len(self._waiting[lane])

    def pause(self, lane: Lane, seconds: float) -> None:
        """Let nothing of this lane out for a while."""
        until = self._clock.monotonic() + seconds
        self._paused_until[lane] = max(self._paused_until[lane], until)

    @asynccontextmanager
    async def turn(self, lane: Lane) -> AsyncIterator[InFlight]:
        """Wait for a turn; it lasts as long as the context."""
        await self._enter(lane)
        try:
            yield InFlight(self._clock.monotonic(), self._in_flight)
        finally:
            self._in_flight -= 1
            self._wake_first()

    def answered(self, turn: InFlight, sort: str) -> None:
        """Hear that the API did what it was asked for.

        Requests of one sort take the same time if none waits. A refusal is quicker.
        """
        if self._room is not None:
            now = self._clock.monotonic()
            # Of many that go and come together, the first went alone and the last comes alone.
            beside = max(turn.beside, self._in_flight)
            self._room.learn(sort, now - turn.began, beside, now)

    @property
    def _most_now(self) -> float:
        return self._most if self._room is None else self._room.size

    async def _enter(self, lane: Lane) -> None:
        line = self._waiting[lane]
        bell = asyncio.Event()
        line.append(bell)
        try:
            while (delay := self._delay(lane, bell)) != 0.0:
                if delay is None:
                    bell.clear()
                    await bell.wait()
                else:
                    # Never shorter than a tick, or rounding could make this spin.
                    await self._clock.sleep(max(delay, 0.001))
            if self._bucket is not None:
                self._bucket.take(self._clock.monotonic())
            if lane is Lane.EVENT:
                self._last_event = self._clock.monotonic()
            self._in_flight += 1
        finally:
            line.remove(bell)
            self._wake_first()

    def _delay(self, lane: Lane, bell: asyncio.Event) -> float | None:
        """Return how long to sleep if only time is in the way; None if another request is."""
        now = self._clock.monotonic()
        if self._waiting[lane][0] is not bell:
            return None
        paused = self._paused_until[lane] - now
        if paused > 0:
            return paused
        if self._in_flight >= self._most_now and lane is not Lane.LEASE:
            return None
        for better in Lane:
            if better == lane:
                break
            if self._waiting[better] and self._paused_until[better] <= now:
                return None
        if lane is Lane.EVENT and self._room is not None and self._room.is_busy:
            rest = self._last_event + BUSY_EVENTS_S - now
            if rest > 0:
                return rest
        return self._bucket.wait(now) if self._bucket is not None else 0.0

    def _wake_first(self) -> None:
        """Let the first of every lane look again whether it is its turn."""
        for line in self._waiting.values():
            if line:
                line[0].set()
