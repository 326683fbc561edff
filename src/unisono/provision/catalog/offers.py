"""Offers: instance types in zones with their prices, as the engine buys them; overlays over both.

`offerings_of` puts pools, instance types, offers and refusals together as one value. Instance
types of the user's own have the shape of `instance-types.json`, or are a plain list as Karpenter's
KWOK provider reads it; they replace built-in types of the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from unisono.control import names
from unisono.control.actions import Json, Patch, Ref, Steps
from unisono.control.conditions import find, with_condition
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.engine.model.node import Node
from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    MICRO,
    REGION,
    ZONE,
    CapacityType,
    InstanceType,
    Offer,
    Offerings,
    PendingNodeClaims,
    Pool,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Labels
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.provisioning.catalogue import Refused, outage_of
from unisono.kinds.decode import decode
from unisono.kinds.karpenter import (
    NodeOverlay,
    Overlay,
    overlay_of,
    problem_of_overlay,
)
from unisono.kinds.quantity import Quantity
from unisono.kube.form import Key
from unisono.kube.mapping import Kind
from unisono.provision.catalog.instance_types import (
    MachineType,
    Price,
    home_region,
    machine_types,
    region_of,
    zones_of,
)
from unisono.provision.catalog.nodes import COMMON_LABELS, capacity_of, machine_labels

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


def offerings_of(
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
    orphaned: Iterable[PendingNodeClaims] = (),
) -> Offerings | None:
    """Return what some pools can buy; None without any."""
    if not pools:
        return None
    known = machine_types() if types is None else types
    return Offerings(
        machines=machines(known.values()),
        offers=(*with_prices(offers(known.values(), regions), known, overlays), *more_offers),
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        outages=tuple(outage_of(one) for one in refused),
        overhead=OVERHEAD,
        soon_ms=soon_ms,
        under_way=tuple(sorted((under_way or {}).items())),
        spent_micro=spent_micro,
        coming=tuple(coming),
        orphaned=tuple(orphaned),
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


def with_offerings(
    snapshot: Snapshot, pools: Sequence[Pool], overlays: Sequence[Overlay] = ()
) -> Snapshot:
    """Return a picture in which these pools sell machines, at prices that overlays may change."""
    if not pools:
        return snapshot
    types = with_devices(machine_types(), overlays)
    regions = regions_of(pools, snapshot.nodes)
    offerings = offerings_of(pools, regions, types=types, overlays=overlays)
    return msgspec.structs.replace(snapshot, offerings=offerings)


# ---- overlays ------------------------------------------------------------------------------------
#
# NodeOverlays at work: other prices and more devices, over the catalogue; and what people see.
#
# Of several for the same thing the heaviest counts, of equals the one that sorts last by name.
# An overlay that makes no sense is not ready, says why, and changes nothing. Spec provisioning §1.


def overlays_in(view: View) -> tuple[Overlay, ...]:
    """Return the overlays of a cluster that can be used."""
    if not view.has(names.NODE_OVERLAY):
        return ()
    return usable_overlays(view.all(names.NODE_OVERLAY))


def usable_overlays(written: Iterable[Json]) -> tuple[Overlay, ...]:
    """Return those overlays that can be used."""
    read = (decode(NodeOverlay, obj, ignore_unknown=True)[0] for obj in written)
    return tuple(
        overlay_of(made) for made in read if made is not None and not problem_of_overlay(made)
    )


def _in_order(overlays: Iterable[Overlay]) -> list[Overlay]:
    """Return overlays, those first that yield to later ones."""
    return sorted(overlays, key=lambda one: (one.weight, one.name))


def with_devices(
    types: Mapping[str, MachineType], overlays: Sequence[Overlay]
) -> dict[str, MachineType]:
    """Return machine types with the devices that overlays add."""
    more = [one for one in _in_order(overlays) if one.capacity]
    return {name: _with_devices(machine, more) for name, machine in types.items()}


def _with_devices(machine: MachineType, overlays: Sequence[Overlay]) -> MachineType:
    labels = {**COMMON_LABELS, **machine_labels(machine)} if overlays else {}
    added: dict[str, str] = {}
    for one in overlays:
        if one.is_for(labels):
            added.update(one.capacity)
    if not added:
        return machine
    return msgspec.structs.replace(machine, allocatable={**machine.allocatable, **added})


def with_prices(
    offers: Sequence[Offer], types: Mapping[str, MachineType], overlays: Sequence[Overlay]
) -> tuple[Offer, ...]:
    """Return offers with the prices that overlays say."""
    dearer = [one for one in reversed(_in_order(overlays)) if one.sets_price]
    if not dearer:
        return tuple(offers)
    labels = {name: {**COMMON_LABELS, **machine_labels(machine)} for name, machine in types.items()}
    return tuple(_priced(offer, labels.get(offer.machine, {}), dearer) for offer in offers)


def _priced(offer: Offer, labels: Mapping[str, str], overlays: Sequence[Overlay]) -> Offer:
    place = {ZONE: offer.zone, REGION: offer.region, CAPACITY_TYPE: offer.capacity_type}
    for one in overlays:
        if one.is_for({**labels, **place}):
            return msgspec.structs.replace(offer, price_micro=one.priced(offer.price_micro))
    return offer


class Overlays:
    """Says of overlays whether they count."""

    name = "node-overlays"
    watches: Sequence[Kind] = (names.NODE_OVERLAY,)

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """An overlay itself."""
        yield own_key(obj)

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Write whether one can be used."""
        obj = view.get(names.NODE_OVERLAY, key.name)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        made, problems = decode(NodeOverlay, obj, ignore_unknown=True)
        problem = problem_of_overlay(made) if made is not None else problems[0].message
        status: Literal["True", "False"] = "False" if problem else "True"
        conditions = list((obj.get("status") or {}).get("conditions") or ())
        old = find(conditions, "Ready")
        if old is not None and (old["status"], old["message"]) == (status, problem):
            return
        for kind in ("ValidationSucceeded", "Ready"):
            reason = "ValidationFailed" if problem else kind
            conditions = with_condition(conditions, kind, status, reason, problem, now=now)
        yield Patch(Ref.to(obj), {"status": {"conditions": conditions}}, "status")
