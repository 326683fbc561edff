"""The scheduling cycle: one decision over one picture of the cluster. Start reading here.

`plan(state, now)` is one loop for every policy:

    1. evictions   what must stop although no other workload needs its place (`evictions_due`)
    2. fast path   EASY backfill where everything is a number (`backfill/fast_path.py`)
    3. candidates  heads of queues, heads in priority order, or all pending (`candidates.py`)
    4. nominate    what a candidate could get: flavors, nodes, victims (`nominate.py`)
    5. decide      admit it, preempt others or buy machines for it, or say why it waits; each
                   decision is booked before the next one is taken (`decide.py`)
    6. reserve     what has to wait gets a backfill reservation, and nothing starts that would
                   delay one (`backfill/reservation_table.py`)

The policy chooses two parameters: the source of candidates, and the reservation table (none, one,
or one for each). Nothing is changed: the transaction is rolled back, and `state.apply_plan`
(or the cluster's events) makes the plan true. Spec quota §6, backfill §3. The same state gives
the same plan, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unisono.engine.backfill.conservative import ConservativeTable
from unisono.engine.backfill.easy import EasyShadow, EasyTable
from unisono.engine.backfill.fast_path import fast_path
from unisono.engine.backfill.reservation_table import CycleView
from unisono.engine.candidates import Candidates, candidates_for
from unisono.engine.decide import Decisions
from unisono.engine.model.explanation import QueueStopped
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import DueEviction, EvictionReason, Plan
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, LocalQueueState
from unisono.engine.state.lifecycle import eviction_for
from unisono.engine.state.timeline import Kept
from unisono.engine.state.transaction import Transaction

# How a cycle is decided: by `plan`, or by a caller that also records or times it.
Decides = Callable[[ClusterState, Instant], Plan]


def plan(state: ClusterState, now: Instant) -> Plan:
    """Decide one cycle; time never goes back, whatever the caller's clock says.

    Reservations of the last plan that was applied are used again while they hold; those of this
    plan take their place when it is applied.
    """
    now = max(now, state.now)
    state.evaluating = None
    state.refresh()
    timeline = state.timeline
    # Multifactor priorities change with time, and reservations with them.
    may_reuse = timeline.is_on and not state.priority_order.is_on
    made, kept = plan_cycle(state, now, timeline.reusable(now) if may_reuse else None)
    if timeline.is_on:
        timeline.draft(state.version, kept)
    return made


def plan_cycle(state: ClusterState, now: Instant, reused: Kept | None) -> tuple[Plan, Kept | None]:
    """Decide one cycle on a state that is up to date; return the plan and its reservations.

    `reused` are the last cycle's reservations, if they hold. Neither they nor the state change: a
    plan may never be applied, and a second one from the same state must be the same.
    """
    due = evictions_due(state, now)
    timeline = state.timeline
    if not (timeline.groups if timeline.is_on else state.active_queues.ready):
        # No candidates.
        return Plan(based_on=state.version, now=now, evictions_due=tuple(due)), None
    if not due and (fast := fast_path(state, now, reused)) is not None:
        return fast
    cycle = Decisions(state, now, Transaction(state.nodes.occupancy), timeline)
    cycle.victims.update(dict.fromkeys(eviction.workload for eviction in due))
    _open_table(cycle, reused)
    candidates = candidates_for(cycle)
    evaluate(candidates)
    cycle.transaction.rollback()
    table = cycle.table
    cycle.waits += candidates.withdrawn()
    made = Plan(
        based_on=state.version,
        now=now,
        admissions=tuple(cycle.admissions),
        preemptions=tuple(cycle.preemptions),
        awaits=tuple(cycle.awaits),
        evictions_due=tuple(due),
        waits=tuple(cycle.waits),
        reservations=tuple(table.reservations) if table is not None else (),
        examined=tuple(sorted([cq.spec.name for cq in candidates.evaluated])),
    )
    return made, table.keep() if table is not None else None


def evaluate(candidates: Candidates) -> None:
    """Decide candidates one after the other, each on what the ones before it left."""
    cycle = candidates.cycle
    state = cycle.state
    for candidate in candidates:
        state.evaluating = candidate.waiting.key  # if this fails, it failed on this workload
        if candidates.decide_early(candidate):
            continue
        nominee = candidates.nominate(candidate)
        wait = cycle.decide(nominee)
        candidates.decided(candidate, nominee, wait)


def _open_table(cycle: Decisions, reused: Kept | None) -> None:
    """Give a cycle the reservation table that the policy asks for, with what holds of the last."""
    rules = cycle.timeline.rules
    if rules is None:
        return
    view = CycleView(cycle.state, cycle.timeline, cycle.transaction, cycle.taken, cycle.now)
    if rules.dates == 1:
        cycle.table = EasyTable(view, reused if isinstance(reused, EasyShadow) else None)
        return
    arrivals = [(each.waiting, each.group) for each in cycle.timeline.arrivals]
    if type(reused) is ConservativeTable and reused.fits(arrivals):
        cycle.table = reused.resumed(view)
    else:
        cycle.table = ConservativeTable(view, rules)


# --- evictions ------------------------------------------------------------------------------------

# Those that no preemptor asks for: stopped queues, deadlines, failed checks, deactivation.
#
# Hold lets admitted workloads run on and takes back reservations that were not admitted yet;
# HoldAndDrain takes everything back (spec quota §11). The rules for a single workload (deadlines,
# checks, deactivation) are in `state/lifecycle.py`.


def evictions_due(state: ClusterState, now: Instant) -> list[DueEviction]:
    """Return the admitted workloads to evict, each once, in order of name."""
    if not state.eviction_triggers.suspects and not state.stopped:
        return []
    due: dict[WorkloadKey, DueEviction] = {}
    for key in state.eviction_triggers.suspects:
        state.evaluating = key
        admitted = state.running[key].admitted
        eviction = None if admitted.evicting else eviction_for(admitted, state.policy, now)
        if eviction is not None:
            due[key] = eviction
    for eviction in _from_stopped_queues(state):
        due.setdefault(eviction.workload, eviction)
    return [due[key] for key in sorted(due)]


def _from_stopped_queues(state: ClusterState) -> Iterator[DueEviction]:
    # A queue's reason goes before a local queue's, whichever was stopped first.
    for stopped in sorted(state.stopped, key=lambda stopped: isinstance(stopped, LocalQueueState)):
        blocker = stopped.blocker
        if not isinstance(blocker, QueueStopped):
            continue
        of_queue = isinstance(stopped, ClusterQueueState)
        reason: EvictionReason = "ClusterQueueStopped" if of_queue else "LocalQueueStopped"
        for key, running in stopped.running.items():
            admitted = running.admitted
            if not admitted.evicting and (blocker.drain or not admitted.may_start):
                yield DueEviction(workload=key, reason=reason)
