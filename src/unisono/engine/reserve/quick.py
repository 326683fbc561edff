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
from unisono.engine.reserve.counting import fill_holes
from unisono.engine.reserve.need import Counted
from unisono.engine.state.floor import tenants_of

# What an admission would be, before it is booked.
Offer = tuple[Admission, Starting]


def offer(cycle: Cycle, waiting: Waiting, group: Group, known: Counted) -> Offer | None:
    """Say where a gang would go; None if that needs more than counting, or does not work."""
    if not known.pods or not known.fills_holes or group.book.spec.checks:
        return None
    if cycle.claims or cycle.leaving:
        return None
    table, workload = cycle.state.floor.table, waiting.workload
    view = cycle.state.floor.in_order(known.levels)
    caps = known.capacities(table.free)[view]
    taken = fill_holes(caps, known.pods)
    if taken is None:
        return None
    positions, counts = taken
    names = table.names(view[positions])
    admission = Admission(
        queue=group.book.spec.name,
        pod_sets=(
            PodSetAssignment(
                name=known.pod_set,
                count=known.named,
                flavors=known.flavors,
                nodes=tuple(zip(names, counts.tolist(), strict=True)),
            ),
        ),
    )
    return admission, Starting(known.cells, tenants_of(workload, admission))


def admit(cycle: Cycle, waiting: Waiting, known: Counted, made: Offer) -> None:
    """Book an offer and write it into the plan."""
    admission, starting = made
    cycle.ledger.add(starting.charges)
    for tenant in starting.tenants:
        cycle.ledger.seat(tenant)
    cycle.starting.append(starting)
    cycle.admissions.append(
        Admit(
            workload=waiting.workload.key,
            admission=admission,
            charges=tuple((cell.account, amount) for cell, amount in known.cells),
        )
    )
