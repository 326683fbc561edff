"""Nodes: what is free, how broken up it is, what they cost, and those that are bought."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from unisono.engine.model.node import QUARANTINE
from unisono.kinds import views
from unisono.kinds.core.nodes import HELD_FOR
from unisono.kinds.device_faults import most_closed
from unisono.kinds.digits import whole_number
from unisono.kube.mapping import Kind
from unisono.monitor.cache import NODE_CLAIM, WORKLOAD, ClusterCache
from unisono.monitor.dcgm.devices import uuid_of
from unisono.monitor.exposition import Family, Histogram, Sample, doubling, single
from unisono.monitor.records import POOL, PURCHASE, NodeRecord

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
        "0 for a GPU that is broken; 1 for a node whose GPUs (*) are all well.",
        _health(nodes),
    )
    yield from _quarantine(nodes)
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


def _quarantine(nodes: Sequence[NodeRecord]) -> Iterator[Family]:
    """Yield which nodes are closed, and which should be; and how many may be, by machine type."""
    closed = {one.name: reason for one in nodes for reason in _closed_for(one)}
    state = [
        *(Sample({"node": name, "reason": reason}, 1) for name, reason in closed.items()),
        *(
            Sample({"node": one.name, "reason": one.left_open}, 0)
            for one in nodes
            if one.left_open and one.name not in closed
        ),
    ]
    yield Family(
        "unisono_node_quarantined",
        "gauge",
        "1 for a node in quarantine; 0 for a broken one that still gets pods, as too many are.",
        state,
    )
    there = Counter(one.instance_type for one in nodes)
    out = Counter(one.instance_type for one in nodes if one.name in closed)
    yield Family(
        "unisono_quarantined_nodes",
        "gauge",
        "Nodes in quarantine, by instance type.",
        [Sample({"instance_type": kind}, out[kind]) for kind in there],
    )
    yield Family(
        "unisono_quarantine_limit",
        "gauge",
        "How many nodes of an instance type may be in quarantine at a time.",
        [Sample({"instance_type": kind}, most_closed(count)) for kind, count in there.items()],
    )


def _closed_for(node: NodeRecord) -> Iterator[str]:
    for taint in node.taints:
        key, _, reason = taint.partition("=")
        if key == QUARANTINE:
            yield reason


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


# ---- machines that are bought --------------------------------------------------------------------
#
# Purchases by how they ended, claims by state, offers that are sold out. Purchases come and go
# between scrapes, so their ends are counted when they are observed: a Workload carries its purchase
# as a condition, whose reason is the phase.

_WHY = "CapacityPlanned"
_RESULTS = {"Ready": "ready", "TimedOut": "timeout"}
# Why a purchase was rolled back; it is cancelled if its gang lost its quota.
_ROLLED_BACK = {"StockOut": "stockout", "PoolGone": "failed"}
_ALL_RESULTS = (*_RESULTS.values(), *_ROLLED_BACK.values(), "cancelled")
_ROLLED = "rolled-back"
_DURATIONS = doubling(5.0, 12)
CLAIM_STATES = ("launching", "launched", "ready", "refused", "going")


class Offering(NamedTuple):
    """A machine type in a zone, and whether it was refused there lately."""

    instance_type: str
    zone: str
    capacity_type: str
    is_unavailable: bool


class _Alike(msgspec.Struct):
    pool: str


class _Written(msgspec.Struct):
    planned_at: int
    machines: tuple[_Alike, ...]


class ProvisioningMetrics:
    """Follows purchases, and machines that are given back."""

    def __init__(self, cache: ClusterCache, clock: Callable[[], float], *, since: float) -> None:
        """Count what came `since` then."""
        self._cache = cache
        self._clock = clock
        self._since = since
        self._plans: dict[tuple[str, str], int] = {}
        self._durations = Histogram(("nodepool",), _DURATIONS)
        self._wasted: dict[tuple[str, str], float] = {}
        self.offerings: Callable[[], Iterable[Offering]] = tuple  # of types that were refused
        self.most_usd_hour: Callable[[], float | None] = lambda: None

    def observe(self, kind: Kind, old: views.Raw | None, new: views.Raw | None) -> None:
        """Take note that an object became another."""
        if kind == WORKLOAD and new is not None:
            before = views.Workload(old).conditions.get(PURCHASE) if old is not None else None
            self._heard_purchase(before, views.Workload(new).conditions)
        elif kind == NODE_CLAIM and new is not None:
            pool = views.NodeClaim(new).metadata.labels.get(POOL, "")
            self._wasted.setdefault((pool, _ROLLED), 0.0)
        elif kind == NODE_CLAIM and old is not None:
            self._given_back(views.NodeClaim(old))

    def _heard_purchase(self, before: views.Condition | None, conditions: views.Conditions) -> None:
        after = conditions.get(PURCHASE)
        if after is None or (before is not None and after.raw == before.raw):
            return
        self._expect(after)
        result = _RESULTS.get(after.reason)
        if after.reason == "RolledBack":
            result = _ROLLED_BACK.get(conditions.reason(_WHY), "cancelled")
        if result is None or after.since < int(self._since):
            return
        try:
            written = msgspec.json.decode(after.message, type=_Written)
        except msgspec.DecodeError:
            return
        for pool in sorted({one.pool for one in written.machines}):
            self._plans[pool, result] = self._plans.get((pool, result), 0) + 1
            if result == "ready":
                self._durations.observe(max(0.0, after.since - written.planned_at), pool)

    def _expect(self, purchase: views.Condition) -> None:
        """Show the counters of its pools at 0, so that how it ends is seen to come."""
        with contextlib.suppress(msgspec.DecodeError):
            written = msgspec.json.decode(purchase.message, type=_Written)
            for pool in sorted({one.pool for one in written.machines}):
                self._durations.expect(pool)
                for result in _ALL_RESULTS:
                    self._plans.setdefault((pool, result), 0)

    def _given_back(self, claim: views.NodeClaim) -> None:
        """Count a machine that was paid for, and kept for a gang that never came."""
        launched, metadata = claim.conditions.get("Launched"), claim.metadata
        if launched is None or not launched.is_true or HELD_FOR not in metadata.annotations:
            return
        key = metadata.labels.get(POOL, ""), _ROLLED
        paid = max(0.0, self._clock() - launched.since)
        self._wasted[key] = self._wasted.get(key, 0.0) + paid

    def families(self) -> Iterator[Family]:
        """Yield what there is to say about machines."""
        yield Family(
            "unisono_provision_plans_total",
            "counter",
            "Purchases of machines by result.",
            [
                Sample({"nodepool": pool, "result": result}, count)
                for (pool, result), count in sorted(self._plans.items())
            ],
        )
        yield Family(
            "unisono_provision_duration_seconds",
            "histogram",
            "Time from a purchase until all of its machines were ready.",
            self._durations.samples(),
        )
        yield Family("unisono_nodeclaims", "gauge", "NodeClaims by state.", self._states())
        yield Family(
            "unisono_provision_wasted_node_seconds_total",
            "counter",
            "Paid time of machines that were given back unused.",
            [
                Sample({"nodepool": pool, "reason": reason}, seconds)
                for (pool, reason), seconds in sorted(self._wasted.items())
            ],
        )
        yield Family(
            "unisono_offering_unavailable",
            "gauge",
            "1 where an instance type was unavailable lately; 0 in its other zones.",
            [
                Sample(
                    {
                        "instance_type": one.instance_type,
                        "zone": one.zone,
                        "capacity_type": one.capacity_type,
                    },
                    int(one.is_unavailable),
                )
                for one in self.offerings()
            ],
        )
        most = self.most_usd_hour()
        if most is not None:
            text = "Limit of the hourly cost of all nodes."
            yield single("unisono_hourly_cost_limit_usd", "gauge", text, most)

    def _states(self) -> Iterator[Sample]:
        counts: dict[tuple[str, str], int] = {}
        for one in self._cache.claims.values():
            counts[one.pool, one.state] = counts.get((one.pool, one.state), 0) + 1
        for pool in sorted({pool for pool, _ in counts}):
            for state in CLAIM_STATES:
                yield Sample({"nodepool": pool, "state": state}, counts.get((pool, state), 0))
