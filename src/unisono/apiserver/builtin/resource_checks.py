"""What Kubernetes refuses in what a container asks for.

Requests stay within limits; devices are whole, and requested just as they are limited.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.causes import forbidden, invalid, required
from unisono.apiserver.builtin.reach import Json, at
from unisono.apiserver.errors import Cause
from unisono.kinds.meta import wrong_with_label_key
from unisono.kinds.quantity import NANO, Quantity

_STANDARD = ("cpu", "memory", "ephemeral-storage")


def check_resources(resources: Json, path: str) -> Iterator[Cause]:
    """Yield the faults of requests and limits that stand at `path`."""
    limits, requests = at(resources, "limits"), at(resources, "requests")
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _check_amount(name, amount, f"{path}.{part}[{name}]")
    for name, amount in requests.items():
        at_ = f"{path}.requests"
        if name not in limits:
            if is_device(name):
                yield required(f"{path}.limits", f"limit must be set for non overcommitable {name}")
        elif is_device(name) and _nano(amount) != _nano(limits[name]):
            yield invalid(at_, amount, f"must be equal to {name} limit of {limits[name]}")
        elif _nano(amount) > _nano(limits[name]):
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield invalid(at_, amount, why)
    asked = {*limits, *requests}
    if any(name.startswith("hugepages-") for name in asked) and not asked & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")


def _check_amount(name: str, amount: object, path: str) -> Iterator[Cause]:
    if wrong := wrong_with_label_key(name):
        yield invalid(path, name, wrong)
    elif "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    elif _nano(amount) < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    elif is_device(name) and _nano(amount) % NANO:
        yield invalid(path, amount, "must be an integer")


def is_device(resource: str) -> bool:
    """Say whether a resource cannot be promised to two pods: devices, and huge pages."""
    if resource.startswith("hugepages-"):
        return True
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not (domain == "kubernetes.io" or domain.endswith(".kubernetes.io"))


def _nano(amount: object) -> int:
    try:
        return Quantity.from_raw(amount).nano
    except ValueError:
        return 0
