"""What machines have to be, as NodePools and NodeOverlays say it."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.engine.model.provisioning import CAPACITY_TYPE
from unisono.engine.model.selection import Operator, Requirement
from unisono.kinds.decode import Schema
from unisono.kinds.digits import whole_number

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
