"""`karpenter.sh`: NodePools, from which machines are bought, as the engine reads them.

A pool that the API accepts may still make no sense (a capacity type that does not exist). As with
Karpenter that pool is then not ready and says why; other pools stay in use. Spec provisioning §1.1.

NodeOverlays state requirements for machine types in the same form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from unisono.engine.model.provisioning import CAPACITY_TYPE, NODES, Pool
from unisono.engine.model.resources import Amounts, amounts
from unisono.engine.model.selection import Operator, Requirement, Taint
from unisono.kinds.core import cluster
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
    taints: tuple[cluster.Taint, ...] = ()
    startup_taints: tuple[cluster.Taint, ...] = ()
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


def _check(pool: NodePool, notes: Notes) -> None:
    if pool.spec.replicas is not None:
        if pool.spec.weight is not None:
            notes.problem("spec.weight", "a pool with replicas has no weight")
        others = [name for name in pool.spec.limits if name != NODES]
        if others:
            notes.problem(f"spec.limits.{others[0]}", "a pool with replicas only limits nodes")
    problem = problem_of(pool)
    if problem:
        notes.warn("PoolNotReady", "spec.template.spec.requirements", problem)


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
    _kind("karpenter.sh", "v1", "NodePool", NodePool, _check),
    _kind("karpenter.sh", "v1", "NodeClaim", Opaque),
    _kind("karpenter.k8s.aws", "v1", "EC2NodeClass", Opaque),
)
