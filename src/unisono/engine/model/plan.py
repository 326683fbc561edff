"""A plan: the decision of one cycle, as data that leaves no choices.

Carrying it out is only writing: reserve quota for every admission, tell every victim to leave,
publish every explanation. `ClusterState.apply` does the same to the engine's own picture.
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
StopReason = Literal[
    "ClusterQueueStopped",
    "LocalQueueStopped",
    "PodsReadyTimeout",
    "AdmissionCheck",
    "MaximumExecutionTimeExceeded",
    "Deactivated",
]

# What happens to an examined workload that is not admitted (spec quota §5):
# retry   - stays where it is and is examined again when its cohort tree changes
# park    - leaves the line, with all of its shape, until quota is freed in its cohort tree
# stall   - StrictFIFO: stays at the head and blocks, until quota is freed in its cohort tree
# sticky  - made others leave; stays the head of its queue until it is admitted
# line    - with backfill: stays where it is; the next pass that concerns it looks again
# bar     - over a limit (spec turns §7); leaves the line, with all of its class, until those who
#           share the limit use less
Outcome = Literal["retry", "park", "stall", "sticky", "line", "bar"]


class Admit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Quota is reserved for this workload."""

    workload: WorkloadKey
    admission: Admission
    charges: Usage = ()  # what it costs the queue, flavor-resource by flavor-resource
    borrow_level: int = 0  # 0: within its own quota; higher: borrowed from further away
    # False while admission checks of its queue have to agree first.
    checks_pass: bool = True
    replaces: WorkloadKey | None = None  # the elastic slice that ends with this admission
    # Machines that have to come before it starts; some of its nodes are these.
    purchase: Purchase | None = None
    # Whose nodes it uses until their machines are there: it is over by then.
    lent_by: tuple[WorkloadKey, ...] = ()
    # How long it may run, where it left that open; None: as long as it said.
    limit_ms: int | None = None


class Victim(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that has to leave, or to give up some of its pods."""

    workload: WorkloadKey
    reason: PreemptionReason
    # True if an earlier plan told it already: it is counted on, not told again.
    already_evicting: bool = False
    keeps: Admission | None = None  # what it goes on with; None: all of it leaves


class Preempt(msgspec.Struct, frozen=True, kw_only=True):
    """These victims leave, and then the workload fits as described by `admission`."""

    workload: WorkloadKey
    admission: Admission
    victims: tuple[Victim, ...]
    buys: bool = False  # they leave for the quota; its machines are bought when they have left


class Await(msgspec.Struct, frozen=True, kw_only=True):
    """These pods of others leave by themselves, and then the workload fits as `admission` says."""

    workload: WorkloadKey
    admission: Admission
    pods: tuple[str, ...]  # namespace/name


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """A workload loses its quota for a reason that is nobody else's need."""

    workload: WorkloadKey
    reason: StopReason
    requeue_at: Instant | None = None  # back in the queue not before then
    deactivate: bool = False  # and not at all until somebody sets spec.active again


class Wait(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An examined workload that is not admitted: what becomes of it, and why."""

    outcome: Outcome
    explanation: Explanation
    # What has to be freed before another look is worth it; None: anything in its cohort tree.
    unblocked_by: Usage | None = None
    watches_holdings: bool = False  # it also matters who runs: somebody might be displaced
    lacks_nodes: bool = False  # there was quota: any change of nodes is worth another look


class Date(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A waiting workload is planned to start then, at the latest, if limits are honest."""

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
    stops: tuple[Stop, ...] = ()
    waits: tuple[Wait, ...] = ()
    dates: tuple[Date, ...] = ()  # with backfill: when those who wait are to start
    examined: tuple[QueueName, ...] = ()  # queues whose heads were looked at


class Eviction(msgspec.Struct, frozen=True, kw_only=True):
    """One workload told to leave by a plan, flat, for those who report."""

    workload: WorkloadKey
    reason: PreemptionReason | StopReason
    by: WorkloadKey | None = None


def evictions(plan: Plan) -> tuple[Eviction, ...]:
    """List who is newly told to leave, in decision order."""
    if not plan.stops and not plan.preemptions:
        return ()
    stopped = [Eviction(workload=stop.workload, reason=stop.reason) for stop in plan.stops]
    preempted = [
        Eviction(workload=victim.workload, reason=victim.reason, by=preemption.workload)
        for preemption in plan.preemptions
        for victim in preemption.victims
        if not victim.already_evicting and victim.keeps is None
    ]
    return (*stopped, *preempted)


class Shrink(msgspec.Struct, frozen=True, kw_only=True):
    """One workload told by a plan to give up pods, flat, for those who report."""

    workload: WorkloadKey
    reason: PreemptionReason
    by: WorkloadKey
    keeps: Admission


def shrinks(plan: Plan) -> tuple[Shrink, ...]:
    """List who is newly told to give up pods, in decision order."""
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
