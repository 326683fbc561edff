"""What would become of a job on a cluster as it is: read-only, and by the engine that decides live.

Three questions, each on a picture of its own:

    now       decide until nothing changes: does it start, where, and who has to leave?
    ever      on the same cluster with nobody else: if not even then, it never will
    when      let time pass with run times that are drawn, again and again, until it starts; and
              on a calendar, if everybody ran as long as they may

Jobs run for a part of their limit that is drawn evenly from the last nineteen twentieths of it: on
real logs people ask for much more than they need. Who does not say how long it runs never ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import msgspec

from unisono.engine.explain import message_of, reason_of, stage_of
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan, evictions
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.engine.rehearsal import rehearse
from unisono.engine.reserve.estimate import estimates
from unisono.engine.state.changes import TimePassed, WorkloadGone
from unisono.engine.state.views import explanation, restore
from unisono.sim.dice import Dice, dice

SAMPLES = 20
# Of its limit, the shortest that a job runs.
SHORTEST = 0.05
# Nobody looks further ahead, and no sample follows more ends than this.
HORIZON_MS = 60 * 24 * 3600 * 1000
MOST_ENDS = 20_000
# So many get a date on the calendar before the rest is left without: a second's work.
MOST_DATES = 10_000

Verdict = Literal["now", "later", "never"]


class Constraint(msgspec.Struct, frozen=True, rename="camel"):
    """What keeps a job from starting."""

    stage: str
    reason: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What would become of one job; instants are milliseconds since 1970."""

    workload: WorkloadKey
    verdict: Verdict
    nodes: dict[str, int] = {}  # pods by node, if it starts now
    preempts: tuple[WorkloadKey, ...] = ()
    constraint: Constraint | None = None  # the binding one
    samples: int = 0  # how many were drawn ...
    started: int = 0  # ... and in how many of them it started before the horizon
    start_p50: Instant | None = None
    start_p95: Instant | None = None
    start_by_limits: Instant | None = None  # if everybody ran as long as they may, as of now


def what_if(
    world: Snapshot,
    key: WorkloadKey,
    *,
    samples: int = SAMPLES,
    seed: int = 1,
    go_on: Callable[[int], bool] = lambda _: True,
) -> Answer:
    """Say what would become of a workload that waits.

    `go_on` may end the drawing early, given how many courses of things were drawn.
    """
    state, now = restore(world), world.now
    plans = rehearse(state, now, checked=False)
    started = _started(plans, key)
    if started is not None:
        return Answer(
            workload=key, verdict="now", nodes=_nodes(started, key), preempts=_victims(plans, key)
        )
    found = explanation(state, key)
    assert found is not None, "who does not start waits"
    alone = _alone(world, key)
    if alone is not None:
        return Answer(workload=key, verdict="never", constraint=alone)
    expected = estimates(state, now, most=MOST_DATES).get(key)
    chance, starts, drawn = dice(seed, "what-if"), [], 0
    while drawn < samples and go_on(drawn):
        future = _Future(world, chance, partial(go_on, drawn))
        start = future.start_of(key, world.now)
        if future.is_cut_short:
            break
        drawn += 1
        if start is not None:
            starts.append(start)
    starts.sort()
    return Answer(
        workload=key,
        verdict="later",
        preempts=_victims(plans, key),
        constraint=Constraint(stage_of(found), reason_of(found), message_of(found)),
        samples=drawn,
        started=len(starts),
        start_p50=_quantile(starts, drawn, 50),
        start_p95=_quantile(starts, drawn, 95),
        start_by_limits=expected.start if expected is not None else None,
    )


def _started(plans: Sequence[Plan], key: WorkloadKey) -> Plan | None:
    return next(
        (made for made in plans for admit in made.admissions if admit.workload == key), None
    )


def _nodes(made: Plan, key: WorkloadKey) -> dict[str, int]:
    found: dict[str, int] = {}
    for admit in made.admissions:
        if admit.workload == key:
            for pod_set in admit.admission.pod_sets:
                for node, pods in pod_set.nodes:
                    found[str(node)] = found.get(str(node), 0) + pods
    return found


