"""TRES: what a workload takes in the units of accounts, and what that costs (spec priority §1, §3).

Amounts are thousandths: of a core, a MiB, a node, a device. A pod set of a hundred pods is summed,
not listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from unisono.engine.model.multifactor import TresWeights
from unisono.engine.model.names import CPU, PODS
from unisono.engine.model.resources import is_gpu
from unisono.engine.model.workload import Admission, PodSet

MILLI = 1000
MICRO = 1_000_000
_MIB = 2**20

Tres = dict[str, int]


class Size(msgspec.Struct, frozen=True):
    """How large a workload is: in all, and the most that one node has to hold of it."""

    tres: Tres
    per_node: Tres


def tres_name(resource: str) -> str:
    """Return the TRES that a Kubernetes resource counts as.

    >>> [tres_name(name) for name in ("cpu", "memory", "nvidia.com/gpu", "rdma/hca")]
    ['cpu', 'mem', 'gres/gpu', 'gres/hca']
    """
    if resource == "memory":
        return "mem"
    if resource == "gpu" or is_gpu(resource):
        return "gres/gpu"
    return f"gres/{resource.rpartition('/')[2]}" if "/" in resource else resource


def milli(resource: str, amount: int) -> int:
    """Return an amount of the engine in thousandths of a TRES; a part of one counts whole.

    >>> milli("memory", 4 * 2**30), milli("cpu", 1500), milli("nvidia.com/gpu", 8)
    (4096000, 1500, 8000)
    """
    if resource == "memory":
        return -(-amount * MILLI // _MIB)
    return amount if resource == CPU else amount * MILLI


def size_of(
    pod_sets: Sequence[PodSet], counts: Sequence[int], admission: Admission | None = None
) -> Size:
    """Sum so many pods of each set; one pod counts as one node until it is placed."""
    total: Tres = {}
    largest: Tres = {}
    pods = 0
    for pod_set, count in zip(pod_sets, counts, strict=True):
        pods += count
        for resource, amount in pod_set.requests:
            if resource == PODS or not count:
                continue
            name, each = tres_name(resource), milli(resource, amount)
            total[name] = total.get(name, 0) + each * count
            largest[name] = max(largest.get(name, 0), each)
    hosts = {node for one in admission.pod_sets for node, _ in one.nodes} if admission else set()
    total["node"] = (len(hosts) or pods) * MILLI
    return Size(total, largest)


def billing_micro(
    size: Size, weights: TresWeights, how: Literal["sum", "max", "max-gres"] = "sum"
) -> int:
    """Return what a workload costs a second, in millionths: the one place where a float ends.

    Without weights a core costs 1. What asks for no core at all would cost nothing and never be
    counted, so its GPUs count, else its nodes.
    """
    tres = size.tres
    if not weights:
        unit = next((name for name in ("cpu", "gres/gpu", "node") if tres.get(name)), "node")
        return tres.get(unit, 0) * (MICRO // MILLI)
    costs = {name: weight * tres.get(name, 0) / MILLI for name, weight in weights}
    shared = sum(cost for name, cost in costs.items() if _is_shared(name))
    bound = {name: cost for name, cost in costs.items() if not _is_shared(name)}
    return round((shared + _combined(bound, how)) * MICRO)


def _is_shared(name: str) -> bool:
    """Say whether a TRES belongs to the whole cluster rather than to a node."""
    return name.startswith(("license/", "bb/"))


def _combined(costs: Mapping[str, float], how: Literal["sum", "max", "max-gres"]) -> float:
    if how == "sum":
        return sum(costs.values())
    devices = {name: cost for name, cost in costs.items() if name.startswith("gres/")}
    if how == "max":
        return max(costs.values(), default=0.0)
    rest = [cost for name, cost in costs.items() if name not in devices]
    return sum(devices.values()) + max(rest, default=0.0)
