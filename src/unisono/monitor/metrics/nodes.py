"""Nodes: what is free, how broken up it is, what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from unisono.kinds.digits import whole_number
from unisono.monitor.cache import ClusterCache
from unisono.monitor.dcgm.devices import uuid_of
from unisono.monitor.exposition import Family, Sample, single
from unisono.monitor.records import NodeRecord

SIZES = (1, 2, 4, 8)


class IdleNodes:
    """Remembers since when nodes have nothing to do."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._since: dict[str, float] = {}

    def of(self, cache: ClusterCache, now: float) -> Mapping[str, float]:
        """Return how long each node that has GPUs has been without a pod that uses one."""
        used = cache.gpus_in_use()
        idle = [one.name for one in cache.nodes.values() if one.gpus and not used.get(one.name)]
        self._since = {name: self._since.get(name, now) for name in idle}
        return {name: now - at for name, at in self._since.items()}


def families(cache: ClusterCache, idle: Mapping[str, float]) -> Iterator[Family]:
    """Yield what there is to say about nodes."""
    nodes = [cache.nodes[name] for name in sorted(cache.nodes)]
    yield Family(
        "unisono_node_idle_seconds",
        "gauge",
        "How long a node's GPUs have had nothing to do.",
        [Sample(_labels(one), idle.get(one.name, 0.0)) for one in nodes if one.gpus],
    )
    yield Family(
        "unisono_node_price_usd_per_hour",
        "gauge",
        "What a node costs.",
        [Sample(_labels(one), one.price) for one in nodes if one.price],
    )
    yield Family(
        "unisono_gpu_healthy",
        "gauge",
        "0 for a GPU that is broken and gets no pods; 1 for a node whose GPUs (*) are all well.",
        _health(nodes),
    )
    price = sum(one.price for one in nodes)
    yield single("unisono_hourly_cost_usd", "gauge", "What all nodes cost an hour.", price)
    yield Family(
        "unisono_fragmentation_ratio",
        "gauge",
        "The part of the free GPUs that gangs of pods of a size cannot use.",
        _fragmentation(nodes, cache.gpus_in_use()),
    )


def _health(nodes: Iterable[NodeRecord]) -> Iterator[Sample]:
    """Yield a series for each broken device, and one for each node of which none is."""
    for one in nodes:
        if one.gpus and not one.broken:
            yield Sample({"node": one.name, "gpu": "*", "UUID": "", "reason": ""}, 1)
        for index, reason in one.broken:
            number = whole_number(index) if one.is_ours else None
            uuid = uuid_of((one.name, number)) if number is not None else ""
            yield Sample({"node": one.name, "gpu": index, "UUID": uuid, "reason": reason}, 0)


def _labels(node: NodeRecord) -> Mapping[str, str]:
    return {"node": node.name, "nodepool": node.pool, "instance_type": node.instance_type}


def _fragmentation(nodes: Iterable[NodeRecord], used: Mapping[str, int]) -> Iterator[Sample]:
    free: dict[str, list[int]] = {}
    for one in nodes:
        if one.gpus and one.is_open:
            left = max(0, one.allocatable - used.get(one.name, 0))
            free.setdefault(one.model or one.resource, []).append(left)
    for model, counts in sorted(free.items()):
        for size in SIZES:
            yield Sample({"flavor": model, "size": str(size)}, fragmentation(counts, size))


def in_pieces(cache: ClusterCache) -> dict[str, int]:
    """Return how many GPUs are free on open nodes of which others are in use, by model."""
    used = cache.gpus_in_use()
    found: dict[str, int] = {}
    for one in cache.nodes.values():
        if one.gpus and one.is_open:
            in_use = used.get(one.name, 0)
            left = max(0, one.allocatable - in_use) if in_use else 0
            model = one.model or one.resource
            found[model] = found.get(model, 0) + left
    return found


def fragmentation(free: Iterable[int], size: int) -> float:
    """Return the part of free GPUs that pods of a size cannot use; 0 if nothing is free.

    >>> [round(fragmentation([3, 3, 2], size), 2) for size in (1, 2, 4, 8)]
    [0.0, 0.25, 1.0, 1.0]
    """
    free = list(free)
    total = sum(free)
    return 1 - sum(one // size * size for one in free) / total if total else 0.0
