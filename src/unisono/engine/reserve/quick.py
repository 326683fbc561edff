"""The short way in for gangs that are counted: the same admission, without trying anything.

Pods without GPUs on a cluster without GPUs fill holes, the smallest first; so many of them are
started in a simulation, or by a busy batch queue, that the general way (flavors, topologies,
victims, scores) would be most of the work. Where anything else could make a difference this says
nothing, and the general way decides. Both give the same nodes; a property test compares them.
"""

from __future__ import annotations

from unisono.engine.decisions import Cycle, Starting
from unisono.engine.model.plan import Admit
from unisono.engine.model.workload import Admission, PodSetAssignment
from unisono.engine.order.lines import Waiting
from unisono.engine.reserve.agenda import Group
from unisono.engine.reserve.need import Counted
from unisono.engine.state.floor import tenants_of

# What an admission would be, before it is booked.
Offer = tuple[Admission, Starting]


def may_offer(cycle: Cycle, group: Group, known: Counted) -> bool:
    """Say whether counting is all that is needed to let a gang start, and whether it fits."""
    if not known.pods or not known.fills_holes or group.book.spec.checks:
        return False
    if cycle.claims or cycle.leaving:
        return False
    return known.room.total(cycle.ledger) >= known.pods


def offer(cycle: Cycle, waiting: Waiting, group: Group, known: Counted) -> Offer | None:
    """Say where a gang would go that may be offered a place."""
    chosen = known.room.choose(known.pods, cycle.ledger)
    if chosen is None:
        return None
    rows, counts = chosen
    floor = cycle.state.floor
    nodes = tuple(zip(floor.table.names(rows), counts.tolist(), strict=True))
    floor.tenancy.remember(nodes, rows, counts, known.pods)
    admission = Admission(
        queue=group.book.spec.name,
        pod_sets=(
            PodSetAssignment(
                name=known.pod_set, count=known.named, flavors=known.flavors, nodes=nodes
            ),
        ),
    )
    tenants = tenants_of(waiting.workload, admission)
    for tenant in tenants:
        tenant.rows, tenant.counts, tenant.pods = rows, counts, known.pods
    return admission, Starting(known.cells, tenants)


def admit(cycle: Cycle, waiting: Waiting, known: Counted, made: Offer, *, later: bool) -> None:
    """Book an offer and write it into the plan; `later`: seat it when somebody looks at nodes."""
    admission, starting = made
    cycle.ledger.add(starting.charges)
    for tenant in starting.tenants:
        if later:
            cycle.ledger.seat_later(tenant)
        else:
            cycle.ledger.seat(tenant)
    cycle.starting.append(starting)
    cycle.admissions.append(
        Admit(
            workload=waiting.workload.key,
            admission=admission,
            charges=tuple((cell.account, amount) for cell, amount in known.cells),
        )
    )
