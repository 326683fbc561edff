"""Orphaned NodeClaims: machines on their way for no gang; the next one that fits takes them over.

They were bought for a gang that lost its quota, was deleted, or could not have the rest of its
machines. They cost money already, so that a purchase counts them as free nodes, after those that
are there. Spec provisioning §5.8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from unisono.engine.model.names import WorkloadKey
from unisono.engine.model.provisioning import Market
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.candidates import ends_too_soon, spot_is_fine
from unisono.engine.provisioning.catalogue import Catalogue, Offering
from unisono.engine.provisioning.fitting import (
    label_in_the_way,
    room_of,
    slots_in,
    taint_in_the_way,
    topology_in_the_way,
)
from unisono.engine.provisioning.order import FreeNode, Order

_Place = tuple[str, str, str, str]


def orphaned_nodes(order: Order, catalogue: Catalogue) -> Iterator[FreeNode]:
    """Yield orphaned machines as free nodes for the demands that may use them."""
    lots = [node_claim for one in catalogue.market.adrift for node_claim in one.lots]
    if not lots:
        return
    offerings = {_place_of_offering(offering): offering for offering in catalogue.offerings}
    for node_claim in sorted(lots, key=lambda one: one.node):
        offering = offerings.get(
            (node_claim.pool, node_claim.machine, node_claim.zone, node_claim.capacity_type)
        )
        if offering is None or ends_too_soon(order, offering):
            continue  # its pool sells no such machines any more
        room = room_of(offering, catalogue.market.overhead)
        takes = frozenset(
            demand.name
            for demand in order.demands
            if slots_in(room, demand) and _may_use(order, offering, demand)
        )
        if takes:
            yield FreeNode(
                node_claim.node, node_claim.zone, offering.machine.model, room, takes, node_claim
            )


def _may_use(order: Order, offering: Offering, demand: Demand) -> bool:
    return (
        topology_in_the_way(demand) is None
        and taint_in_the_way(offering.pool.taints, demand.constraint) is None
        and label_in_the_way(offering, demand.constraint) is None
        and spot_is_fine(order, offering, demand)
    )


def _place_of_offering(offering: Offering) -> _Place:
    return (
        offering.pool.name,
        offering.machine.name,
        offering.offer.zone,
        offering.offer.capacity_type,
    )


def orphaning(market: Market, keys: Collection[WorkloadKey]) -> Market:
    """Return the market once the machines that are coming for these gangs are orphaned."""
    gone = tuple(one for one in market.coming if one.workload in keys)
    if not gone:
        return market
    return msgspec.structs.replace(
        market,
        coming=tuple(one for one in market.coming if one.workload not in keys),
        adrift=(*market.adrift, *gone),
    )
