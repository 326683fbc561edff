"""What follows from an action: tried on a copy of the scheduler's state, with the engine itself.

    state of the scheduler ──snapshot──▶ copy, and the next cycles          what happens anyway
                               └───────▶ copy + the action, and the cycles  what happens with it

The answer is the difference. As in every dry run, evicted workloads leave at once. The copy and its
cycles are made in a thread, one at a time; a cluster that is too large for that is not tried.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.dry_run import dry_run
from unisono.engine.estimates import estimates
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import evictions
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


def try_out(recorded: Snapshot, edit: Edit, key: str, now: Instant) -> Outcome:
    """Return what is different with an action."""
    before = _tried(recorded, None, key, now)
    after = _tried(recorded, edit, key, now)
    return Outcome(
        starts=tuple(sorted(after.started - before.started)),
        waits=tuple(sorted(before.started - after.started - {key})),
        evicted=tuple(sorted(after.evicted - before.evicted)),
        position=(before.position, after.position),
        start=(before.start, after.start),
        workloads=len(recorded.waiting) + len(recorded.admitted_workloads),
    )


def _tried(recorded: Snapshot, edit: Edit | None, key: str, now: Instant) -> _Tried:
    state = restore(recorded)
    now = max(now, recorded.now)
    state.apply(TimePassed(now))
    holding = set(state.running)
    for change in edit(state) if edit is not None else ():
        state.apply(change)
    # A gang that a drained node takes pods from is pending again, without a plan that says so.
    lost = {one for one in holding if one in state.waiting}
    plans = dry_run(state, now, most_cycles=_MOST_CYCLES, checked=False)
    started = {one.workload for made in plans for one in made.admissions}
    evicted = {one.workload for made in plans for one in evictions(made)}
    asked = WorkloadKey(key)
    position = 0
    if asked in state.waiting:
        cq = state.local_queue(state.waiting[asked].workload.queue).cq
        if cq is not None:
            order = pending(state, cq.spec.name)
            position = order.index(asked) + 1 if asked in order else 0
    expected = estimates(state, now, until=asked).get(asked) if asked in state.waiting else None
    return _Tried(
        frozenset(started),
        frozenset(evicted | lost),
        position,
        expected.start if expected is not None else None,
    )


class WhatIf:
    """Tries actions on copies of one scheduler's state."""

    def __init__(self, state: Callable[[], ClusterState | None], now: Callable[[], float]) -> None:
        """Take the state; it returns None where no scheduler runs in this process."""
        self._state = state
        self._now = now
        self._is_busy = False

    async def ask(self, edit: Edit, key: str) -> Outcome | str:
        """Return what is different, or why that cannot be said."""
        state = self._state()
        if state is None:
            return "this replica stands by and does not schedule"
        size = len(state.waiting) + len(state.running) + len(state.nodes.table.row_of)
        if size > MOST_OBJECTS:
            return f"the cluster has more than {MOST_OBJECTS} workloads and nodes"
        if self._is_busy:
            return "another one is being computed"
        recorded = snapshot(state)
        self._is_busy = True
        try:
            now = Instant(int(self._now() * 1000))
            return await asyncio.to_thread(try_out, recorded, edit, key, now)
        finally:
            self._is_busy = False


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
