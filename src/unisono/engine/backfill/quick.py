"""The admission of a counted gang: written down without trying anything.

Pods without GPUs on a cluster without GPUs fill holes, the smallest first; so many of them are
started in a simulation, or by a busy batch queue, that the general way (flavors, topologies,
victims, scores) would be most of the work. A property test compares both.
"""

from __future__ import annotations

from unisono.engine.backfill.need import Counted
from unisono.engine.backfill.pod_room import Chosen
from unisono.engine.model.names import NodeName, namespace_of
from unisono.engine.model.selection import label_map
from unisono.engine.model.workload import Admission, PodSetAssignment
from unisono.engine.state.nodes import NodeState
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.tenant import Tenant
from unisono.engine.state.transaction import Starting

# What an admission would be, before it is booked.
Offer = tuple[Admission, Starting]


def offer_on(
    nodes: NodeState, chosen: Chosen, waiting: Waiting, book: QueueBook, known: Counted
) -> tuple[Admission, tuple[Tenant, ...]]:
    """Write down that a gang goes to nodes that were chosen for it."""
    rows, counts = chosen
    admission = known.alone
    if admission is None:
        admission = Admission(queue=book.spec.name, pod_sets=(_assigned(nodes, chosen, known),))
        if known.room.is_single:
            known.alone = admission
    labels = waiting.workload.pod_sets[0].labels
    tenant = Tenant(
        nodes=admission.pod_sets[0].nodes,
        requests=known.requests,
        namespace=namespace_of(waiting.key) if labels else "",  # without labels nobody asks
        labels=label_map(labels) if labels else None,
        rows=rows,
        counts=counts,
        pods=known.pods,
        layout=nodes.table.layout,
    )
    nodes.expect(waiting.key, admission, (tenant,))
    return admission, (tenant,)


def _assigned(nodes: NodeState, chosen: Chosen, known: Counted) -> PodSetAssignment:
    rows, counts = chosen
    named: tuple[tuple[NodeName, int], ...]
    if known.room.is_even:
        named = tuple(nodes.table.singles(rows))
    else:
        named = tuple(zip(nodes.table.names(rows), counts.tolist(), strict=True))
    return PodSetAssignment(
        name=known.pod_set, count=known.named, flavors=known.flavors, nodes=named
    )
