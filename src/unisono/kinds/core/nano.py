"""Resource lists in nano-units: exact sums first, one rounding at the very end.

Two containers of 500u CPU together cost 1m, not 2m. So everything between a manifest and an engine
amount is kept in the finest unit that Kubernetes knows, and only `rounded` gives precision up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from unisono.engine.model.resources import UNLIMITED, Amounts, amounts, bounded, most_of
from unisono.kinds.core.schema import ResourceList
from unisono.kinds.quantity import Quantity, format_amount

Nano = dict[str, int]


def nano(resources: ResourceList) -> Nano:
    """Return a resource list in nano-units."""
    return {name: quantity.nano for name, quantity in resources.items()}


def rounded(resources: Mapping[str, int]) -> Amounts:
    """Return engine amounts: millicores of CPU and whole units of all else, rounded up.

    They are cut to what the engine counts; `beyond` says of which that is not the whole truth.
    """
    return amounts(
        {name: bounded(name, Quantity("", size).amount(name)) for name, size in resources.items()}
    )


def beyond(resources: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for every resource of which one pod asks for more than there can be.

    >>> list(beyond({"cpu": 9 * 10**24, "memory": 10**9}))
    ['asks for 9000000000000000 cpu; one pod can have 1000000000 cpu at most: ask for less']
    """
    for name, size in sorted(resources.items()):
        amount, most = Quantity("", size).amount(name), most_of(name)
        if amount > most:
            asked = "more than can be counted of" if amount >= UNLIMITED else ""
            asked = f"{asked} {name}" if asked else written(size, name)
            limit = f"{format_amount(most, name)} {name}"
            yield f"asks for {asked}; one pod can have {limit} at most: ask for less"


def written(size: int, resource: str) -> str:
    """Print nano-units of a resource as a user would write them: `8 nvidia.com/gpu`, `64Gi memory`.

    >>> written(8 * 10**9, "nvidia.com/gpu"), written(500 * 10**6, "cpu")
    ('8 nvidia.com/gpu', '500m cpu')
    """
    return f"{format_amount(Quantity('', size).amount(resource), resource)} {resource}"


def total(lists: Iterable[Mapping[str, int]]) -> Nano:
    """Return the sum of resource lists."""
    result: Nano = {}
    for resources in lists:
        for name, size in resources.items():
            result[name] = result.get(name, 0) + size
    return result


def highest(lists: Iterable[Mapping[str, int]]) -> Nano:
    """Return the largest amount of each resource."""
    result: Nano = {}
    for resources in lists:
        for name, size in resources.items():
            result[name] = max(result.get(name, size), size)
    return result


def first_of(preferred: Mapping[str, int], otherwise: Mapping[str, int]) -> Nano:
    """Return `preferred`, completed by what only `otherwise` has."""
    return {**otherwise, **preferred}
