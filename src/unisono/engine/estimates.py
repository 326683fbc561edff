"""Estimates: when workloads without a reservation would start (spec backfill §6).

The first pending workloads in order go on a reservation table of their own, as if the policy asked
for conservative backfill: read-only, and thrown away. Nothing is kept free because of it. A
workload that depends on the end of one without a time limit gets no estimate.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice

import msgspec

from unisono.engine.backfill.conservative import ConservativeTable
from unisono.engine.backfill.earliest_start import earliest_starts
from unisono.engine.backfill.reservation_table import CycleView
from unisono.engine.backfill.reserved_nodes import ReservedNodes
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
    others = earliest_starts(state, found, pending, most)
    soon = {key: fact for key, fact in others if now < fact.start <= now + HORIZON_MS}
    return {**found, **soon}


def _expected(
    state: ClusterState,
    now: Instant,
    first: list[tuple[ClusterQueueState, Waiting]],
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
) -> list[tuple[ClusterQueueState, Waiting]]:
    """Return the first pending workloads up to one of them: those behind do not move its start."""
    found: list[tuple[ClusterQueueState, Waiting]] = []
    for cq, waiting in _first(state, most):
        found.append((cq, waiting))
        if waiting.workload.key == last:
            break
    return found


def _first(state: ClusterState, most: int) -> Iterator[tuple[ClusterQueueState, Waiting]]:
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


def _classical_key(waiting: Waiting) -> tuple[int, Instant, str, WorkloadKey]:
    workload = waiting.workload
    return -workload.priority, workload.position_time, workload.tie, workload.key
