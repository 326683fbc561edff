"""Which nodes a pod may run on: labels, node affinity, taints and tolerations."""

from __future__ import annotations

from typing import Literal

import msgspec

Labels = tuple[tuple[str, str], ...]  # sorted by key

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class Requirement(msgspec.Struct, frozen=True):
    """One clause of a label selector or of a node affinity term."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()


# The requirements of one node affinity term are ANDed; the terms of a pod are ORed.
AffinityTerm = tuple[Requirement, ...]


class Toleration(msgspec.Struct, frozen=True):
    """A taint the pod accepts. An empty effect means every effect, an empty key every key."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: str = ""


class Taint(msgspec.Struct, frozen=True):
    """A taint: keeps pods off a node unless they tolerate it."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class LabelSelector(msgspec.Struct, frozen=True):
    """All requirements must hold; an empty selector matches everything."""

    requirements: tuple[Requirement, ...] = ()


def label_map(labels: Labels) -> dict[str, str]:
    """Return labels as a dictionary."""
    return dict(labels)


def meets(requirement: Requirement, labels: dict[str, str]) -> bool:
    """Say whether labels satisfy one requirement, as Kubernetes reads node affinity.

    >>> meets(Requirement("zone", "NotIn", ("a",)), {})
    True
    >>> meets(Requirement("cores", "Gt", ("8",)), {"cores": "16"})
    True
    """
    present = requirement.key in labels
    value = labels.get(requirement.key, "")
    match requirement.operator:
        case "In":
            return present and value in requirement.values
        case "NotIn":
            return not present or value not in requirement.values
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "Gt" | "Lt":
            return present and _compares(requirement, value)


def _compares(requirement: Requirement, value: str) -> bool:
    """Compare integers for Gt and Lt; anything that is not one integer never matches."""
    try:
        bound, actual = int(requirement.values[0]), int(value)
    except (ValueError, IndexError):
        return False
    return actual > bound if requirement.operator == "Gt" else actual < bound


def selects(selector: LabelSelector, labels: dict[str, str]) -> bool:
    """Say whether a label selector matches."""
    return all(meets(requirement, labels) for requirement in selector.requirements)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Say whether one toleration covers one taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if not toleration.key and toleration.operator != "Exists":
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value
