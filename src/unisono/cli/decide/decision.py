"""What a rehearsal decided, as one value: the output of `unisono decide`.

The field names are part of the command's contract (docs/reference/decide.md).
"""

from __future__ import annotations

import msgspec

from unisono.engine.estimates import estimates
from unisono.engine.explain.formatting import format_instant
from unisono.engine.explain.messages import message_of, reason_of, stage_of
from unisono.engine.explain.waiting import explanations
from unisono.engine.model.explanation import Expected, Explanation, Planned
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Admit, Plan, evictions, shrinks
from unisono.engine.model.provisioning import MICRO, Purchase
from unisono.engine.model.workload import Admission, PodSetAssignment
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.notes import Finding

# No scheduling cycle has to be short here, so more get an estimate than on a running cluster.
MOST_ESTIMATES = 1000


class PodSetDecision(msgspec.Struct, frozen=True, kw_only=True):
    """One pod set of an admitted workload."""

    name: str
    count: int
    flavors: dict[str, str]
    nodes: dict[str, int] | msgspec.UnsetType = msgspec.UNSET  # absent if placement was skipped
    # By node, of pods that share GPUs: the device of each.
    devices: dict[str, list[int]] | msgspec.UnsetType = msgspec.UNSET


class Admitted(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload that starts."""

    workload: str
    queue: str
    cycle: int
    pod_sets: list[PodSetDecision]


class Evicted(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that is evicted; `by` is the preemptor, null if there is none."""

    workload: str
    reason: str
    by: str | None
    cycle: int


class Shrunk(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload that loses some of its pods and keeps running; `by` is the preemptor."""

    workload: str
    reason: str
    by: str
    cycle: int
    pod_sets: list[PodSetDecision]


class Pending(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload that waits, and why."""

    workload: str
    queue: str | None
    stage: str
    reason: str
    message: str
    estimated_start: str | None = None


class Warned(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a manifest that works, but perhaps not as its author thinks."""

    file: str
    document: int
    path: str
    message: str


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """A reservation: the workload starts by then, if running jobs keep their time limits."""

    workload: str
    start: str
    end: str  # by its own limit


class NodeClaims(msgspec.Struct, frozen=True, kw_only=True, rename={"workload": "for"}):
    """Machines that are bought for a workload: alike, and so many."""

    pool: str
    type: str
    zone: str
    capacityType: str  # noqa: N815  # as the contract writes it
    count: int
    pricePerHour: float  # noqa: N815  # of all of them
    workload: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole answer."""

    cycles: int
    admitted: list[Admitted]
    evicted: list[Evicted]
    shrunk: list[Shrunk]
    pending: list[Pending]
    warnings: list[Warned]
    reservations: list[Reservation] = []
    node_claims: list[NodeClaims] = []


def decision(
    state: ClusterState, plans: list[Plan], warnings: list[Finding], *, now: Instant
) -> Decision:
    """Gather plans that were carried out on a state into one answer."""
    expected = estimates(state, now, most=MOST_ESTIMATES)
    numbered = list(enumerate(plans, start=1))
    effective = [number for number, made in numbered if _acts(made)]
    return Decision(
        cycles=max(effective, default=1),
        admitted=[
            _admitted(admit, number) for number, made in numbered for admit in made.admissions
        ],
        evicted=[
            Evicted(workload=out.workload, reason=out.reason, by=out.by, cycle=number)
            for number, made in numbered
            for out in evictions(made)
        ],
        shrunk=[
            Shrunk(
                workload=told.workload,
                reason=told.reason,
                by=told.by,
                cycle=number,
                pod_sets=_pod_sets(told.keeps),
            )
            for number, made in numbered
            for told in shrinks(made)
        ],
        pending=[_pending(why, expected.get(why.workload)) for why in explanations(state)],
        reservations=[
            Reservation(
                workload=date.workload,
                start=format_instant(date.start),
                end=format_instant(date.end),
            )
            for made in plans[-1:]
            for date in made.dates
            if date.workload in state.waiting
        ],
        node_claims=[
            claims
            for made in plans
            for admit in made.admissions
            if admit.purchase is not None
            for claims in _claims(admit.purchase)
        ],
        warnings=[
            Warned(file=w.file, document=w.document, path=w.path, message=w.message)
            for w in warnings
        ],
    )


def _claims(purchase: Purchase) -> list[NodeClaims]:
    """Count machines that are alike."""
    counts: dict[tuple[str, str, str, str], list[int]] = {}
    for node_claim in purchase.lots:
        alike = (node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type)
        counts.setdefault(alike, []).append(node_claim.price_micro)
    return [
        NodeClaims(
            pool=pool,
            type=machine,
            zone=zone,
            capacityType=sold,
            count=len(prices),
            pricePerHour=sum(prices) / MICRO,
            workload=purchase.workload,
        )
        for (pool, machine, zone, sold), prices in counts.items()
    ]


def _acts(made: Plan) -> bool:
    """Say whether a plan starts, evicts or shrinks a workload."""
    return bool(made.admissions or evictions(made) or shrinks(made))


def _pod_sets(admission: Admission) -> list[PodSetDecision]:
    return [
        PodSetDecision(
            name=assigned.name,
            count=assigned.count,
            flavors={str(resource): str(flavor) for resource, flavor in assigned.flavors},
            nodes={str(name): pods for name, pods in assigned.nodes} or msgspec.UNSET,
            devices=_devices(assigned) or msgspec.UNSET,
        )
        for assigned in admission.pod_sets
    ]


def _devices(assigned: PodSetAssignment) -> dict[str, list[int]]:
    """Return the devices of pods that share GPUs, by node."""
    found: dict[str, list[int]] = {}
    before = 0
    for name, pods in assigned.nodes if assigned.devices else ():
        found.setdefault(str(name), []).extend(assigned.devices[before : before + pods])
        before += pods
    return found


def _admitted(admit: Admit, cycle: int) -> Admitted:
    return Admitted(
        workload=admit.workload,
        queue=admit.admission.queue,
        cycle=cycle,
        pod_sets=_pod_sets(admit.admission),
    )


def _pending(why: Explanation, expected: Expected | None) -> Pending:
    dates = (fact for fact in why.blockers if isinstance(fact, Planned))
    fact: Planned | Expected | None = next(dates, expected)
    return Pending(
        workload=why.workload,
        queue=why.queue,
        stage=stage_of(why),
        reason=reason_of(why),
        message=message_of(why),
        estimated_start=format_instant(fact.start) if fact is not None else None,
    )