def _victims(plans: Sequence[Plan], key: WorkloadKey) -> tuple[WorkloadKey, ...]:
    told = (one for made in plans for one in evictions(made) if one.by == key)
    return tuple(dict.fromkeys(one.workload for one in told))


def _alone(world: Snapshot, key: WorkloadKey) -> Constraint | None:
    """Return what keeps a workload from starting on the same cluster with nobody else on it."""
    mine = tuple(one for one in world.waiting if one.key == key)
    empty = msgspec.structs.replace(
        world,
        holdings=(),
        pods=(),
        waiting=mine,
        preemptors=(),
        verdicts=(),
        shared_verdicts=(),
        asleep=(),
        reminders=(),
        accruing=(),
    )
    state = restore(empty)
    if _started(rehearse(state, world.now, checked=False), key) is not None:
        return None
    found = explanation(state, key)
    assert found is not None, "who does not start waits"
    if stage_of(found) in ("hold", "order"):
        return None  # time or somebody's word will change that
    return Constraint(stage_of(found), reason_of(found), message_of(found))


def _quantile(starts: list[Instant], drawn: int, percent: int) -> Instant | None:
    """Return the start before which so much of all samples began; None: not in so many of them."""
    place = min(percent * drawn // 100, drawn - 1)
    return starts[place] if 0 <= place < len(starts) else None


class _Future:
    """One course of things, with run times that are drawn when they matter."""

    def __init__(self, world: Snapshot, chance: Dice, go_on: Callable[[], bool]) -> None:
        self._go_on = go_on
        self.is_cut_short = False
        self._state = restore(world)
        self._chance = chance
        self._ends: list[tuple[Instant, int, WorkloadKey]] = []
        self._attempt: dict[WorkloadKey, int] = {}
        self._default_ms = world.policy.backfill.default_limit_ms if world.policy.backfill else None
        for holding in world.holdings:
            past = max(0, world.now - holding.running_since)
            self._will_end(holding.workload, world.now, past)

    def start_of(self, key: WorkloadKey, now: Instant) -> Instant | None:
        """Let time pass until somebody starts."""
        last = now + HORIZON_MS
        for _ in range(MOST_ENDS):
            if self._decide(now, key):
                return now
            if not self._go_on():
                self.is_cut_short = True
                return None
            following = self._next_end()
            if following is None or following[0] > last:
                return None
            now = max(now, following[0])
            self._state.apply(TimePassed(now))
            while (following := self._next_end()) is not None and following[0] <= now:
                heapq.heappop(self._ends)
                self._state.apply(WorkloadGone(following[2]))
        return None

    def _decide(self, now: Instant, key: WorkloadKey) -> bool:
        for made in rehearse(self._state, now, checked=False):
            for one in evictions(made):
                self._attempt[one.workload] = self._attempt.get(one.workload, 0) + 1
            for admit in made.admissions:
                if admit.workload == key:
                    return True
                self._will_end(self._state.running[admit.workload].holding.workload, now, 0)
        return False

    def _will_end(self, workload: Workload, now: Instant, past_ms: int) -> None:
        """Draw when somebody ends who has run for so long; whoever is overdue ends at once."""
        limit = workload.longest_ms or self._default_ms
        if limit is None:
            return
        least = max(SHORTEST, min(1.0, past_ms / limit))
        part = float(self._chance.uniform(least, 1.0))
        end = Instant(max(now + 1000, now - past_ms + int(limit * part)))
        attempt = self._attempt.get(workload.key, 0)
        heapq.heappush(self._ends, (end, attempt, workload.key))

    def _next_end(self) -> tuple[Instant, int, WorkloadKey] | None:
        """Return who ends next; ends of those who had to leave before do not count."""
        while self._ends:
            _, attempt, key = self._ends[0]
            if attempt == self._attempt.get(key, 0) and key in self._state.running:
                return self._ends[0]
            heapq.heappop(self._ends)
        return None
