"""What follows from an action: tried on a copy of the scheduler's state, with the engine itself.

    state of the scheduler ──snapshot──▶ copy, and the next cycles          what happens anyway
                               └───────▶ copy + the action, and the cycles  what happens with it

The answer is the difference. As in every dry run, evicted workloads leave at once. The copy and its
cycles are made in a thread, two at a time; some more may wait for that, and each has a time limit.
A cluster that is too large is not tried.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.cycle import plan
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import MOST, estimates
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan, evictions
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.state.changes import TimePassed
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import pending, snapshot
from unisono.web.actions.action import Edit

# A workload, node or pod costs some ten microseconds in a copy, and about as much in its cycles:
# two copies of so many are half a second.
MOST_OBJECTS = 20_000
# Cycles of one copy; without the rules against preemption loops they might never end.
_MOST_CYCLES = 500
_MOST_NAMED = 5
# Longer than a user waits for a question before the real one. Hundreds of pod sets can make a cycle
# take a second; a thread that is over its limit ends after the cycle that it is in.
LIMIT_S = 5.0
# Threads at once: each takes an equal part of the interpreter's time from the control plane.
MOST_AT_ONCE = 2
# Questions at once, and those of one user: the others wait for a thread within their time limit.
MOST_ASKED = 16
MOST_OF_A_USER = 4
# As for published estimates: one costs about so much for every node.
_ESTIMATED = 100_000
_FEWEST_ESTIMATED = 8


class TooLong(Exception):
    """It is not known yet, and the time limit is over."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is different with an action, as keys of workloads."""

    starts: tuple[str, ...] = ()  # now, and would not
    waits: tuple[str, ...] = ()  # and would have started now
    evicted: tuple[str, ...] = ()  # and would have gone on
    position: tuple[int, int] = (0, 0)  # of the workload itself, before and after; 0: in no queue
    start: tuple[Instant | None, Instant | None] = (None, None)  # its estimated start
    workloads: int = 0  # in the copy


class _Tried(msgspec.Struct, frozen=True):
    started: frozenset[str]
    evicted: frozenset[str]
    position: int
    start: Instant | None


