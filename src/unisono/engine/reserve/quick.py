"""The short way in for gangs that are counted: the same admission, without trying anything.

Pods without GPUs on a cluster without GPUs fill holes, the smallest first; so many of them are
started in a simulation, or by a busy batch queue, that the general way (flavors, topologies,
victims, scores) would be most of the work. Where anything else could make a difference this says
nothing, and the general way decides. Both give the same nodes; a property test compares them.
"""

from __future__ import annotations

from unisono.engine.decisions import Cycle
from unisono.engine.ledger import Starting
from unisono.engine.model.names import NodeName, namespace_of
from unisono.engine.model.plan import Admit
from unisono.engine.model.selection import label_map
from unisono.engine.model.workload import Admission, PodSetAssignment
from unisono.engine.order.lines import Waiting
from unisono.engine.reserve.agenda import Group
from unisono.engine.reserve.need import Counted
from unisono.engine.reserve.pod_room import Chosen
from unisono.engine.state.floor import Floor
from unisono.engine.state.node_table import Integers
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.tenant import Tenant

# What an admission would be, before it is booked.
Offer = tuple[Admission, Starting]


def may_offer(cycle: Cycle, known: Counted) -> bool:
    """Say whether counting is all that is needed to let a gang start, and whether it fits."""
    if not known.fills_holes or cycle.claims or cycle.leaving:
        return False
    return known.room.total(cycle.ledger) >= known.pods


def offer(cycle: Cycle, waiting: Waiting, group: Group, known: Counted) -> Offer | None:
    """Say where a gang would go that may be offered a place."""
    chosen = known.room.choose(known.pods, cycle.ledger)
    if chosen is None:
        return None
    floor = cycle.state.floor
    admission, tenants = _write(floor, chosen, waiting, group.book, known)
    # Whoever is taken off the ledger again is soon asked for once more.
    floor.tenancy.remember(tenants[0].nodes, *chosen, known.pods)
    return admission, Starting(known.cells, tenants)


def offer_on(
    floor: Floor, caps: Integers, waiting: Waiting, book: QueueBook, known: Counted
) -> tuple[Admission, tuple[Tenant, ...]]:
    """Put a gang that fits into holes of these sizes, which shrink, and write it down."""
    chosen = known.room.pick(caps, known.pods)
    assert chosen is not None, "there is room for it"
    known.room.take(caps, chosen, known.pods)
    return _write(floor, chosen, waiting, book, known)


def _write(
    floor: Floor, chosen: Chosen, waiting: Waiting, book: QueueBook, known: Counted
) -> tuple[Admission, tuple[Tenant, ...]]:
    rows, counts = chosen
    nodes: tuple[tuple[NodeName, int], ...]
    if known.room.is_single:
        nodes = ((floor.table.name(rows.item()), known.pods),)
    elif known.room.is_even:
        nodes = tuple(floor.table.singles(rows))
    else:
        nodes = tuple(zip(floor.table.names(rows), counts.tolist(), strict=True))
    assigned = PodSetAssignment(
        name=known.pod_set, count=known.named, flavors=known.flavors, nodes=nodes
    )
    admission = Admission(queue=book.spec.name, pod_sets=(assigned,))
    labels = waiting.workload.pod_sets[0].labels
    tenant = Tenant(
        nodes=nodes,
        requests=known.requests,
        namespace=namespace_of(waiting.workload.key),
        labels=label_map(labels) if labels else None,
        rows=rows,
        counts=counts,
        pods=known.pods,
        layout=floor.table.layout,
    )
    floor.expect(admission, (tenant,))
    return admission, (tenant,)


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
            charges=known.charges,
        )
    )
