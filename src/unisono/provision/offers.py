"""Machines and prices as the engine buys them, from the catalogue and from files of one's own.

A file of one's own has the shape of `instance-types.json`, or is a plain list as Karpenter's KWOK
provider reads it. Types of the same name take the place of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from unisono.engine.model.provisioning import MICRO, CapacityType, InstanceType, Offer
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Labels
from unisono.kinds.quantity import Quantity
from unisono.provision.machines import MachineType, Price, machine_types, zones_of
from unisono.provision.nodes import capacity_of, machine_labels

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


COMMON_LABELS = {"kubernetes.io/os": "linux"}


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
