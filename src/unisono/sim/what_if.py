"""When a pending job would start on the cluster as it is: read-only, decided by the live engine.

Three questions, each on its own copy of the state:

    now       scheduling cycles until nothing changes: does it start, where, with which victims?
    ever      the root cause: what has to end, or what even the healthy and empty cluster lacks
    when      simulated runs with random run times, and one in which all jobs run to their limits

A job runs for a random part of its time limit, between 5 % and 100 %: in real logs users request
much more than they need. A job without a time limit never ends.

Only the ends of jobs happen in such a run. Where the root cause is more than that (a node that is
out, a hold), there are no runs: a distribution would contradict it.

Each simulated run ends when the job starts; there are as many as the time budget allows, and the
answer says how many. With conservative backfill, a run would work out all reservations again after
every end. There each run makes one reservation table, as if the random run times were known, which
is what that policy converges to.

With thousands of workloads ahead, not even one run fits the budget. Then all of them count one
resource alone (`sim.gpu_counts`), which takes hundredths of a second each, and the answer says so.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from unisono.engine.cluster import restore
from unisono.engine.diagnosis import diagnose
from unisono.engine.diagnosis.trial import Budget
from unisono.engine.dry_run import MOST_CYCLES, dry_run
from unisono.engine.estimates import estimates, first_pending
from unisono.engine.explain.diagnosis import causes, headline, way_sentences
from unisono.engine.explain.messages import message_of, reason_of, stage_of
from unisono.engine.explain.purchases import purchase_sentence
from unisono.engine.explain.waiting import explanation
from unisono.engine.model.diagnosis import Ahead, Cause, Diagnosis, Holder, Until
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.node import repaired
from unisono.engine.model.plan import Plan, evictions
from unisono.engine.model.policy import Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.model.workload import Workload
from unisono.engine.state.changes import TimePassed, WorkloadGone
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import snapshot
from unisono.engine.state.timeline import Lasts
from unisono.sim.gpu_counts import CountedPool
from unisono.sim.random_source import RandomSource, random_source

SAMPLES = 20
# The shortest run of a job, as a part of its time limit.
SHORTEST = 0.05
# A simulated run ends at this horizon, or after so many ends of jobs.
HORIZON_MS = 60 * 24 * 3600 * 1000
MOST_ENDS = 20_000
# How many workloads can get a reservation, or start, per second of the budget; with more ahead no
# run with nodes is tried. By counts alone a few runs are always made: they take a tenth of a
# second.
RESERVATIONS_A_SECOND = 500
STARTS_A_SECOND = 2_000
FEWEST = 5
# Seconds for all runs. If the first run is not over after this part of them, no other is tried.
BUDGET_S = 1.0
# Objects of copied clusters for the root cause: about a second.
DIAGNOSED_OBJECTS = 100_000
FIRST_RUN_PART = 0.4

Verdict = Literal["now", "later", "never"]


class Constraint(msgspec.Struct, frozen=True, rename="camel"):
    """What keeps a job from starting."""

    stage: str
    reason: str
    message: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """When one job would start, and what keeps it; instants are milliseconds since 1970."""

    workload: WorkloadKey
    verdict: Verdict
    nodes: dict[str, int] = {}  # pods by node, if it starts now
    preempts: tuple[WorkloadKey, ...] = ()
    # Machines that are bought for it first: it starts when they are ready.
    buys: str = ""
    machines_ready: Instant | None = None
    constraint: Constraint | None = None  # the binding one
    root_cause: str = ""  # what would have to change, as a sentence; empty: it is not known
    in_the_way: tuple[str, ...] = ()
    ways: tuple[str, ...] = ()  # every choice of flavors, and what refuses there
    # Workloads in its way without a time limit: no run can tell when they end.
    endless: tuple[WorkloadKey, ...] = ()
    # Why there are no simulated runs, where more of them would not help.
    without_runs: str = ""
    not_before: Instant | None = None  # the date among what is in the way
    samples: int = 0  # how many runs were simulated ...
    started: int = 0  # ... and in how many of them the job started before the horizon
    start_p50: Instant | None = None
    start_p95: Instant | None = None
    start_by_limits: Instant | None = None  # if all jobs ran to their time limits
    by_amounts_of: str = ""  # the one resource that was counted; empty: with nodes


def what_if(
    world: Snapshot,
    key: WorkloadKey,
    *,
    samples: int = SAMPLES,
    seed: int = 1,
    elapsed: Callable[[], float] = lambda: 0.0,
    budget_s: float = BUDGET_S,
) -> Answer:
    """Return when a pending workload would start.

    `elapsed` returns the seconds since the start; without it no run is cut short.
    """
    state, now = restore(world), world.now
    plans = dry_run(state, now, checked=False)
    started = _started(plans, key)
    if started is not None:
        bought = next((one.purchase for one in started.admissions if one.workload == key), None)
        return Answer(
            workload=key,
            verdict="now",
            nodes=_nodes(started, key),
            preempts=_victims(plans, key),
            buys=purchase_sentence(bought) if bought is not None else "",
            machines_ready=bought.ready_by if bought is not None else None,
        )
    why = explanation(state, key)
    assert why is not None, "a workload that does not start is pending"
    waiting = state.waiting[key].workload
    constraint = Constraint(stage_of(why), reason_of(why, waiting), message_of(why))
    settled = snapshot(state)
    found = diagnose(settled, key, now, budget=Budget(objects=DIAGNOSED_OBJECTS))
    known = found is not None and found.verdict in ("later", "never")
    answer = Answer(
        workload=key,
        verdict="later",
        preempts=_victims(plans, key),
        constraint=constraint,
        root_cause=headline(found) if known and found is not None else "",
        in_the_way=tuple(causes(found)) if known and found is not None else (),
        ways=tuple(way_sentences(found)) if known and found is not None else (),
        endless=_endless(found, world) if known and found is not None else (),
    )
    replace = msgspec.structs.replace
    if known and found is not None and found.verdict == "never":
        return replace(answer, verdict="never")
    alone = None if known else _alone(world, key)
    if alone is not None:
        return replace(answer, verdict="never", constraint=alone)
    if found is not None and not all(map(_ends_by_itself, found.in_the_way)):
        dates = [one.instant for one in found.in_the_way if isinstance(one, Until)]
        return replace(
            answer,
            without_runs="it waits for more than the end of jobs",
            not_before=max(dates, default=None),
        )
    runs = _SimulatedRuns(world, state, key, elapsed, budget_s)
    runs.draw(samples, seed)
    starts = sorted(start for start in runs.starts if start is not None)
    if starts and starts[0] <= now:  # it was shown that it does not start now
        return replace(answer, without_runs="counting resources alone does not tell it")
    return replace(
        answer,
        samples=len(runs.starts),
        started=len(starts),
        start_p50=_quantile(starts, len(runs.starts), 50),
        start_p95=_quantile(starts, len(runs.starts), 95),
        start_by_limits=runs.by_limits(),
        by_amounts_of=runs.by_amounts_of,
    )


def _ends_by_itself(cause: Cause) -> bool:
    """Say whether simulated runs of jobs can put a cause out of the way."""
    return isinstance(cause, Holder | Ahead)


def _endless(found: Diagnosis, world: Snapshot) -> tuple[WorkloadKey, ...]:
    """Return the workloads in the way that may run without end."""
    if _default_ms(world.policy) is not None:
        return ()
    every = [one.workload for one in world.admitted_workloads] + [*world.waiting]
    limited = {one.key for one in every if one.longest_ms is not None}
    in_the_way = [one for one in found.in_the_way if isinstance(one, Holder | Ahead)]
    return tuple(one.workload for one in in_the_way if one.workload not in limited)


class _CutShort(Exception):
    """The budget ended before the run."""


class _SimulatedRuns:
    """Simulated runs, as many as the budget allows."""

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
        """Simulate with nodes, or by counts alone where that takes too long."""
        rng = random_source(seed, "what-if")
        try:
            while len(self.starts) < samples and self._elapsed() < self._budget_s:
                part = 1.0 if self.starts else FIRST_RUN_PART
                self.starts.append(self._simulated(rng, part * self._budget_s))
        except _CutShort:
            pass  # the completed runs count
        if not self.starts and self._is_reachable():
            self._draw_by_counts(samples, seed)

    def _draw_by_counts(self, samples: int, seed: int) -> None:
        rng, pool = random_source(seed, "what-if by amounts"), self._pool()
        self.by_amounts_of = pool.resource
        while len(self.starts) < min(samples, FEWEST) or (
            len(self.starts) < samples and self._elapsed() < self._budget_s
        ):
            self.starts.append(self._before_horizon(pool.start(rng)))

    def by_limits(self) -> Instant | None:
        """Return the start if all jobs ran to their time limits, if the budget allows."""
        if self.by_amounts_of:
            return self._before_horizon(self._pool().start(None))
        return self._reserved_start(None) if len(self._first) <= self._most_reservations() else None

    def _is_reachable(self) -> bool:
        return bool(self._first) and self._first[-1][1].workload.key == self._key

    def _pool(self) -> CountedPool:
        return CountedPool(
            self._state,
            self._first,
            self._world.nodes,
            shortest=SHORTEST,
            default_ms=_default_ms(self._world.policy),
        )

    def _before_horizon(self, start: Instant | None) -> Instant | None:
        return start if start is not None and start <= self._world.now + HORIZON_MS else None

    def _most_reservations(self) -> int:
        return max(1, int(RESERVATIONS_A_SECOND * self._budget_s))

    def _reserved_start(self, lasts: Lasts | None) -> Instant | None:
        state, most = self._state, self._most_reservations()
        expected = estimates(state, self._world.now, most=most, until=self._key, lasts=lasts)
        return expected[self._key].start if self._key in expected else None

    def _simulated(self, rng: RandomSource, most_s: float) -> Instant | None:
        if len(self._first) > STARTS_A_SECOND * self._budget_s:
            raise _CutShort
        if _is_conservative(self._world.policy):
            if len(self._first) > self._most_reservations():
                raise _CutShort
            return self._with_reservations(rng)
        return _simulated_start(self._world, self._key, rng, lambda: self._elapsed() < most_s)

    def _with_reservations(self, rng: RandomSource) -> Instant | None:
        """Make reservations for all workloads up to the job, as if random run times were known."""
        known: dict[WorkloadKey, int] = {}  # a workload keeps its run time within one table
        now = self._world.now

        def lasts(workload: Workload) -> int:
            if workload.key not in known:
                limit = workload.longest_ms or _default_ms(self._world.policy)
                running = self._state.running.get(workload.key)
                since = running.admitted.running_since if running is not None else now
                # Without a time limit it runs beyond the horizon.
                known[workload.key] = (
                    2 * HORIZON_MS if limit is None else _length(rng, limit, max(0, now - since))
                )
            return known[workload.key]

        return self._reserved_start(lasts)


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
    found = (one for made in plans for one in evictions(made) if one.by == key)
    return tuple(dict.fromkeys(one.workload for one in found))


def _alone(world: Snapshot, key: WorkloadKey) -> Constraint | None:
    """Return what keeps a workload from starting on the same cluster, healthy and empty."""
    mine = tuple(one for one in world.waiting if one.key == key)
    empty = msgspec.structs.replace(
        world,
        admitted_workloads=(),
        pods=(),
        nodes=tuple(map(repaired, world.nodes)),
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
    assert found is not None, "a workload that does not start is pending"
    if stage_of(found) in ("hold", "order"):
        return None  # time or a release will change that
    return Constraint(stage_of(found), reason_of(found), message_of(found))


def _quantile(starts: list[Instant], drawn: int, percent: int) -> Instant | None:
    """Return the start before which so many percent of the runs started; None: fewer did."""
    place = min(percent * drawn // 100, drawn - 1)
    return starts[place] if 0 <= place < len(starts) else None


def _is_conservative(policy: Policy) -> bool:
    """Say whether every pending workload has a backfill reservation."""
    return policy.backfill is not None and policy.backfill.dates != 1


def _default_ms(policy: Policy) -> int | None:
    """Return the time limit of workloads without one, if the policy has a default."""
    return policy.backfill.default_limit_ms if policy.backfill is not None else None


def _length(rng: RandomSource, limit_ms: int, past_ms: int) -> int:
    """Draw the whole run time of a workload that has run for so long, up to its limit."""
    least = max(SHORTEST, min(1.0, past_ms / limit_ms))
    return int(limit_ms * float(rng.uniform(least, 1.0)))


def _simulated_start(
    world: Snapshot, key: WorkloadKey, rng: RandomSource, go_on: Callable[[], bool]
) -> Instant | None:
    return _SimulatedRun(world, rng, go_on).start_of(key, world.now)


class _SimulatedRun:
    """One simulated run; a run time is drawn when its job starts."""

    def __init__(self, world: Snapshot, rng: RandomSource, go_on: Callable[[], bool]) -> None:
        self._go_on = go_on
        self._state = restore(world)
        self._rng = rng
        self._ends: list[tuple[Instant, int, WorkloadKey]] = []
        self._attempt: dict[WorkloadKey, int] = {}
        self._default_ms = _default_ms(world.policy)
        # With backfill one scheduling cycle decides everything.
        self._most_cycles = MOST_CYCLES if world.policy.backfill is None else 1
        for admitted in world.admitted_workloads:
            past = max(0, world.now - admitted.running_since)
            self._will_end(admitted.workload, world.now, past)

    def start_of(self, key: WorkloadKey, now: Instant) -> Instant | None:
        """Return when a workload starts; None if not before the horizon."""
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
                if running is not None:  # else it was preempted in the same cycle
                    self._will_end(running.admitted.workload, now, 0)
        return False

    def _will_end(self, workload: Workload, now: Instant, past_ms: int) -> None:
        """Draw when a running workload ends; one beyond its limit ends at once."""
        limit = workload.longest_ms or self._default_ms
        if limit is None:
            return
        length = _length(self._rng, limit, past_ms)
        end = Instant(max(now + 1000, now - past_ms + length))
        attempt = self._attempt.get(workload.key, 0)
        heapq.heappush(self._ends, (end, attempt, workload.key))

    def _next_end(self) -> tuple[Instant, int, WorkloadKey] | None:
        """Return the next end; ends of runs that were evicted do not count."""
        while self._ends:
            _, attempt, key = self._ends[0]
            if attempt == self._attempt.get(key, 0) and key in self._state.running:
                return self._ends[0]
            heapq.heappop(self._ends)
        return None
