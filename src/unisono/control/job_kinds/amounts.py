"""What pods ask for, added up and written as people write it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from unisono.control.actions import Json
from unisono.kinds.quantity import MILLI, Quantity, format_amount


def requests_of(template: Json) -> dict[str, int]:
    """Return what the containers of a template ask for, limits where they name no request.

    >>> requests_of({"spec": {"containers": [{"resources": {"limits": {"cpu": "500m"}}}]}})
    {'cpu': 500}
    """
    found: dict[str, int] = {}
    for container in (template.get("spec") or {}).get("containers") or ():
        resources = container.get("resources") or {}
        asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, quantity in asked.items():
            found[name] = found.get(name, 0) + Quantity.from_raw(quantity).amount(name)
    return found


def total(parts: Iterable[tuple[int, Mapping[str, int]]]) -> dict[str, int]:
    """Add up so many times what each part asks for."""
    found: dict[str, int] = {}
    for count, amounts in parts:
        for name, amount in amounts.items():
            found[name] = found.get(name, 0) + count * amount
    return found


def written(amounts: Mapping[str, int]) -> dict[str, str]:
    """Write amounts as quantities.

    >>> written({"cpu": 1500, "memory": 16 * 10**9})
    {'cpu': '1500m', 'memory': '16G'}
    """
    return {name: format_amount(amount, name) for name, amount in sorted(amounts.items())}


def whole(amount: int, resource: str) -> int:
    """Return an amount in whole units, rounded up.

    >>> whole(1500, "cpu"), whole(3, "nvidia.com/gpu")
    (2, 3)
    """
    return -(-amount // MILLI) if resource == "cpu" else amount
