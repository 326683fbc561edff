"""Which keys need work: each waits at most once, and has at most one worker.

    add ──▶ waiting (by lane) ──take──▶ in work ──done──▶ forgotten
              ▲                           │ added meanwhile: waiting again after done
              └── due ◀── later (add_after, retry)

Adding a key that waits already changes nothing, except that a better lane wins. A key that is added
while a worker has it is worked on once more afterwards, never at the same time. Failed keys
come back after a delay of their own that doubles (5 ms to 1000 s), and all retries together pass a
bucket of 10 per second (kube-api.md, 4.3).

One key never starves the others. A key that computed for long rests before it is taken again, and
lanes are no absolute order: a key that has waited for a second gets every second turn.

The queue itself is pure: `now` comes in, and a test takes keys by hand. `Workers` is the loop.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from unisono.kube.clock import Clock, guarded
from unisono.kube.rate_limit import Backoff, TokenBucket

K = TypeVar("K", bound=Hashable)

RETRIES = Backoff(first_s=0.005, most_s=1000.0)
RETRY_RATE = 10.0
RETRY_BURST = 100.0
# Thousands of keys that fail at once must not put off the retry of one that failed by chance for
# longer than this; after that their own delays have grown past it.
MOST_SHARED_DELAY_S = 5.0
# A key that computed for long rests so many times as long, so that one huge object (a Job with a
# million completions changes all the time) gets a tenth of the event loop at most. Shorter work is
# not worth a timer.
REST_FACTOR = 9.0
LEAST_COMPUTED_S = 0.02
# Resting keys whose time is over are dropped when there are more than this.
_MOST_RESTING = 1024
# A key in a worse lane that waits longer than this shares the turns with better lanes.
LANE_PATIENCE_S = 1.0
# A wall clock that gains more than this between two looks was set, or the machine slept; less is
# how clocks are kept right.
LEAST_JUMP_S = 1.0
# So often it is looked at, whatever is due.
LONGEST_SLEEP_S = 30.0


@dataclass(slots=True)
class Measures:
    """What happened so far, in counts and seconds, for metrics."""

    added: int = 0
    retries: int = 0
    done: int = 0
    waited_s: float = 0.0  # sum over all keys taken
    longest_wait_s: float = 0.0
    worked_s: float = 0.0


class WorkQueue(Generic[K]):
    """The line of keys; lanes are served in order, lane 0 first."""

    def __init__(self, *, lanes: int = 1, random_source: random.Random | None = None) -> None:
        """Make an empty queue."""
        self._lines: tuple[deque[K], ...] = tuple(deque() for _ in range(lanes))
        self._waiting: dict[K, tuple[int, float]] = {}  # lane, since when
        self._in_work: dict[K, float] = {}  # since when
        self._again: dict[K, int] = {}  # added while in work: lane
        self._computed: dict[K, float] = {}  # seconds, of keys in work
        self._resting: dict[K, float] = {}  # until when
        self._was_overdue = False  # the last turn went to a key that had waited too long
        self._later: list[tuple[float, int, K, int]] = []  # due, number, key, lane
        self._due: dict[K, float] = {}  # the earliest time in `_later` that still counts
        self._number = 0  # ties are broken by arrival
        self._ahead: float | None = None  # by how much the wall clock is, of what we measure by
        self._failures: dict[K, int] = {}
        self._bucket = TokenBucket(rate=RETRY_RATE, burst=RETRY_BURST)
        self._random_source = random_source if random_source is not None else random.Random(0)
        self.measures = Measures()
        self.on_change: Callable[[], None] = _nothing

    def __len__(self) -> int:
        """How many keys wait for a worker now."""
        return len(self._waiting)

    @property
    def in_work(self) -> int:
        """How many keys are being worked on."""
        return len(self._in_work)

    @property
    def postponed(self) -> int:
        """How many keys wait for their time."""
        return len(self._due)

    def oldest_wait(self, now: float) -> float:
        """Return how long the key that has waited longest has waited."""
        return max((now - since for _, since in self._waiting.values()), default=0.0)

    def failures(self, key: K) -> int:
        """Return how often a key has failed in a row."""
        return self._failures.get(key, 0)

    # --- in --------------------------------------------------------------------------------------

    def add(self, key: K, *, now: float, lane: int = 0) -> None:
        """Want work on a key."""
        if key in self._in_work:
            self._again[key] = min(lane, self._again.get(key, lane))
            return
        rests_until = self._resting.get(key)
        if rests_until is not None:
            if now < rests_until:
                self.add_after(key, rests_until - now, now=now, lane=lane)
                return
            del self._resting[key]
        waiting = self._waiting.get(key)
        if waiting is None:
            self.measures.added += 1
            self._waiting[key] = (lane, now)
        elif lane < waiting[0]:
            # Its place in the other lane is left behind and skipped when its turn comes.
            self._waiting[key] = (lane, waiting[1])
        else:
            return
        self._lines[lane].append(key)
        self.on_change()

    def add_after(self, key: K, seconds: float, *, now: float, lane: int = 0) -> None:
        """Want work on a key after a while; the earliest of several wishes counts."""
        if seconds <= 0:
            self.add(key, now=now, lane=lane)
            return
        due = now + seconds
        if self._due.get(key, due) < due:
            return
        self._due[key] = due
        self._number += 1
        heapq.heappush(self._later, (due, self._number, key, lane))
        self.on_change()

    def retry(self, key: K, *, now: float, lane: int = 0) -> float:
        """Want work on a key that failed; return after how long it will be due."""
        self._failures[key] = self._failures.get(key, 0) + 1
        own = RETRIES.delay(self._failures[key], self._random_source)
        delay = max(own, min(self._bucket.reserve(now), MOST_SHARED_DELAY_S))
        self.measures.retries += 1
        self.add_after(key, delay, now=now, lane=lane)
        return delay

    def forget(self, key: K) -> None:
        """A key is well: the next failure counts as the first."""
        self._failures.pop(key, None)

    # --- out -------------------------------------------------------------------------------------

    def take(self, now: float) -> K | None:
        """Return the key to work on next, or None; it is in work until `done`."""
        self.move_due(now)
        for lane in self._order(now):
            line = self._lines[lane]
            while line:
                key = line.popleft()
                waiting = self._waiting.get(key)
                if waiting is None or waiting[0] != lane:
                    continue  # it moved to a better lane
                del self._waiting[key]
                self._in_work[key] = now
                self.measures.waited_s += now - waiting[1]
                self.measures.longest_wait_s = max(self.measures.longest_wait_s, now - waiting[1])
                return key
        return None

    def _order(self, now: float) -> Sequence[int]:
        """Return the lanes in the order of this turn: the best first, or an overdue one."""
        every = range(len(self._lines))
        if not self._was_overdue:
            overdue = [
                (since, lane)
                for lane in every[1:]
                if (since := self._first_since(lane)) is not None and now - since > LANE_PATIENCE_S
            ]
            if overdue:
                self._was_overdue = True
                _, first = min(overdue)
                return (first, *(lane for lane in every if lane != first))
        self._was_overdue = False
        return every

    def _first_since(self, lane: int) -> float | None:
        """Return since when the first key of a lane waits."""
        line = self._lines[lane]
        while line:
            waiting = self._waiting.get(line[0])
            if waiting is not None and waiting[0] == lane:
                return waiting[1]
            line.popleft()  # it moved to a better lane
        return None

    def note_computed(self, key: K, seconds: float) -> None:
        """Note for how long a key in work has kept everything else from running."""
        if key in self._in_work:
            self._computed[key] = self._computed.get(key, 0.0) + seconds

    def done(self, key: K, *, now: float) -> None:
        """End the work on a key."""
        computed = self._computed.pop(key, 0.0)
        if computed >= LEAST_COMPUTED_S:
            if len(self._resting) >= _MOST_RESTING:
                self._resting = {one: due for one, due in self._resting.items() if due > now}
            self._resting[key] = now + REST_FACTOR * computed
        self.measures.worked_s += now - self._in_work.pop(key)
        self.measures.done += 1
        lane = self._again.pop(key, None)
        if lane is not None:
            self.add(key, now=now, lane=lane)

    def next_due(self) -> float | None:
        """Return when the next postponed key is due, or None if there is none."""
        while self._later and self._due.get(self._later[0][2]) != self._later[0][0]:
            heapq.heappop(self._later)  # an earlier wish replaced it
        return self._later[0][0] if self._later else None

    def follow(self, wall: float, now: float) -> None:
        """Let less time be left of every delay if the wall clock was set forward.

        Keys are postponed until a time of the day; what is measured does not notice that it came.
        """
        before, self._ahead = self._ahead, wall - now
        jump = 0.0 if before is None else self._ahead - before
        if jump < LEAST_JUMP_S:
            return
        self._later = [(due - jump, number, key, lane) for due, number, key, lane in self._later]
        self._due = {key: due - jump for key, due in self._due.items()}
        self.on_change()

    def move_due(self, now: float) -> None:
        """Queue the keys that are due."""
        while (due := self.next_due()) is not None and due <= now:
            _, _, key, lane = heapq.heappop(self._later)
            del self._due[key]
            self.add(key, now=now, lane=lane)


def _nothing() -> None:
    """Report nothing."""


class Workers(Generic[K]):
    """So many coroutines that work the queue off; the loop around a pure queue."""

    def __init__(
        self,
        queue: WorkQueue[K],
        work: Callable[[K], Awaitable[float | None]],
        *,
        clock: Clock,
        count: int = 1,
        retry_on: tuple[type[Exception], ...] = (),
    ) -> None:
        """Prepare; `work` may return after how many seconds it wants to see the key again.

        An exception of `retry_on` puts the key back with a growing delay; any other ends `run`.
        """
        self._queue = queue
        self._work = work
        self._clock = clock
        self._count = count
        self._retry_on = retry_on
        self._idle: deque[asyncio.Future[None]] = deque()
        self._is_stopping = False
        self._timed_for: float | None = None  # what the timer runs for
        self._moved = asyncio.Event()  # something is due at another time than that
        queue.on_change = self._changed

    async def run(self) -> None:
        """Work until cancelled, or until all have ended what they did when told to stop."""
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._keep_time())
            workers = [group.create_task(self._worker()) for _ in range(self._count)]
            await asyncio.wait(workers)
            timer.cancel()

    def stop(self) -> None:
        """Take no more keys; `run` ends when those in work are done."""
        self._is_stopping = True
        while self._idle:
            bell = self._idle.popleft()
            if not bell.done():
                bell.set_result(None)

    async def _worker(self) -> None:
        while not self._is_stopping:
            key = self._queue.take(self._clock.monotonic())
            if key is None:
                await self._rest()
            else:
                await self._one(key)

    async def _one(self, key: K) -> None:
        again: float | None = None
        try:
            again = await self._work(key)
        except self._retry_on:
            self._queue.retry(key, now=self._clock.monotonic())
        else:
            self._queue.forget(key)
            if again is not None:
                self._queue.add_after(key, again, now=self._clock.monotonic())
        finally:
            self._queue.done(key, now=self._clock.monotonic())

    async def _rest(self) -> None:
        """Wait to be woken; one worker for each key that comes, not all for every one."""
        bell = asyncio.get_running_loop().create_future()
        self._idle.append(bell)
        await bell

    def _changed(self) -> None:
        if len(self._queue):
            while self._idle:
                bell = self._idle.popleft()
                if not bell.done():
                    bell.set_result(None)
                    break
        if self._queue.next_due() != self._timed_for:
            self._moved.set()

    async def _keep_time(self) -> None:
        """Queue keys when they are due: one timer for all workers."""
        while True:
            self._queue.follow(self._clock.now(), self._clock.monotonic())
            self._moved.clear()
            self._timed_for = due = self._queue.next_due()
            if due is None:
                await self._moved.wait()
                continue
            left = min(due - self._clock.monotonic(), LONGEST_SLEEP_S)
            if left > 0:
                await guarded(self._ring_after(max(left, 0.001)), self._woken())
            self._queue.move_due(self._clock.monotonic())

    async def _ring_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._moved.set()

    async def _woken(self) -> None:
        await self._moved.wait()
