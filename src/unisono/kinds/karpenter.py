"""`karpenter.sh`: NodePools and NodeOverlays, from which nodes are provisioned.

A pool that the API accepts may still make no sense (a capacity type that does not exist). As with
Karpenter that pool is then not ready and says why; other pools stay in use.

A NodeOverlay gives machine types that it selects other prices and more devices:

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
from typing import Any, ClassVar

import msgspec

from unisono.engine.model.provisioning import (
    CAPACITY_TYPE,
    MICRO,
    NODE_POOL,
    NODES,
    REGION,
    ZONE,
    Pool,
)
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import Operator, Requirement, Taint, meets
from unisono.kinds.core import nodes
from unisono.kinds.core.selection import labels_of
from unisono.kinds.decode import Schema
from unisono.kinds.digits import finite_number, whole_number
from unisono.kinds.meta import ObjectMeta
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind

_CAPACITY_TYPES = ("spot", "on-demand", "reserved")
_PLAIN: Mapping[str, Operator] = {
    "In": "In",
    "NotIn": "NotIn",
    "Exists": "Exists",
    "DoesNotExist": "DoesNotExist",
    "Gt": "Gt",
    "Lt": "Lt",
}
# Old names of labels that Kubernetes has newer ones for.
_RENAMED = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}


class MachineRequirement(Schema, frozen=True, kw_only=True):
    """What machines have to be."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class PoolRequirement(MachineRequirement, frozen=True, kw_only=True):
    """What machines of a pool have to be."""

    min_values: int | None = None


def problem_with(one: MachineRequirement) -> str:
    """Say why a requirement makes no sense; nothing if it does."""
    if one.operator not in (*_PLAIN, "Gte", "Lte"):
        return f"requirement {one.key} has the unknown operator {one.operator}"
    if one.operator in ("Gt", "Lt", "Gte", "Lte"):
        if len(one.values) != 1 or whole_number(one.values[0]) is None:
            return f"requirement {one.key} {one.operator} needs one whole number"
    if one.operator == "In" and not one.values:
        return f"requirement {one.key} In has no values"
    is_type = one.key == CAPACITY_TYPE and one.operator == "In"
    if is_type and not set(one.values) & set(_CAPACITY_TYPES):
        return f"no capacity type of {', '.join(one.values)} exists"
    return ""


def requirement_of(one: MachineRequirement) -> Requirement:
    """Return a requirement in the words of the engine."""
    key = _RENAMED.get(one.key, one.key)
    number = (whole_number(one.values[0]) if one.values else None) or 0
    if one.operator == "Gte":
        return Requirement(key, "Gt", (str(number - 1),))
    if one.operator == "Lte":
        return Requirement(key, "Lt", (str(number + 1),))
    return Requirement(key, _PLAIN.get(one.operator, "In"), one.values)


# Interruptions of a machine in a month, or in any other time: more than one a second is no rate.
_MOST_INTERRUPTIONS = 1e6

GANG_SPOT = "unisono.dev/gang-spot"
INTERRUPTIONS = "unisono.dev/interruptions-per-node-hour"


class PoolNodeSpec(Schema, frozen=True, kw_only=True):
    """What nodes of a pool are like."""

    is_open: ClassVar[bool] = True
    requirements: tuple[PoolRequirement, ...] = ()
    taints: tuple[nodes.Taint, ...] = ()
    startup_taints: tuple[nodes.Taint, ...] = ()
    node_class_ref: Any = None
    expire_after: str | None = None
    termination_grace_period: str | None = None


