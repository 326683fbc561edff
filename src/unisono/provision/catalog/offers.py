"""Offers: instance types in zones with their prices, as the engine buys them.

`market_of` puts pools, instance types, offers and refusals together as one value. Instance types of
the user's own have the shape of `instance-types.json`, or are a plain list as Karpenter's KWOK
provider reads it; they replace built-in types of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from unisono.engine.model.node import Node
from unisono.engine.model.provisioning import (
    MICRO,
    REGION,
    ZONE,
    CapacityType,
    InstanceType,
    Market,
    Offer,
    PendingNodeClaims,
    Pool,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Labels
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.provisioning.catalogue import Refused, outage_of
from unisono.kinds.karpenter import Overlay
from unisono.kinds.quantity import Quantity
from unisono.provision.catalog.instance_types import (
    MachineType,
    Price,
    home_region,
    machine_types,
    region_of,
    zones_of,
)
from unisono.provision.catalog.nodes import COMMON_LABELS, capacity_of, machine_labels
from unisono.provision.catalog.overlays import with_devices, with_prices

_RESERVED_SHARE = 1000  # a reservation is paid for already: a thousandth of the price breaks ties


def machines(types: Iterable[MachineType]) -> tuple[InstanceType, ...]:
    """Return types of machines as the engine knows them, by name."""
    return tuple(machine_of(one) for one in sorted(types, key=lambda one: one.name))


def machine_of(one: MachineType) -> InstanceType:
    """Return one type of machine as the engine knows it."""
    device = one.accelerator
    return InstanceType(
        name=one.name,
        labels=tuple(sorted({**COMMON_LABELS, **machine_labels(one)}.items())),
        allocatable=_amounts(one.allocatable),
        capacity=_amounts(capacity_of(one)),
        model=(device.product or device.model) if device is not None else "",
    )


def _amounts(written: Mapping[str, str]) -> tuple[Any, ...]:
    return amounts({name: Quantity.from_raw(text).amount(name) for name, text in written.items()})


def offers(types: Iterable[MachineType], regions: Sequence[str]) -> tuple[Offer, ...]:
    """Return what is sold in these regions, in every zone of them."""
    return tuple(
        offer
        for one in sorted(types, key=lambda one: one.name)
        for region in regions
        if region in one.price
        for zone in zones_of(region)
        for offer in _of(one, region, zone, one.price[region])
    )


def _of(one: MachineType, region: str, zone: str, price: Price) -> Iterator[Offer]:
    asked = price.on_demand if price.on_demand is not None else price.estimate_on_demand
    prices: dict[CapacityType, float | None] = {"on-demand": asked, "spot": price.spot}
    for capacity_type, dollars in prices.items():
        if dollars is not None:
            yield Offer(
                machine=one.name,
                zone=zone,
                region=region,
                capacity_type=capacity_type,
                price_micro=round(dollars * MICRO),
            )


def labels_of(labels: Mapping[str, str]) -> Labels:
    """Return labels as the engine keeps them."""
    return tuple(sorted(labels.items()))


def merged(*more: Mapping[str, MachineType]) -> dict[str, MachineType]:
    """Return the built-in types with others over them."""
    found = dict(machine_types())
    for types in more:
        found.update(types)
    return found


# What agents take of every node by default.
OVERHEAD = amounts({"cpu": 200, "memory": 300 * 2**20, "pods": 5})


def market_of(
    pools: Sequence[Pool],
    regions: Sequence[str],
    *,
    types: Mapping[str, MachineType] | None = None,
    overlays: Sequence[Overlay] = (),
    refused: Iterable[Refused] = (),
    more_offers: Iterable[Offer] = (),
    under_way: Mapping[str, int] | None = None,
    spent_micro: int = 0,
    soon_ms: int = 150_000,
    coming: Iterable[PendingNodeClaims] = (),
    adrift: Iterable[PendingNodeClaims] = (),
) -> Market | None:
    """Return the market of some pools; None without any."""
    if not pools:
        return None
    known = machine_types() if types is None else types
    return Market(
        machines=machines(known.values()),
        offers=(*with_prices(offers(known.values(), regions), known, overlays), *more_offers),
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        outages=tuple(outage_of(one) for one in refused),
        overhead=OVERHEAD,
        soon_ms=soon_ms,
        under_way=tuple(sorted((under_way or {}).items())),
        spent_micro=spent_micro,
        coming=tuple(coming),
        adrift=tuple(adrift),
    )


def regions_of(pools: Iterable[Pool], nodes: Iterable[Node]) -> list[str]:
    """Return where machines are bought: where pools or nodes say, else at home."""
    found: dict[str, None] = {}
    for pool in pools:
        for one in pool.requirements:
            if one.operator == "In" and one.key == REGION:
                found.update(dict.fromkeys(one.values))
            elif one.operator == "In" and one.key == ZONE:
                found.update(dict.fromkeys(map(region_of, one.values)))
    for node in nodes:
        region = dict(node.labels).get(REGION)
        if region:
            found[region] = None
    return sorted(found) or [home_region()]


def with_market(
    snapshot: Snapshot, pools: Sequence[Pool], overlays: Sequence[Overlay] = ()
) -> Snapshot:
    """Return a picture in which these pools sell machines, at prices that overlays may change."""
    if not pools:
        return snapshot
    types = with_devices(machine_types(), overlays)
    regions = regions_of(pools, snapshot.nodes)
    market = market_of(pools, regions, types=types, overlays=overlays)
    return msgspec.structs.replace(snapshot, market=market)
