"""The earliest start of workloads that wait for something else than capacity (spec backfill §6).

No reservation table has them: workloads with a begin time, with dependencies, or over a limit of an
account or a QOS. When that ends is known all the same, if the workloads it depends on have a time
limit. Whether there is capacity by then is not checked; position 0 of the estimate says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from unisono.engine.model.dependency import Dependency
from unisono.engine.model.explanation import (
    DependencyPending,
    Expected,
    LimitReached,
    NotBefore,
)
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.ordering.limit_counters import LimitCounters, Scope
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.ordering.priority_order import multifactor_of
from unisono.engine.state.cluster import ClusterState

# Chains of dependencies are followed so far: each step is one level of recursion.
_MOST_STEPS = 20

Starts = Mapping[WorkloadKey, Expected]


def earliest_starts(
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
            yield key, _expected(start, state.waiting[key].workload)
    multifactor = multifactor_of(state)
    if multifactor is None:
        return
    for key in pending:
        if key in known or key not in multifactor.pending:
            continue
        start = _below_limit(multifactor, key)
        if start is not None:
            yield key, _expected(start, state.waiting[key].workload)


def _expected(start: Instant, workload: Workload) -> Expected:
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