def try_out(
    recorded: Snapshot,
    edit: Edit,
    key: str,
    now: Instant,
    is_over: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Return what is different with an action; raise `TooLong` once the time is over."""
    before = _tried(recorded, None, key, now, is_over)
    after = _tried(recorded, edit, key, now, is_over)
    return Outcome(
        starts=tuple(sorted(after.started - before.started)),
        waits=tuple(sorted(before.started - after.started - {key})),
        evicted=tuple(sorted(after.evicted - before.evicted)),
        position=(before.position, after.position),
        start=(before.start, after.start),
        workloads=len(recorded.waiting) + len(recorded.admitted_workloads),
    )


def _tried(
    recorded: Snapshot, edit: Edit | None, key: str, now: Instant, is_over: Callable[[], bool]
) -> _Tried:
    def decides(state: ClusterState, now: Instant) -> Plan:
        if is_over():
            raise TooLong
        return plan(state, now)

    state = restore(recorded)
    now = max(now, recorded.now)
    state.apply(TimePassed(now))
    holding = set(state.running)
    for change in edit(state) if edit is not None else ():
        state.apply(change)
    # A gang that a drained node takes pods from is pending again, without a plan that says so.
    lost = {one for one in holding if one in state.waiting}
    plans = dry_run(state, now, most_cycles=_MOST_CYCLES, checked=False, decides=decides)
    started = {one.workload for made in plans for one in made.admissions}
    evicted = {one.workload for made in plans for one in evictions(made)}
    asked = WorkloadKey(key)
    position = 0
    if asked in state.waiting:
        cq = state.local_queue(state.waiting[asked].workload.queue).cq
        if cq is not None:
            order = pending(state, cq.spec.name)
            position = order.index(asked) + 1 if asked in order else 0
    if is_over():
        raise TooLong
    nodes = max(1, len(state.nodes.table.row_of))
    most = max(_FEWEST_ESTIMATED, min(MOST, _ESTIMATED // nodes))
    is_pending = asked in state.waiting
    expected = estimates(state, now, until=asked, most=most).get(asked) if is_pending else None
    return _Tried(
        frozenset(started),
        frozenset(evicted | lost),
        position,
        expected.start if expected is not None else None,
    )


class WhatIf:
    """Tries actions on copies of one scheduler's state."""

    def __init__(
        self,
        state: Callable[[], ClusterState | None],
        now: Callable[[], float],
        *,
        limit_s: float = LIMIT_S,
    ) -> None:
        """Take the state; it returns None where no scheduler runs in this process."""
        self._state = state
        self._now = now
        self._limit_s = limit_s
        self._threads = asyncio.Semaphore(MOST_AT_ONCE)
        self._asked: Counter[str] = Counter()

    async def ask(self, edit: Edit, key: str, by: str = "") -> Outcome | str:
        """Return what is different, or why that cannot be said; `by` is the user."""
        if self._asked[by] >= MOST_OF_A_USER or self._asked.total() >= MOST_ASKED:
            return "others are being computed; ask again in some seconds"
        self._asked[by] += 1
        try:
            return await self._answer(edit, key)
        finally:
            self._asked[by] -= 1
            if not self._asked[by]:
                del self._asked[by]

    async def _answer(self, edit: Edit, key: str) -> Outcome | str:
        seconds = asyncio.get_running_loop().time
        deadline = seconds() + self._limit_s
        try:
            async with asyncio.timeout_at(deadline):
                await self._threads.acquire()
        except TimeoutError:
            return "others are being computed; ask again in some seconds"
        thread = None
        try:
            state = self._state()  # as it is now that its turn has come
            if state is None:
                return "this replica stands by and does not schedule"
            size = len(state.waiting) + len(state.running) + len(state.nodes.table.row_of)
            if size > MOST_OBJECTS:
                return f"the cluster has more than {MOST_OBJECTS} workloads and nodes"
            recorded = snapshot(state)
            now = Instant(int(self._now() * 1000))
            work = asyncio.to_thread(
                try_out, recorded, edit, key, now, lambda: seconds() > deadline
            )
            thread = asyncio.ensure_future(work)
            thread.add_done_callback(self._ended)
        finally:
            if thread is None:
                self._threads.release()
        # Not cancelled with its request: a thread goes on, and keeps its place until it has ended.
        await asyncio.wait({thread}, timeout=max(0.0, deadline - seconds()))
        try:
            return thread.result() if thread.done() else self._too_long()
        except TooLong:
            return self._too_long()

    def _ended(self, thread: asyncio.Future[Outcome]) -> None:
        self._threads.release()
        if not thread.cancelled():
            thread.exception()  # seen, also if it came when the question was over

    def _too_long(self) -> str:
        return f"it takes longer than {self._limit_s:g} seconds on this cluster"


def sentences(
    outcome: Outcome, key: str, named: Callable[[str], str], when: Callable[[Instant], str]
) -> list[str]:
    """Say an outcome; `named` returns the name of a workload, or nothing if it is not to be seen.

    >>> sentences(Outcome(starts=("ml/b",), workloads=2), "ml/a", str, str)
    ['Starts then: ml/b.', 'Tried on a copy of the cluster with 2 workloads.']
    """
    found = []
    if key in outcome.starts:
        found.append("It starts at once.")
    again = set(outcome.evicted) & set(outcome.starts)
    for word, keys in (
        ("Starts then", set(outcome.starts) - again),
        ("Waits on, and would have started now", outcome.waits),
        ("Is evicted, and starts again at once", again),
        ("Is evicted and waits again", set(outcome.evicted) - again),
    ):
        others = sorted(one for one in keys if one != key)
        if others:
            found.append(f"{word}: {_few(others, named)}.")
    if key in outcome.evicted and key not in again:
        found.append("It is evicted and waits again.")
    before, after = outcome.position
    if after and after != before:
        now = f"; it is {before}" if before else ""
        found.append(f"Its position in the queue becomes {after}{now}.")
    was, becomes = outcome.start
    if becomes is not None and was is not None and becomes != was:
        found.append(f"Its estimated start becomes {when(becomes)}; it is {when(was)}.")
    elif becomes is not None and was is None:
        found.append(f"Its estimated start is {when(becomes)} then.")
    elif was is not None and becomes is None and key not in outcome.starts:
        found.append(f"Its estimated start was {when(was)}; then there is none.")
    if not found:
        found.append("Nothing else starts or is evicted now because of it.")
    found.append(f"Tried on a copy of the cluster with {outcome.workloads} workloads.")
    return found


def _few(keys: Sequence[str], named: Callable[[str], str]) -> str:
    names = [name for one in keys if (name := named(one))]
    shown = heapq.nsmallest(_MOST_NAMED, names)
    left = len(keys) - len(shown)
    return " and ".join(filter(None, (", ".join(shown), _more(left, bool(shown)))))


def _more(left: int, has_named: bool) -> str:
    if not left:
        return ""
    word = "workload" if left == 1 else "workloads"
    return f"{left} more {word}" if has_named else f"{left} {word} of others"
