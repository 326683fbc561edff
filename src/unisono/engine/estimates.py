"""Estimates: when workloads without a reservation would start (spec backfill §6).

The first pending workloads in order go on a reservation table of their own, as if the policy asked
for conservative backfill: read-only, and thrown away. Nothing is kept free because of it. A
workload that depends on the end of one without a time limit gets no estimate. Workloads that wait
for something else than capacity (a begin time, dependencies, limits) get an earliest start.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from unisono.engine.backfill.conservative import ConservativeTable
from unisono.engine.backfill.future_placement import ReservedNodes
from unisono.engine.backfill.reservation_table import CycleView
from unisono.engine.candidates import AllPending, priority_order
from unisono.engine.cycle import evaluate
from unisono.engine.decide import Decisions
from unisono.engine.model.explanation import (
    DependencyPending,
    Expected,
    LimitReached,
    NotBefore,
    Planned,
)
from unisono.engine.model.names import Instant, NodeName, QueueName, WorkloadKey
from unisono.engine.model.plan import Wait
from unisono.engine.model.policy import Backfill
from unisono.engine.model.workload import Dependency, Workload
from unisono.engine.ordering.limit_counters import LimitCounters, Scope
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.placement.placement import placement_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.pending_queue import PendingWorkload
from unisono.engine.state.timeline import Lasts, Timeline
from unisono.engine.state.transaction import Transaction

# Estimates cost about as much as so many reservations, however long the queues are.
MOST = 200
# No nodes are named of a gang on more than this: explanations are kept with the workload.
MOST_NAMED = 128
# Later starts are not worth telling; this also drops what depends on the default limit of a year.
HORIZON_MS = 60 * 24 * 3600 * 1000


def estimates(
    state: ClusterState,
    now: Instant,
    *,
    most: int = MOST,
    until: WorkloadKey | None = None,
    lasts: Lasts | None = None,
) -> dict[WorkloadKey, Expected]:
    """Return when pending workloads would start, in order, as far as that can be said.

    `until` is the last workload of interest; `lasts` gives run times in place of time limits.
    """
    state.refresh()
    first = first_pending(state, until, most)
    if not first:
        return _with_others(state, now, {}, [], most) if lasts is None else {}
    rules = msgspec.structs.replace(
        state.policy.backfill or Backfill(),
        dates=None,
        window_ms=HORIZON_MS,
        most_tested=most,
        most_per_queue=0,
    )
    ends = [(running, running.end) for running in state.timeline.ending]
    timeline = Timeline(rules, lasts)  # of its own, as if the policy were conservative
    try:
        for running in state.running.values():
            timeline.started(running, running.admitted.running_since)
        for cq, waiting in first:
            timeline.entered(waiting, cq)
        reserved_nodes = ReservedNodes(placement_of(state))
        waits = _evaluated(state, now, timeline, rules, reserved_nodes)
        nodes = reserved_nodes.by_workload()
    finally:
        for running, end in ends:
            running.end = end
    planned: dict[WorkloadKey, Planned] = {}
    for wait in waits:
        if wait.explanation.blockers and isinstance(wait.explanation.blockers[0], Planned):
            planned[wait.explanation.workload] = wait.explanation.blockers[0]
    found = dict(_expected(state, now, first, planned, nodes))
    if lasts is not None:  # one simulated run: workloads on hold are of no interest
        return found
    return _with_others(state, now, found, [one.workload.key for _, one in first], most)


def _evaluated(
    state: ClusterState,
    now: Instant,
    timeline: Timeline,
    rules: Backfill,
    reserved_nodes: ReservedNodes,
) -> list[Wait]:
    """Evaluate all of a timeline as a cycle would, and roll back; return what waits and why."""
    cycle = Decisions(state, now, Transaction(state.nodes.occupancy), timeline)
    view = CycleView(state, timeline, cycle.transaction, cycle.taken, now)
    table = ConservativeTable(view, rules)
    table.reserved_nodes = reserved_nodes
    cycle.table = table
    evaluate(AllPending(cycle, table))
    cycle.transaction.rollback()
    return cycle.waits


def _with_others(
    state: ClusterState,
    now: Instant,
    found: dict[WorkloadKey, Expected],
    pending: list[WorkloadKey],
    most: int,
) -> dict[WorkloadKey, Expected]:
    """Add the earliest starts of workloads that wait for something else than capacity."""
    others = _earliest_starts(state, found, pending, most)
    soon = {key: fact for key, fact in others if now < fact.start <= now + HORIZON_MS}
    return {**found, **soon}


def _expected(
    state: ClusterState,
    now: Instant,
    first: list[tuple[ClusterQueueState, PendingWorkload]],
    planned: dict[WorkloadKey, Planned],
    nodes: dict[WorkloadKey, tuple[NodeName, ...]],
) -> Iterator[tuple[WorkloadKey, Expected]]:
    """Yield estimates; in a StrictFIFO queue none starts before the one ahead of it."""
    ahead: dict[QueueName, Instant | None] = {}
    for position, (cq, waiting) in enumerate(first, start=1):
        name, key = cq.spec.name, waiting.workload.key
        reservation = planned.get(key)
        start = reservation.start if reservation is not None else None
        if cq.spec.strategy == "StrictFIFO" and state.policy.backfill is None:
            before = ahead.get(name, now)
            start = None if before is None else max(before, start or now)
            if key not in planned and name not in ahead:
                start = None  # the head itself waits for something that time does not bring
            ahead[name] = start
        if start is None or not now < start <= now + HORIZON_MS:
            continue
        is_reserved = reservation is not None and reservation.start == start
        named = nodes.get(key, ()) if is_reserved else ()
        yield (
            key,
            Expected(
                start=start,
                position=position,
                limit_ms=waiting.workload.longest_ms or 0,
                limit_from=waiting.workload.longest_from,
                nodes=named if len(named) <= MOST_NAMED else (),
            ),
        )


def first_pending(
    state: ClusterState, last: WorkloadKey | None, most: int
) -> list[tuple[ClusterQueueState, PendingWorkload]]:
    """Return the first pending workloads up to one of them: those behind do not move its start."""
    found: list[tuple[ClusterQueueState, PendingWorkload]] = []
    for cq, waiting in _first(state, most):
        found.append((cq, waiting))
        if waiting.workload.key == last:
            break
    return found


def _first(state: ClusterState, most: int) -> Iterator[tuple[ClusterQueueState, PendingWorkload]]:
    """Yield the first pending workloads in order."""
    if state.priority_order.is_on:
        yield from islice(priority_order(state), most)
        return
    standing = (
        (lq.cq, waiting)
        for lq in state.local_queues.values()
        if lq.cq is not None and lq.cq.blocker is None
        for waiting in lq.waiting.values()
        if waiting.slot is not None
    )
    yield from heapq.nsmallest(most, standing, key=lambda pair: _classical_key(pair[1]))


def _classical_key(waiting: PendingWorkload) -> tuple[int, Instant, str, WorkloadKey]:
    workload = waiting.workload
    return -workload.priority, workload.position_time, workload.tie, workload.key


# --- workloads that wait for something else than capacity -----------------------------------------

# No reservation table has them: workloads with a begin time, with dependencies, or over a limit of
# an account or a QOS. When that ends is known all the same, if the workloads it depends on have a
# time limit. Whether there is capacity by then is not checked; position 0 of the estimate says so.


# Chains of dependencies are followed so far: each step is one level of recursion.
_MOST_STEPS = 20

Starts = Mapping[WorkloadKey, Expected]


def _earliest_starts(
    state: ClusterState, known: Starts, pending: Iterable[WorkloadKey], most: int
) -> Iterator[tuple[WorkloadKey, Expected]]:
    """Yield estimates for workloads without one: `most` of those on hold, and all pending ones."""
    held = sorted(
        key for key, fact in state.held.items() if isinstance(fact, NotBefore | DependencyPending)
    )
    times = _Times(state, known)
    for key in islice(held, most):
        start = times.start(key)
        if start is not None:
            yield key, _estimate(start, state.waiting[key].workload)
    multifactor = multifactor_of(state)
    if multifactor is None:
        return
    for key in pending:
        if key in known or key not in multifactor.pending:
            continue
        start = _below_limit(multifactor, key)
        if start is not None:
            yield key, _estimate(start, state.waiting[key].workload)


def _estimate(start: Instant, workload: Workload) -> Expected:
    return Expected(
        start=start,
        position=0,
        limit_ms=workload.longest_ms or 0,
        limit_from=workload.longest_from,
    )


# --- dependencies ---------------------------------------------------------------------------------


class _Times:
    """When workloads start and end, as far as that is known."""

    def __init__(self, state: ClusterState, known: Starts) -> None:
        self._state = state
        self._known = known
        self._steps = 0
        # Many depend on the same: without this memo, layers of jobs that all depend on all of the
        # layer before would be followed along every path.
        self._found: dict[WorkloadKey, Instant | None] = {}

    def start(self, key: WorkloadKey) -> Instant | None:
        """Return when a pending workload may start; None: that is not known."""
        if key in self._known:
            return self._known[key].start
        if key not in self._found:
            self._found[key] = None  # in a cycle of dependencies none ever starts
            self._found[key] = self._held_until(key)
        return self._found[key]

    def _held_until(self, key: WorkloadKey) -> Instant | None:
        fact = self._state.held.get(key)
        workload = self._state.waiting[key].workload
        if isinstance(fact, NotBefore):
            return fact.begin
        if not isinstance(fact, DependencyPending) or self._steps >= _MOST_STEPS:
            return None
        self._steps += 1
        found = [self._satisfied(each, fact) for each in workload.depends]
        self._steps -= 1
        if workload.depends_on_any:
            return min((one for one in found if one is not None), default=None)
        return None if None in found else max(one for one in found if one is not None)

    def _satisfied(self, each: Dependency, fact: DependencyPending) -> Instant | None:
        """Return when a dependency is satisfied at the latest; 0: it is already."""
        if each.kind == "afternotok":
            return None  # it is not expected to fail
        if each.kind == "singleton":
            there = [WorkloadKey(fact.on)] if fact.kind == "singleton" else []
        else:
            there = self._state.dependencies.there(each.on)
            if not there and not self._state.dependencies.is_over(each.on):
                return None  # it was never submitted
        when = self._begins if each.kind == "after" else self._ends
        found = [when(key) for key in there]
        if None in found:
            return None
        last = max((one for one in found if one is not None), default=Instant(0))
        return Instant(last + each.delay_ms)

    def _begins(self, key: WorkloadKey) -> Instant | None:
        running = self._state.running.get(key)
        return running.since if running is not None else self.start(key)

    def _ends(self, key: WorkloadKey) -> Instant | None:
        running = self._state.running.get(key)
        workload = running.admitted.workload if running else self._state.waiting[key].workload
        begun = self._begins(key)
        if begun is None or workload.longest_ms is None:
            return None
        return Instant(begun + workload.longest_ms)


# --- limits ---------------------------------------------------------------------------------------


def _below_limit(multifactor: MultifactorPriority, key: WorkloadKey) -> Instant | None:
    """Return when enough have ended that a workload is within the limit that it waits for."""
    fact = multifactor.over_limit_of(key, LimitCounters())
    if fact is None:
        return None
    if fact.unit not in ("tres", "jobs"):
        return fact.until
    missing = fact.used + fact.wanted - fact.limit
    scope = _scope(multifactor, key, fact)
    counts = [job.counted for job in multifactor.running.values() if scope in job.counted.scopes]
    ending = sorted(
        (one.end, one.tres.get(fact.tres, 0) if fact.unit == "tres" else 1)
        for one in counts
        if one.end is not None
    )
    for end, amount in ending:
        missing -= amount
        if missing <= 0:
            return end
    return None


def _scope(multifactor: MultifactorPriority, key: WorkloadKey, fact: LimitReached) -> Scope:
    """Return what a limit counts, as `ordering.limit_counters` names it."""
    if fact.per == "group":
        return fact.owner, "group", ""
    if fact.owner.startswith(("qos/", "partition/")) and fact.per in ("user", "account"):
        return fact.owner, "user" if fact.per == "user" else "account", fact.member
    return multifactor.accounts.owner(multifactor.pending[key].member.association), "group", ""
