"""Amounts of resources, and the flavor-resources they are charged to.

`Amounts` is a sorted tuple of (resource, amount) pairs rather than a mapping because pod sets are
hashed: workloads of one equivalence class share one object and one evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from unisono.engine.model.names import CPU, PODS, FlavorName, ResourceName

Amounts = tuple[tuple[ResourceName, int], ...]

# A quota of 2^63-1 units or more means "no limit" (spec quota §3). Sums of such quotas stay exact
# because Python integers do not overflow.
UNLIMITED = 2**63 - 1

# The largest numbers that stand for something. Columns of nodes are 64-bit integers: with these
# bounds, the sums over 32,768 nodes, or over as many pods of one node, stay below 2^63, and so does
# what a score multiplies (thousandths of all GPUs of a node with its millicores). A pod that asks
# for more can never run, and its workload says so; what a node has on top is not counted.
MAX_AMOUNT = 2**48  # of one pod or one node: 256 TiB
MAX_MILLICORES = 10**12  # a thousand million cores
MAX_GPUS = 1024  # of one pod or one node, which has a column for each that is shared
MAX_PODS_PER_NODE = 4096  # kubelets take 110 by default, and some hundreds where configured
MAX_COUNT = 2**31 - 1  # of anything in a manifest: Kubernetes counts in 32 bits
MAX_TOTAL = 10**18  # of all pods of a workload together: an exabyte, or 10^15 cores

# A GPU that several pods share is counted in thousandths, by a resource of its own: `500` of
# `nvidia.com/gpu-milli` is half of one `nvidia.com/gpu`.
WHOLE_GPU = 1000
_MILLI = "-milli"


class FlavorResource(NamedTuple):
    """What usage is charged to: one flavor, or a pool of flavors, of one resource.

    A pool is named `pool:` plus its flavors, sorted and joined by `+`, so that two queues that
    list the same set in another order share one flavor-resource.
    """

    flavor: str
    resource: ResourceName


Usage = tuple[tuple[FlavorResource, int], ...]


def amounts(mapping: Mapping[ResourceName, int] | Mapping[str, int]) -> Amounts:
    """Return the canonical form of a resource mapping; zero amounts are kept.

    >>> amounts({"memory": 5, "cpu": 100})
    (('cpu', 100), ('memory', 5))
    """
    return tuple(sorted((ResourceName(name), amount) for name, amount in mapping.items()))


def pool_name(flavors: Iterable[FlavorName]) -> str:
    """Return the name that stands for a pool of flavors in a flavor-resource.

    >>> pool_name(["b", "a"])
    'pool:a+b'
    """
    return "pool:" + "+".join(sorted(flavors))


@lru_cache(maxsize=1024)  # asked for every resource of every gang
def is_gpu(resource: str) -> bool:
    """Say whether a resource name means GPUs of any vendor.

    >>> is_gpu("nvidia.com/gpu"), is_gpu("nvidia.com/mig-1g.5gb"), is_gpu("cpu")
    (True, True, False)
    """
    return resource.endswith("/gpu") or "/mig-" in resource


@lru_cache(maxsize=1024)
def most_of(resource: str) -> int:
    """Return the most of a resource that a pod can ask for, or a node have, as it is counted here.

    >>> most_of("cpu") // 1000, most_of("nvidia.com/gpu"), most_of("memory") >> 40
    (1000000000, 1024, 256)
    """
    if resource == CPU:
        return MAX_MILLICORES
    if resource == PODS:
        return MAX_PODS_PER_NODE
    return MAX_GPUS if is_gpu(resource) else MAX_AMOUNT


def bounded(resource: str, amount: int) -> int:
    """Return an amount cut to what is counted: from nothing to `most_of` the resource."""
    return max(0, min(amount, most_of(resource)))


@lru_cache(maxsize=1024)
def is_share(resource: str) -> bool:
    """Say whether a resource name means thousandths of one GPU.

    >>> is_share("nvidia.com/gpu-milli"), is_share("nvidia.com/gpu")
    (True, False)
    """
    return resource.endswith("/gpu" + _MILLI)


def share_of(gpu: str) -> ResourceName:
    """Return the resource that counts thousandths of a GPU."""
    return ResourceName(gpu + _MILLI)


def shared_gpu(share: str) -> ResourceName:
    """Return the GPU that a share is a part of."""
    return ResourceName(share.removesuffix(_MILLI))


def share_in(requests: Amounts) -> tuple[ResourceName, int] | None:
    """Return which part of a GPU a pod asks for; None if it asks for none."""
    for resource, amount in requests:
        if is_share(resource) and amount:
            return resource, amount
    return None


def gpu_milli(requests: Amounts) -> int:
    """Return how much a pod takes of all GPUs together, in thousandths."""
    whole = sum(amount for name, amount in requests if is_gpu(name))
    parts = sum(amount for name, amount in requests if is_share(name))
    return whole * WHOLE_GPU + parts


def wants_gpus(requests: Amounts) -> bool:
    """Say whether a pod asks for GPUs, or for a part of one."""
    return any(amount and (is_gpu(name) or is_share(name)) for name, amount in requests)
