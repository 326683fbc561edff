"""A plan: the decision of one cycle, as data that leaves no choices.

Carrying it out is only writing: reserve quota for every admission, evict every victim, publish
every explanation. `apply_plan` does the same to the engine's own state.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from unisono.engine.model.explanation import Explanation
from unisono.engine.model.names import Instant, QueueName, WorkloadKey
from unisono.engine.model.provisioning import Purchase
from unisono.engine.model.resources import Usage
from unisono.engine.model.workload import Admission

PreemptionReason = Literal[
    "InClusterQueue",
    "InCohortReclamation",
    "InCohortReclaimWhileBorrowing",
    "InCohortFairSharing",
]
EvictionReason = Literal[
    "ClusterQueueStopped",
    "LocalQueueStopped",
    "PodsReadyTimeout",
    "AdmissionCheck",
    "MaximumExecutionTimeExceeded",
    "Deactivated",
]

# What happens to an evaluated workload that is not admitted (spec quota §5); values are recorded:
# retry   - stays in its queue and is evaluated again when its cohort tree changes
# park    - inadmissible, with its whole equivalence class, until quota is freed in its cohort tree
# stall   - StrictFIFO: stays the head and blocks its queue, until quota is freed in its cohort tree
# sticky  - a preemptor with a pending preemption: stays the head of its queue until admitted
# line    - with backfill: stays pending; the next cycle that concerns it evaluates it again
# bar     - over a limit (spec priority §7): limit-blocked, with its whole equivalence class, until
#           usage under that limit falls
Outcome = Literal["retry", "park", "stall", "sticky", "line", "bar"]


class Admit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Quota is reserved for this workload."""

    workload: WorkloadKey
    admission: Admission
    charges: Usage = ()  # what its queue is charged
    borrow_level: int = 0  # 0: within its own quota; higher: borrowed from further away
    # False while admission checks of its queue are not ready.
    checks_pass: bool = True
    replaces: WorkloadKey | None = None  # the elastic slice that ends with this admission
    # Machines that have to be ready before it starts; some of its nodes are these.
    purchase: Purchase | None = None
    # Gangs whose held nodes it uses opportunistically: it ends before they can start.
    opportunistic_on: tuple[WorkloadKey, ...] = msgspec.field(default=(), name="lent_by")
    # Its time limit, where the request left it open; None: as requested.
    limit_ms: int | None = None


class Victim(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that is preempted, or shrinks."""

    workload: WorkloadKey
    reason: PreemptionReason
    # True if an earlier plan evicted it already: it is counted on, not evicted again.
    already_evicting: bool = False
    keeps: Admission | None = None  # what it shrinks to; None: all of it is evicted


class Preempt(msgspec.Struct, frozen=True, kw_only=True):
    """Once these victims are gone, the workload fits as `admission` says."""

    workload: WorkloadKey
    admission: Admission
    victims: tuple[Victim, ...]
    buys: bool = False  # victims free quota only; its machines are bought once they are gone


class Await(msgspec.Struct, frozen=True, kw_only=True):
    """Once these terminating pods are gone, the workload fits as `admission` says."""

    workload: WorkloadKey
    admission: Admission
    pods: tuple[str, ...]  # namespace/name


class DueEviction(msgspec.Struct, frozen=True, kw_only=True):
    """An eviction that is no preemption."""

    workload: WorkloadKey
    reason: EvictionReason
    requeue_at: Instant | None = None  # requeued not before then
    deactivate: bool = False  # not requeued until spec.active is set again


class Wait(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An evaluated workload that is not admitted: what happens to it, and why."""

    outcome: Outcome
    explanation: Explanation
    # What has to be freed before it is evaluated again; None: anything in its cohort tree.
    unblocked_by: Usage | None = None
    watches_admitted: bool = False  # preemption candidates matter, too
    lacks_nodes: bool = False  # there was quota: any change of nodes evaluates it again


class BackfillReservation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A pending workload starts then at the latest, if all workloads keep their time limits."""

    workload: WorkloadKey
    start: Instant
    end: Instant


class Plan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One cycle's decision, in the order in which it was made."""

    based_on: int  # version of the state it was made from
    now: Instant
    admissions: tuple[Admit, ...] = ()
    preemptions: tuple[Preempt, ...] = ()
    awaits: tuple[Await, ...] = ()
    evictions_due: tuple[DueEviction, ...] = msgspec.field(default=(), name="stops")
    waits: tuple[Wait, ...] = ()
    # With backfill: those of pending workloads.
    reservations: tuple[BackfillReservation, ...] = msgspec.field(default=(), name="dates")
    examined: tuple[QueueName, ...] = ()  # queues whose heads were evaluated


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """One eviction of a plan, flat, for reports."""

    workload: WorkloadKey
    reason: PreemptionReason | EvictionReason
    by: WorkloadKey | None = None


def evictions(plan: Plan) -> tuple[Eviction, ...]:
    """List the new evictions of a plan, in decision order."""
    if not plan.evictions_due and not plan.preemptions:
        return ()
    due = [Eviction(workload=one.workload, reason=one.reason) for one in plan.evictions_due]
    preempted = [
        Eviction(workload=victim.workload, reason=victim.reason, by=preemption.workload)
        for preemption in plan.preemptions
        for victim in preemption.victims
        if not victim.already_evicting and victim.keeps is None
    ]
    return (*due, *preempted)


class Shrink(msgspec.Struct, frozen=True, kw_only=True):
    """One workload that a plan shrinks, flat, for reports."""

    workload: WorkloadKey
    reason: PreemptionReason
    by: WorkloadKey
    keeps: Admission


def shrinks(plan: Plan) -> tuple[Shrink, ...]:
    """List the workloads that a plan newly shrinks, in decision order."""
    if not plan.preemptions:
        return ()
    return tuple(
        Shrink(
            workload=victim.workload,
            reason=victim.reason,
            by=preemption.workload,
            keeps=victim.keeps,
        )
        for preemption in plan.preemptions
        for victim in preemption.victims
        if not victim.already_evicting and victim.keeps is not None
    )
