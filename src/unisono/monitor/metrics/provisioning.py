"""Machines that are bought: purchases by how they ended, claims by state, offers that are sold out.

Purchases come and go between scrapes, so their ends are counted when they are observed:
a Workload carries its purchase as a condition, whose reason is the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from unisono.kinds import views
from unisono.kinds.core.nodes import HELD_FOR
from unisono.kube.mapping import Kind
from unisono.monitor.cache import NODE_CLAIM, WORKLOAD, ClusterCache
from unisono.monitor.exposition import Family, Sample, single
from unisono.monitor.histogram import Histogram, doubling
from unisono.monitor.records import POOL, PURCHASE

_WHY = "CapacityPlanned"
_RESULTS = {"Ready": "ready", "TimedOut": "timeout"}
# Why a purchase was rolled back; it is cancelled if its gang lost its quota.
_ROLLED_BACK = {"StockOut": "stockout", "PoolGone": "failed"}
_DURATIONS = doubling(5.0, 12)
STATES = ("launching", "launched", "ready", "refused", "going")


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
        elif kind == NODE_CLAIM and new is None and old is not None:
            self._given_back(views.NodeClaim(old))

    def _heard_purchase(self, before: views.Condition | None, conditions: views.Conditions) -> None:
        after = conditions.get(PURCHASE)
        if after is None or (before is not None and after.raw == before.raw):
            return
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

    def _given_back(self, claim: views.NodeClaim) -> None:
        """Count a machine that was paid for, and kept for a gang that never came."""
        launched, metadata = claim.conditions.get("Launched"), claim.metadata
        if launched is None or not launched.is_true or HELD_FOR not in metadata.annotations:
            return
        key = metadata.labels.get(POOL, ""), "rolled-back"
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
            for state in STATES:
                yield Sample({"nodepool": pool, "state": state}, counts.get((pool, state), 0))
