"""Estimates: when those would start who have no date (spec time §6).

The first few in turn are put on a calendar of their own, as if the policy asked for conservative
backfill: read-only, and thrown away. Nothing is kept free because of it. Who depends on the end of
somebody who does not say how long it runs gets no estimate.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

import msgspec

from unisono.engine.backfill.conservative import ConservativeTable
from unisono.engine.backfill.earliest import earliest
from unisono.engine.backfill.reservation_table import CycleView
from unisono.engine.backfill.seating import Seats
from unisono.engine.candidates import AllPending, priority_order
from unisono.engine.cycle import evaluate
from unisono.engine.decide import Decisions
from unisono.engine.model.explanation import Expected, Planned
from unisono.engine.model.names import Instant, NodeName, QueueName, WorkloadKey
from unisono.engine.model.plan import Wait
from unisono.engine.model.policy import Backfill
from unisono.engine.placement.placement import placement_of
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.timeline import Lasts, Timeline
from unisono.engine.state.transaction import Ledger

# So many in turn get an estimate: a few hundred calendars' worth of work, whatever the queue.
MOST = 200
# Of a gang on more nodes than this none is named: explanations are kept with the workload.
MOST_NAMED = 128
# Nobody plans further ahead; also what depends on a limit that nobody gave (a year) ends here.
HORIZON_MS = 60 * 24 * 3600 * 1000


def estimates(
    state: ClusterState,
    now: Instant,
    *,
    most: int = MOST,
    until: WorkloadKey | None = None,
    lasts: Lasts | None = None,
) -> dict[WorkloadKey, Expected]:
    """Return when those who wait in line would start, by turn, as far as that can be said.

    `until` is the last whom anybody asks about; `lasts` says how long each runs, if not as long as
    it may.
    """
    state.refresh()
    first = turns_up_to(state, until, most)
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
    timeline = Timeline(rules, lasts)  # of its own: as if the policy were conservative
    try:
        for running in state.running.values():
            timeline.started(running, running.holding.running_since)
        for cq, waiting in first:
            timeline.entered(waiting, cq)
        seats = Seats(placement_of(state))
        waits = _evaluated(state, now, timeline, rules, seats)
        nodes = seats.found()
    finally:
        for running, end in ends:
            running.end = end
    dated: dict[WorkloadKey, Planned] = {}
    for wait in waits:
        if wait.explanation.blockers and isinstance(wait.explanation.blockers[0], Planned):
            dated[wait.explanation.workload] = wait.explanation.blockers[0]
    found = dict(_in_order(state, now, first, dated, nodes))
    if lasts is not None:  # a course of things for somebody in line: nobody asks about others
        return found
    return _with_others(state, now, found, [one.workload.key for _, one in first], most)


def _evaluated(
    state: ClusterState, now: Instant, timeline: Timeline, rules: Backfill, seats: Seats
) -> list[Wait]:
    """Evaluate all of a timeline as a cycle would, and roll back; return what waits and why."""
    cycle = Decisions(state, now, Ledger(state.nodes.occupancy), timeline)
    view = CycleView(state, timeline, cycle.ledger, cycle.taken, now)
    table = ConservativeTable(view, rules)
    table.seats = seats
    cycle.table = table
    evaluate(AllPending(cycle, table))
    cycle.ledger.rollback()
    return cycle.waits


def _with_others(
    state: ClusterState,
    now: Instant,
    found: dict[WorkloadKey, Expected],
    in_line: list[WorkloadKey],
    most: int,
) -> dict[WorkloadKey, Expected]:
    """Return the same and when those may start who wait for something else than room."""
    others = earliest(state, found, in_line, most)
    soon = {key: fact for key, fact in others if now < fact.start <= now + HORIZON_MS}
    return {**found, **soon}


def _in_order(
    state: ClusterState,
    now: Instant,
    first: list[tuple[ClusterQueueState, Waiting]],
    dated: dict[WorkloadKey, Planned],
    nodes: dict[WorkloadKey, tuple[NodeName, ...]],
) -> Iterator[tuple[WorkloadKey, Expected]]:
    """Yield estimates; in a queue where nobody overtakes, nobody starts before who is ahead."""
    ahead: dict[QueueName, Instant | None] = {}
    for position, (cq, waiting) in enumerate(first, start=1):
        name, key = cq.spec.name, waiting.workload.key
        date = dated.get(key)
        start = date.start if date is not None else None
        if cq.spec.strategy == "StrictFIFO" and state.policy.backfill is None:
            before = ahead.get(name, now)
            start = None if before is None else max(before, start or now)
            if key not in dated and name not in ahead:
                start = None  # the head itself: what keeps it is not a matter of time
            ahead[name] = start
        if start is None or not now < start <= now + HORIZON_MS:
            continue
        is_its_date = date is not None and date.start == start
        named = nodes.get(key, ()) if is_its_date else ()
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


def turns_up_to(
    state: ClusterState, last: WorkloadKey | None, most: int
) -> list[tuple[ClusterQueueState, Waiting]]:
    """Return so many who come first in turn, up to one of them: nobody behind moves its date."""
    found: list[tuple[ClusterQueueState, Waiting]] = []
    for cq, waiting in _first(state, most):
        found.append((cq, waiting))
        if waiting.workload.key == last:
            break
    return found


def _first(state: ClusterState, most: int) -> Iterator[tuple[ClusterQueueState, Waiting]]:
    """Yield those who come first in turn."""
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
    yield from heapq.nsmallest(most, standing, key=lambda pair: _turn(pair[1]))


def _turn(waiting: Waiting) -> tuple[int, Instant, str, WorkloadKey]:
    workload = waiting.workload
    return -workload.priority, workload.position_time, workload.tie, workload.key
