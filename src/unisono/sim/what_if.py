"""What would become of a job on a cluster as it is: read-only, and by the engine that decides live.

Three questions, each on a picture of its own:

    now       decide until nothing changes: does it start, where, and who has to leave?
    ever      on the same cluster with nobody else: if not even then, it never will
    when      with run times that are drawn, again and again; and on a calendar, if everybody ran as
              long as they may

Jobs run for a part of their limit that is drawn evenly from the last nineteen twentieths of it: on
real logs people ask for much more than they need. Who does not say how long it runs never ends.

Each draw is played by the engine until the job starts, as many as there is time for; the answer
says how many. Where everybody who waits has a date (conservative backfill), playing would work all
of them out again after every end. There one calendar is drawn at a time: dates as they were if run
times were known, which is what such a policy comes to.

With thousands ahead not even one draw is over in time. Then all of them are made by amounts alone
(`sim.by_amounts`), which takes hundredths of a second each, and the answer says so.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.dry_run import MOST_CYCLES, dry_run
from unisono.engine.estimates import estimates, first_pending
from unisono.engine.explain.messages import message_of, reason_of, stage_of
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan, evictions
from unisono.engine.model.policy import Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import TimePassed, WorkloadGone
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.timeline import Lasts
from unisono.sim.by_amounts import Pool
from unisono.sim.dice import Dice, dice

SAMPLES = 20
# Of its limit, the shortest that a job runs.
SHORTEST = 0.05
# Nobody looks further ahead, and no sample follows more ends than this.
HORIZON_MS = 60 * 24 * 3600 * 1000
MOST_ENDS = 20_000
# So many get a date on nodes, or start on them, for each second there is; with more ahead nobody
# tries. By amounts alone a few courses are drawn however late it is: a tenth of a second.
DATES_A_SECOND = 500
STARTS_A_SECOND = 2_000
FEWEST = 5
# Who asks wants an answer: so many seconds one draws. What is not over after this part of them
# for the first time is not tried again.
BUDGET_S = 1.0
FIRST = 0.4

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
    by_amounts_of: str = ""  # starts rest on this resource alone, not on nodes; empty: on all


def what_if(
    world: Snapshot,
    key: WorkloadKey,
    *,
    samples: int = SAMPLES,
    seed: int = 1,
    elapsed: Callable[[], float] = lambda: 0.0,
    budget_s: float = BUDGET_S,
) -> Answer:
    """Say what would become of a workload that waits.

    `elapsed` tells how many seconds it has taken so far; without it nothing is cut short.
    """
    state, now = restore(world), world.now
    plans = dry_run(state, now, checked=False)
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
    course = _Courses(world, state, key, elapsed, budget_s)
    course.draw(samples, seed)
    starts = sorted(start for start in course.starts if start is not None)
    return Answer(
        workload=key,
        verdict="later",
        preempts=_victims(plans, key),
        constraint=Constraint(stage_of(found), reason_of(found), message_of(found)),
        samples=len(course.starts),
        started=len(starts),
        start_p50=_quantile(starts, len(course.starts), 50),
        start_p95=_quantile(starts, len(course.starts), 95),
        start_by_limits=course.by_limits(),
        by_amounts_of=course.by_amounts_of,
    )


class _CutShort(Exception):
    """There was no time to see how it ends."""


class _Courses:
    """Courses of things, as many as there is time for."""

    def __init__(
        self,
        world: Snapshot,
        state: ClusterState,
        key: WorkloadKey,
        elapsed: Callable[[], float],
        budget_s: float,
    ) -> None:
        self._world = world
        self._state = state
        self._key = key
        self._elapsed = elapsed
        self._budget_s = budget_s
        self._state.refresh()
        self._first = first_pending(state, key, len(state.waiting))
        self.starts: list[Instant | None] = []  # None: not before the horizon
        self.by_amounts_of = ""

    def draw(self, samples: int, seed: int) -> None:
        """Draw on nodes, or by amounts alone where that takes too long."""
        chance = dice(seed, "what-if")
        try:
            while len(self.starts) < samples and self._elapsed() < self._budget_s:
                part = 1.0 if self.starts else FIRST
                self.starts.append(self._on_nodes(chance, part * self._budget_s))
        except _CutShort:
            pass  # those that are over count
        if not self.starts and self._is_in_turn():
            self._draw_by_amounts(samples, seed)

    def _draw_by_amounts(self, samples: int, seed: int) -> None:
        chance, pool = dice(seed, "what-if by amounts"), self._pool()
        self.by_amounts_of = pool.resource
        while len(self.starts) < min(samples, FEWEST) or (
            len(self.starts) < samples and self._elapsed() < self._budget_s
        ):
            self.starts.append(self._before_horizon(pool.start(chance)))

    def by_limits(self) -> Instant | None:
        """Return the start if everybody ran as long as they may, if there is time to find it."""
        if self.by_amounts_of:
            return self._before_horizon(self._pool().start(None))
        return self._dated(None) if len(self._first) <= self._most_dates() else None

    def _is_in_turn(self) -> bool:
        return bool(self._first) and self._first[-1][1].workload.key == self._key

    def _pool(self) -> Pool:
        return Pool(
            self._state,
            self._first,
            self._world.nodes,
            shortest=SHORTEST,
            default_ms=_default_ms(self._world.policy),
        )

    def _before_horizon(self, start: Instant | None) -> Instant | None:
        return start if start is not None and start <= self._world.now + HORIZON_MS else None

    def _most_dates(self) -> int:
        return max(1, int(DATES_A_SECOND * self._budget_s))

    def _dated(self, lasts: Lasts | None) -> Instant | None:
        state, most = self._state, self._most_dates()
        expected = estimates(state, self._world.now, most=most, until=self._key, lasts=lasts)
        return expected[self._key].start if self._key in expected else None

    def _on_nodes(self, chance: Dice, most_s: float) -> Instant | None:
        if len(self._first) > STARTS_A_SECOND * self._budget_s:
            raise _CutShort
        if _is_conservative(self._world.policy):
            if len(self._first) > self._most_dates():
                raise _CutShort
            return self._on_calendar(chance)
        return _play(self._world, self._key, chance, lambda: self._elapsed() < most_s)

    def _on_calendar(self, chance: Dice) -> Instant | None:
        """Give everybody up to the job a date, as if run times that are drawn were known."""
        known: dict[WorkloadKey, int] = {}  # who is asked about twice gets the same answer
        now = self._world.now

        def lasts(workload: Workload) -> int:
            if workload.key not in known:
                limit = workload.longest_ms or _default_ms(self._world.policy)
                running = self._state.running.get(workload.key)
                since = running.holding.running_since if running is not None else now
                # Who does not say how long it runs is in the way for longer than anybody looks.
                known[workload.key] = (
                    2 * HORIZON_MS if limit is None else _length(chance, limit, max(0, now - since))
                )
            return known[workload.key]

        return self._dated(lasts)


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
    if _started(dry_run(state, world.now, checked=False), key) is not None:
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


def _is_conservative(policy: Policy) -> bool:
    """Say whether everybody who waits has a date."""
    return policy.backfill is not None and policy.backfill.dates != 1


def _default_ms(policy: Policy) -> int | None:
    """Return how long who does not say so may run, if the policy knows."""
    return policy.backfill.default_limit_ms if policy.backfill is not None else None


def _length(chance: Dice, limit_ms: int, past_ms: int) -> int:
    """Draw how long somebody runs in all who has run for so long; no longer than it may."""
    least = max(SHORTEST, min(1.0, past_ms / limit_ms))
    return int(limit_ms * float(chance.uniform(least, 1.0)))


def _play(
    world: Snapshot, key: WorkloadKey, chance: Dice, go_on: Callable[[], bool]
) -> Instant | None:
    return _Future(world, chance, go_on).start_of(key, world.now)


class _Future:
    """One course of things, with run times that are drawn when they matter."""

    def __init__(self, world: Snapshot, chance: Dice, go_on: Callable[[], bool]) -> None:
        self._go_on = go_on
        self._state = restore(world)
        self._chance = chance
        self._ends: list[tuple[Instant, int, WorkloadKey]] = []
        self._attempt: dict[WorkloadKey, int] = {}
        self._default_ms = _default_ms(world.policy)
        # With dates one pass is all there is to decide.
        self._most_cycles = MOST_CYCLES if world.policy.backfill is None else 1
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
                raise _CutShort
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
        plans = dry_run(self._state, now, most_cycles=self._most_cycles, checked=False)
        for made in plans:
            for one in evictions(made):
                self._attempt[one.workload] = self._attempt.get(one.workload, 0) + 1
            for admit in made.admissions:
                if admit.workload == key:
                    return True
                running = self._state.running.get(admit.workload)
                if running is not None:  # else it had to leave at once for somebody more urgent
                    self._will_end(running.holding.workload, now, 0)
        return False

    def _will_end(self, workload: Workload, now: Instant, past_ms: int) -> None:
        """Draw when somebody ends who has run for so long; whoever is overdue ends at once."""
        limit = workload.longest_ms or self._default_ms
        if limit is None:
            return
        length = _length(self._chance, limit, past_ms)
        end = Instant(max(now + 1000, now - past_ms + length))
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
