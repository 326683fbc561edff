"""Which request goes next: lanes by importance, a rate, and a bound on what is in flight.

A renewed lease keeps the leader a leader and goes first; events can wait. The API's own wish to be
left alone (429 with Retry-After) stops the lane that it was said to and no other (kube-api.md, 4.2
and 4.4). An API that has enough to do is asked no more at once (`ConcurrencyLimit`): our
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

# As Kueue asks a real API server, which copes with it by default.
RATE = 300.0
BURST = 500.0
# An API that has enough to do hears of an event so often, and not for each that there is: they are
# a courtesy, and cost it a quarter of what a decision does.
BUSY_EVENTS_S = 0.2
# Each holds a connection and a coroutine.
MOST_IN_FLIGHT = 64
# However slow it is: enough that its answers, and not our waiting for them, set the pace.
LEAST_IN_FLIGHT = 4
# Before anything is known.
FIRST_IN_FLIGHT = 16


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


# ---- concurrency limit ---------------------------------------------------------------------------
#
# How many requests may be out at once, learned from how long their answers take.
#
# An API server with two processors answers no more in a second when it is asked sixty things at
# once than when it is asked four: the others wait inside it, and the requests of other clients,
# whose answers we wait for, wait behind them. One that is far away, or has many processors, has to
# be asked much at once. It need not be configured (the idea is that of TCP Vegas):
#
#     quickest        how long an answer of this sort takes when no request waits
#     took            how long it took this time, with so many of ours beside it
#     queued          beside x (1 - quickest / took): so many of ours queued in the server
#
# With fewer than two queued there is room for more; more than four gain nothing.

_TOO_FEW_IN_LINE = 2.0
_TOO_MANY_IN_LINE = 4.0
# One answer may be slow or quick by chance; four that agree count for one request.
_STEP = 0.25
# How much of what is known of the line each answer changes.
_WEIGHT = 0.1
# A server that became slower for good is believed after a while: what is known of quick answers
# doubles in so many seconds.
_DOUBLES_S = 600.0
# Methods and resources: far more than there are.
_MOST_SORTS = 512


class ConcurrencyLimit:
    """Learns from answers; pure, the time comes in."""

    __slots__ = ("_in_line", "_least", "_most", "_quickest", "size")

    def __init__(self, most: int = MOST_IN_FLIGHT) -> None:
        """Know nothing yet."""
        self._most = float(most)
        self._least = float(min(most, LEAST_IN_FLIGHT))
        self.size = float(min(most, FIRST_IN_FLIGHT))
        self._in_line = 0.0
        self._quickest: dict[str, tuple[float, float]] = {}  # by sort: when it was told, and how

    def learn(self, sort: str, took_s: float, beside: int, now: float) -> None:
        """Hear how long an answer took, with how many requests of ours out, itself among them."""
        quickest = self._quickest_of(sort, took_s, now)
        in_line = beside * (1.0 - quickest / took_s) if took_s > 0.0 else 0.0
        self._in_line += _WEIGHT * (in_line - self._in_line)
        if in_line > _TOO_MANY_IN_LINE:
            self.size = max(self._least, self.size - _STEP)
        elif in_line < _TOO_FEW_IN_LINE and 2 * beside > self.size:  # it was made use of
            self.size = min(self._most, self.size + _STEP)

    @property
    def is_busy(self) -> bool:
        """Whether the API has enough to do with what it is asked already."""
        return self._in_line > _TOO_FEW_IN_LINE

    def _quickest_of(self, sort: str, took_s: float, now: float) -> float:
        known = self._quickest.get(sort)
        if known is not None:
            at, quickest = known
            quickest *= math.pow(2.0, (now - at) / _DOUBLES_S)
            if quickest < took_s:
                return quickest
        if len(self._quickest) >= _MOST_SORTS:
            self._quickest.clear()
        self._quickest[sort] = now, took_s
        return took_s
