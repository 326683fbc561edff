"""What the registry knows of Kubernetes' own kinds, and the rules their field types cannot say."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kinds.core.cluster import (
    LimitRange,
    LimitRangeItem,
    Namespace,
    Node,
    PriorityClass,
    RuntimeClass,
)
from unisono.kinds.core.pod_groups import MEMBERS, check_pod
from unisono.kinds.core.schema import Pod
from unisono.kinds.core.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from unisono.kinds.notes import Notes
from unisono.kinds.quantity import Quantity
from unisono.kinds.registry import Kind


def _check_not_negative(resources: Mapping[str, Quantity], path: str, notes: Notes) -> None:
    for name, quantity in resources.items():
        if quantity.nano < 0:
            notes.problem(f"{path}[{name}]", f"is {quantity.text}; it must not be negative")


def _check_node(node: Node, notes: Notes) -> None:
    _check_not_negative(node.status.allocatable, "status.allocatable", notes)
    _check_not_negative(node.status.capacity, "status.capacity", notes)
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(node.spec.taints):
        if (taint.key, taint.effect) in seen:
            notes.problem(f"spec.taints[{index}]", f"{taint.key}:{taint.effect} is there twice")
        seen.add((taint.key, taint.effect))


def _check_runtime_class(runtime: RuntimeClass, notes: Notes) -> None:
    if runtime.overhead is not None:
        _check_not_negative(runtime.overhead.pod_fixed, "overhead.podFixed", notes)


def _check_limit_range(limit_range: LimitRange, notes: Notes) -> None:
    for index, item in enumerate(limit_range.spec.limits):
        _check_limit_range_item(item, f"spec.limits[{index}]", notes)


def _check_limit_range_item(item: LimitRangeItem, path: str, notes: Notes) -> None:
    """Report bounds that contradict each other: min, default request, default and max must rise."""
    rising = (
        ("min", item.min),
        ("defaultRequest", item.default_request),
        ("default", item.default),
        ("max", item.max),
    )
    for name, resources in (*rising, ("maxLimitRequestRatio", item.max_limit_request_ratio)):
        _check_not_negative(resources, f"{path}.{name}", notes)
    for place, (lower_name, lower) in enumerate(rising):
        for upper_name, upper in rising[place + 1 :]:
            for resource in sorted(lower.keys() & upper.keys()):
                if lower[resource].nano > upper[resource].nano:
                    at = f"{path}.{lower_name}[{resource}]"
                    more = f"is {lower[resource].text}, more than {upper_name}"
                    notes.problem(at, f"{more}, which is {upper[resource].text}")


KINDS = (
    Kind(group="", version="v1", kind="Namespace", struct=Namespace, namespaced=False),
    Kind(group="", version="v1", kind="Node", struct=Node, namespaced=False, check=_check_node),
    Kind(
        group="",
        version="v1",
        kind="Pod",
        struct=Pod,
        namespaced=True,
        check=check_pod,
        members=MEMBERS,
    ),
    Kind(
        group="",
        version="v1",
        kind="LimitRange",
        struct=LimitRange,
        namespaced=True,
        check=_check_limit_range,
    ),
    Kind(
        group="scheduling.k8s.io",
        version="v1",
        kind="PriorityClass",
        struct=PriorityClass,
        namespaced=False,
    ),
    Kind(
        group="node.k8s.io",
        version="v1",
        kind="RuntimeClass",
        struct=RuntimeClass,
        namespaced=False,
        check=_check_runtime_class,
    ),
    Kind(
        group="",
        version="v1",
        kind="PersistentVolumeClaim",
        struct=PersistentVolumeClaim,
        namespaced=True,
    ),
    Kind(
        group="",
        version="v1",
        kind="PersistentVolume",
        struct=PersistentVolume,
        namespaced=False,
    ),
    Kind(
        group="storage.k8s.io",
        version="v1",
        kind="StorageClass",
        struct=StorageClass,
        namespaced=False,
    ),
)
