"""Which machines to buy: one gang over the whole catalogue, three zones, three capacity types.

The promise is 50 ms for 512 machines, whatever the wishes; and what a plan costs to make must not
grow with the number of pods, only with the kinds of machines. Nothing is remembered between two
plans: what can be bought is read anew and the table of prices is worked out each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from bench.harness import Finding, Scale, repeated, row, seconds, target
from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Provisioning
from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    ZONE,
    Offer,
    Offerings,
    Pool,
    ProvisioningOptions,
)
from unisono.engine.model.resources import amounts
from unisono.engine.model.selection import Requirement
from unisono.engine.placement.demand import Demand
from unisono.engine.provisioning.catalogue import Catalogue
from unisono.engine.provisioning.cover import cover
from unisono.engine.provisioning.order import Filled, Order
from unisono.engine.provisioning.planner import choose
from unisono.provision.catalog.offers import offerings_of

PLAN_MS = 50  # 512 machines
MACHINES = 512
PODS: dict[Scale, tuple[int, ...]] = {
    "full": (8, 64, 512, 4_096),
    "quick": (8, 512),
    "tiny": (8,),
}
WISHES = {
    "on-demand": ProvisioningOptions(),
    "spot allowed": ProvisioningOptions(spot="true"),
    "everything mixed": ProvisioningOptions(spot="mixed", mixed_models=True, scope="any"),
}


def measure(scale: Scale) -> Iterator[Finding]:
    """Plan larger and larger gangs of whole machines, and of single GPUs."""
    offerings = _offerings()
    for gpus in (8, 1):
        for what, wish in WISHES.items():
            for pods in PODS[scale]:
                order = _order(pods, gpus, wish)
                taken = repeated(partial(_plan, offerings, order), samples=10)
                name = f"{gpus} GPU{'s' if gpus > 1 else ''} a pod, {what}"
                measured = row(name, pods, "pods", taken, "ms")
                yield measured
                if gpus == 8 and pods == MACHINES:
                    label = f"{MACHINES} machines, {what}"
                    yield target(label, measured, PLAN_MS, better="below")


def _plan(offerings: Offerings, order: Order) -> float:
    cover.cache_clear()
    return seconds(lambda: _complete(choose(order, Catalogue(offerings))))


def _complete(answer: object) -> None:
    assert isinstance(answer, Filled), "the catalogue has no bounds"


def _offerings() -> Offerings:
    """The whole catalogue in three zones; what is on demand can be reserved, too."""
    zones = ("us-east-1a", "us-east-1b", "us-east-1c")
    pool = Pool(
        name="gpu",
        requirements=(
            Requirement(ZONE, "In", zones),
            Requirement(CAPACITY_TYPE, "In", ("reserved", "on-demand", "spot")),
        ),
    )
    made = offerings_of([pool], ["us-east-1", "us-central1", "eastus"])
    assert made is not None, "there is a pool"
    moved = [
        msgspec.structs.replace(one, zone=zones[number % 3], region="us-east-1")
        if one.region != "us-east-1"
        else one
        for number, one in enumerate(made.offers)
    ]
    return msgspec.structs.replace(made, offers=(*moved, *map(_reserved, _on_demand(moved))))


def _on_demand(offers: list[Offer]) -> list[Offer]:
    return [one for one in offers if one.capacity_type == "on-demand"]


def _reserved(one: Offer) -> Offer:
    return msgspec.structs.replace(one, capacity_type="reserved", stock=4)


def _order(pods: int, gpus: int, wish: ProvisioningOptions) -> Order:
    asked = amounts({"nvidia.com/gpu": gpus, "cpu": 4_000, "memory": 32 * 2**30})
    wanted = Demand(name="main", least=pods, most=pods, requests=asked)
    return Order(demands=(wanted,), now=Instant(0), policy=Provisioning(), buying=wish)
