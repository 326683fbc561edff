"""Machines for the pods of a running gang that lost nodes, where no other node will do.

Only what was lost is bought: of the type that the gang has left, or else of its GPUs, in its zone.
Everybody else stays, and quota is not asked: the gang holds it. Spec provisioning §5.8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from unisono.engine.model.explanation import CannotBuy
from unisono.engine.model.market import MACHINE_TYPE, ZONE, Purchase
from unisono.engine.model.names import NodeName, WorkloadKey
from unisono.engine.model.workload import Admission
from unisono.engine.placement.demand import narrowed
from unisono.engine.placement.gang import Gang, Spot
from unisono.engine.provisioning.purchase import MODEL_LABEL, Shop
from unisono.engine.provisioning.shelf import Shelf
from unisono.engine.repair import Stays, missing_of, refuse_if_broken, with_others
from unisono.engine.state.cluster import ClusterState


def replacement(
    state: ClusterState, key: WorkloadKey, lost: Collection[NodeName], stays: Stays
) -> tuple[Admission, Purchase] | None:
    """Return the gang on machines that are bought for what it lost; None if that is impossible."""
    market = state.config.market
    if market is None:
        return None
    state.refresh()
    holding = state.running[key].holding
    workload, admission = holding.workload, holding.admission
    gang = missing_of(state, key, lost, stays)
    shop = Shop(state, Shelf(market), state.now)
    for pins in _pins(state, admission, lost):
        labels = tuple(sorted(pins.items()))
        demands = tuple(narrowed(demand, labels) for demand in gang.demands if demand.most)
        answer = shop.buy(workload, Gang(key=gang.key, demands=demands))
        if isinstance(answer, CannotBuy) or not answer.purchase.lots:
            continue
        found = {spot.demand: spot for spot in answer.spots}
        repaired = msgspec.structs.replace(
            admission,
            pod_sets=tuple(
                with_others(one, found.get(one.name, Spot(one.name, ())), lost, stays)
                for one in admission.pod_sets
            ),
        )
        refuse_if_broken(state, workload, repaired, answer.purchase)
        return repaired, answer.purchase
    return None


def _pins(
    state: ClusterState, admission: Admission, lost: Collection[NodeName]
) -> Iterator[dict[str, str]]:
    """Yield what new machines have to share with those that are left, the closest first."""
    table = state.nodes.table
    rows = [
        table.row_of[name]
        for one in admission.pod_sets
        for name, _ in one.nodes
        if name not in lost and name in table.row_of
    ]
    left = [dict(node.labels) for row in rows if (node := table.nodes[row]) is not None]
    shared: dict[str, str] = {}
    for label in (ZONE, MODEL_LABEL, MACHINE_TYPE):
        values = {labels.get(label, "") for labels in left}
        if len(values) == 1 and (value := values.pop()):
            shared[label] = value
    yield shared
    if MACHINE_TYPE in shared:
        yield {label: value for label, value in shared.items() if label != MACHINE_TYPE}
