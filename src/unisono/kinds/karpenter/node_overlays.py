"""`karpenter.sh` NodeOverlay: other prices, and more devices, for machine types that it selects.

    requirements      which machine types, zones and ways to buy; all have to be met
    price             what they cost an hour; or
    priceAdjustment   what is added to their price: "+0.1", "-2.5", "-15%"
    capacity          devices that nodes of these types have besides: a resource, and how many
    weight            of several that say the same the heaviest counts; of equals the last name

Spec provisioning §1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from unisono.engine.model.provisioning import CAPACITY_TYPE, MICRO, NODE_POOL, REGION, ZONE
from unisono.engine.model.selection import Requirement, meets
from unisono.kinds.decode import Schema
from unisono.kinds.karpenter.node_pools import MachineRequirement, problem_with, requirement_of
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind

_PLACES = (ZONE, REGION, CAPACITY_TYPE)
# Few enough digits for amounts in millionths.
_PRICE = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_CHANGE = re.compile(r"[+-]?(\d{1,9}(\.\d{1,9})?|\.\d{1,9})%?", re.ASCII)
_PLAIN = ("cpu", "memory", "ephemeral-storage", "pods")


class NodeOverlaySpec(Schema, frozen=True, kw_only=True):
    """What is different, and of what."""

    requirements: tuple[MachineRequirement, ...] = ()
    price: str | None = None
    price_adjustment: str | None = None
    capacity: Mapping[str, Quantity] = {}
    weight: int = 0


class NodeOverlay(Schema, frozen=True, kw_only=True):
    """Other prices, and more devices, for some machine types."""

    api_version: str = "karpenter.sh/v1alpha1"
    kind: str = "NodeOverlay"
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeOverlaySpec = NodeOverlaySpec()
    status: Any = None


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """An overlay that can be used."""

    name: str
    weight: int
    requirements: tuple[Requirement, ...]
    price_micro: int | None = None
    more_micro: int = 0
    more_share: float = 0.0  # of the price
    capacity: tuple[tuple[str, str], ...] = ()

    @property
    def sets_price(self) -> bool:
        """Whether it says what something costs."""
        return self.price_micro is not None or bool(self.more_micro or self.more_share)

    def is_for(self, labels: dict[str, str]) -> bool:
        """Say whether something with these labels is what it speaks of."""
        return all(meets(one, labels) for one in self.requirements)

    def priced(self, price_micro: int) -> int:
        """Return a price as the overlay changes it; never less than nothing."""
        if self.price_micro is not None:
            return self.price_micro
        return max(0, round(price_micro + self.more_micro + price_micro * self.more_share))


def overlay_of(made: NodeOverlay) -> Overlay:
    """Return what an overlay that has no problem says."""
    spec = made.spec
    change, share = spec.price_adjustment or "", 0.0
    if change.endswith("%"):
        change, share = "", float(change[:-1]) / 100
    return Overlay(
        name=made.metadata.name,
        weight=spec.weight,
        requirements=tuple(requirement_of(one) for one in spec.requirements),
        price_micro=None if spec.price is None else round(float(spec.price) * MICRO),
        more_micro=round(float(change or 0) * MICRO),
        more_share=share,
        capacity=tuple(sorted((name, amount.to_raw()) for name, amount in spec.capacity.items())),
    )


def problem_of_overlay(made: NodeOverlay) -> str:
    """Say what keeps an overlay from being used; nothing if it can be."""
    spec = made.spec
    for one in spec.requirements:
        problem = problem_with(one)
        if problem:
            return problem
        if one.key == NODE_POOL:
            return f"prices do not differ by pool; select machine types instead of {NODE_POOL}"
        if one.key in _PLACES and spec.capacity:
            return f"what a machine has does not depend on {one.key}"
    if spec.price is not None and spec.price_adjustment is not None:
        return "price and priceAdjustment exclude each other"
    if spec.price is not None and not _PRICE.fullmatch(spec.price):
        return f'price: "{spec.price}" is no price; say for example "38.5"'
    if spec.price_adjustment is not None and not _CHANGE.fullmatch(spec.price_adjustment):
        return f'priceAdjustment: "{spec.price_adjustment}" is none; say "-15%" or "+0.1"'
    for name in spec.capacity:
        if name in _PLAIN:
            return f"{name} cannot be added"
    return ""


def check_overlay(made: NodeOverlay, notes: Notes) -> None:
    """Warn of an overlay that will not be used."""
    problem = problem_of_overlay(made)
    if problem:
        notes.warn("OverlayNotReady", "spec", problem)


KINDS: tuple[Kind, ...] = (
    Kind(
        group="karpenter.sh",
        version="v1alpha1",
        kind="NodeOverlay",
        struct=NodeOverlay,
        namespaced=False,
        check=check_overlay,
    ),
)
