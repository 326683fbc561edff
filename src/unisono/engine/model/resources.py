"""Amounts of resources, and the accounts they are charged to.

`Amounts` is a sorted tuple of (resource, amount) pairs rather than a mapping because pod sets are
hashed: workloads of the same shape share one object and one verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from unisono.engine.model.names import FlavorName, ResourceName

Amounts = tuple[tuple[ResourceName, int], ...]

# A quota of 2^63-1 units or more means "no limit" (spec quota §3). Sums of such quotas stay exact
# because Python integers do not overflow.
UNLIMITED = 2**63 - 1


class Account(NamedTuple):
    """What usage is charged to: one flavor, or a pool of flavors, of one resource.

    A pool is named `pool:` plus its flavors, sorted and joined by `+`, so that two queues that
    list the same set in another order share one account.
    """

    flavor: str
    resource: ResourceName


Usage = tuple[tuple[Account, int], ...]


def amounts(mapping: Mapping[ResourceName, int] | Mapping[str, int]) -> Amounts:
    """Return the canonical form of a resource mapping; zero amounts are kept.

    >>> amounts({"memory": 5, "cpu": 100})
    (('cpu', 100), ('memory', 5))
    """
    return tuple(sorted((ResourceName(name), amount) for name, amount in mapping.items()))


def pool_name(flavors: Iterable[FlavorName]) -> str:
    """Return the account name of a pool of flavors.

    >>> pool_name(["b", "a"])
    'pool:a+b'
    """
    return "pool:" + "+".join(sorted(flavors))


@lru_cache(maxsize=1024)  # asked for every resource of every gang
def is_gpu(resource: str) -> bool:
    """Say whether a resource name means GPUs, whoever made them.

    >>> is_gpu("nvidia.com/gpu"), is_gpu("nvidia.com/mig-1g.5gb"), is_gpu("cpu")
    (True, True, False)
    """
    return resource.endswith("/gpu") or "/mig-" in resource