class PoolNodeMeta(Schema, frozen=True, kw_only=True):
    """Labels and annotations of a pool's nodes."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class PoolTemplate(Schema, frozen=True, kw_only=True):
    """The nodes that a pool makes."""

    metadata: PoolNodeMeta = PoolNodeMeta()
    spec: PoolNodeSpec = PoolNodeSpec()


class NodePoolSpec(Schema, frozen=True, kw_only=True):
    """What may be bought."""

    template: PoolTemplate = PoolTemplate()
    disruption: Any = None
    limits: Mapping[str, Quantity] = {}
    weight: int | None = None
    replicas: int | None = None


class NodePool(Schema, frozen=True, kw_only=True):
    """Machines that may be bought, and how many."""

    api_version: str = "karpenter.sh/v1"
    kind: str = "NodePool"
    metadata: ObjectMeta = ObjectMeta()
    spec: NodePoolSpec = NodePoolSpec()
    status: Any = None


def pool_of(pool: NodePool, used: Mapping[str, int] | None = None) -> Pool:
    """Return what a NodePool lets us buy, beside what its machines have already."""
    spec = pool.spec.template.spec
    annotations = pool.metadata.annotations
    rate = annotations.get(INTERRUPTIONS, "")
    refused = problem_of(pool)
    if not refused and pool.spec.replicas is not None:
        refused = "it is static: it keeps its number of nodes and buys nothing for a gang"
    return Pool(
        name=pool.metadata.name,
        weight=pool.spec.weight or 0,
        labels=labels_of(pool.spec.template.metadata.labels),
        taints=tuple(Taint(one.key, one.value, one.effect) for one in spec.taints),
        requirements=tuple(requirement_of(one) for one in spec.requirements),
        limits=_limits(pool.spec.limits),
        used=amounts(dict(used or {})),
        refused=refused,
        allows_gang_spot=annotations.get(GANG_SPOT) == "allow",
        interruptions_milli=_rate_milli(rate),
    )


def problem_of(pool: NodePool) -> str:
    """Say what keeps a pool from being used; nothing if it can be."""
    found = (problem_with(one) for one in pool.spec.template.spec.requirements)
    return next((problem for problem in found if problem), "")


def _limits(written: Mapping[str, Quantity]) -> Amounts:
    return amounts({name: quantity.amount(name) for name, quantity in written.items()})


def _rate_milli(text: str) -> int | None:
    """Return how often machines of a pool are taken away, in thousandths; None if it is unsaid."""
    rate = finite_number(text, _MOST_INTERRUPTIONS)
    return None if rate is None else round(rate * 1000)


def check_pool(pool: NodePool, notes: Notes) -> None:
    if pool.spec.replicas is not None:
        if pool.spec.weight is not None:
            notes.problem("spec.weight", "a pool with replicas has no weight")
        others = [name for name in pool.spec.limits if name != NODES]
        if others:
            notes.problem(f"spec.limits.{others[0]}", "a pool with replicas only limits nodes")
    problem = problem_of(pool)
    if problem:
        notes.warn("PoolNotReady", "spec.template.spec.requirements", problem)


# ---- NodeOverlay ---------------------------------------------------------------------------------

_WHERE = (ZONE, REGION, CAPACITY_TYPE)
# Few enough digits for amounts in millionths.
_PRICE = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_CHANGE = re.compile(r"[+-]?(\d{1,9}(\.\d{1,9})?|\.\d{1,9})%?", re.ASCII)
_NOT_DEVICES = ("cpu", "memory", "ephemeral-storage", "pods")


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
        if one.key in _WHERE and spec.capacity:
            return f"what a machine has does not depend on {one.key}"
    if spec.price is not None and spec.price_adjustment is not None:
        return "price and priceAdjustment exclude each other"
    if spec.price is not None and not _PRICE.fullmatch(spec.price):
        return f'price: "{spec.price}" is no price; say for example "38.5"'
    if spec.price_adjustment is not None and not _CHANGE.fullmatch(spec.price_adjustment):
        return f'priceAdjustment: "{spec.price_adjustment}" is none; say "-15%" or "+0.1"'
    for name in spec.capacity:
        if name in _NOT_DEVICES:
            return f"{name} cannot be added"
    return ""


def check_overlay(made: NodeOverlay, notes: Notes) -> None:
    """Warn of an overlay that will not be used."""
    problem = problem_of_overlay(made)
    if problem:
        notes.warn("OverlayNotReady", "spec", problem)


# ---- what the registry lists ---------------------------------------------------------------------


class Opaque(Schema, frozen=True, kw_only=True):
    """An object that is kept, and that no decision reads."""

    is_open: ClassVar[bool] = True
    api_version: str
    kind: str
    metadata: ObjectMeta = ObjectMeta()


def _kind(
    group: str, version: str, kind: str, struct: type[msgspec.Struct], check: Any = None
) -> Kind:
    return Kind(
        group=group, version=version, kind=kind, struct=struct, namespaced=False, check=check
    )


KINDS: tuple[Kind, ...] = (
    _kind("karpenter.sh", "v1", "NodePool", NodePool, check_pool),
    _kind("karpenter.sh", "v1", "NodeClaim", Opaque),
    _kind("karpenter.k8s.aws", "v1", "EC2NodeClass", Opaque),
    _kind("karpenter.sh", "v1alpha1", "NodeOverlay", NodeOverlay, check_overlay),
)
