"""GPU-seconds and cost as counters: usage by workload owners, and all GPUs by state.

`busy` and `idle` grow as devices are measured, so they stay at zero without measurements.
`starting` is the time between binding and the first container. A counter cannot take anything back:
`lost` counts seconds again that were busy or idle until their attempt ended badly.

The ledger is exact and survives restarts; bills come from there, never from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from unisono.monitor.cache import ClusterCache, PodChange
from unisono.monitor.exposition import Family, Sample
from unisono.monitor.ledger.recorder import GpuUse
from unisono.monitor.records import NodeRecord, PodRecord

_HOUR = 3600.0
_ON_DEMAND = "on-demand"
_STATES = ("starting", "busy", "idle", "lost")
# Owners beyond so many are counted together as `other`; each has a series for every state.
_MOST_OWNERS = 2_000
# Measurements may come late; so many pods that are over are remembered for them.
_MOST_OVER = 10_000
_OTHER = "other"


class Owner(NamedTuple):
    """The labels of GPU usage."""

    queue: str
    namespace: str
    user: str
    flavor: str
    capacity_type: str


class CostMetrics:
    """Adds up what pods and nodes did."""

    def __init__(self, cache: ClusterCache, clock: Callable[[], float]) -> None:
        """Count from now on."""
        self._cache = cache
        self._looked_at = clock()
        self._owners: dict[
            str, tuple[Owner, float]
        ] = {}  # by uid: its owner, and the price of a second
        self._over: dict[str, None] = {}
        self._starting: dict[str, float] = {}  # by uid: until when it is counted
        self._seconds: dict[tuple[Owner, str], float] = {}
        self._usd: dict[tuple[Owner, str], float] = {}
        self._capacity: dict[tuple[str, str, str], float] = {}  # model, capacity type, state
        self._overhead: dict[tuple[str, str], float] = {}
        cache.on_pod.append(self._follow)

    def measured(self, uses: Mapping[str, GpuUse]) -> None:
        """Add what devices did, by the uid of the pod that has or had them."""
        for uid, use in uses.items():
            if uid in self._owners:
                self._add(uid, "busy", use.busy)
                self._add(uid, "idle", max(0.0, use.covered - use.busy))

    # ---- pods ------------------------------------------------------------------------------------

    def _follow(self, step: PodChange) -> None:
        pod = step.after
        if not pod.gpus or not pod.node:
            return
        was_over = step.before is not None and step.before.is_over
        if pod.uid not in self._owners:
            if pod.is_over or step.is_gone:
                return  # it ended before we looked
            self._remember(pod)
        if was_over or pod.uid in self._over:
            return
        if pod.is_over or step.is_gone:
            ended = pod.ended or self._looked_at
            self._start(pod, ended)
            self._starting.pop(pod.uid, None)
            if self._is_lost(pod):
                safe = max(pod.started, self._saved(pod))
                self._add(pod.uid, "lost", _gpus(pod) * max(0.0, ended - safe))
            self._forget_oldest(pod.uid)

    def _remember(self, pod: PodRecord) -> None:
        workload, node = self._cache.workload_of(pod), self._cache.nodes.get(pod.node)
        owner = Owner(
            queue=self._cache.queue_of(workload) if workload is not None else "",
            namespace=pod.namespace,
            user=workload.user if workload is not None else "",
            flavor=next((one.flavor for one in workload.asked if one.flavor), "")
            if workload is not None
            else "",
            capacity_type=(node.capacity_type if node is not None else "") or _ON_DEMAND,
        )
        price = node.price / node.gpus / _HOUR if node is not None and node.gpus else 0.0
        self._owners[pod.uid] = owner, price
        for state in _STATES:
            self._add(pod.uid, state, 0.0)  # shown before there is anything to count
        self._starting[pod.uid] = max(pod.bound, self._looked_at)

    def _forget_oldest(self, uid: str) -> None:
        self._over[uid] = None
        if len(self._over) > _MOST_OVER:
            oldest = next(iter(self._over))
            del self._over[oldest]
            self._owners.pop(oldest, None)

    def _is_lost(self, pod: PodRecord) -> bool:
        if not pod.started or pod.phase == "Succeeded":
            return False
        workload = self._cache.workload_of(pod)
        was_evicted = workload is not None and workload.evicted >= pod.started
        return pod.phase == "Failed" or was_evicted

    def _saved(self, pod: PodRecord) -> float:
        workload = self._cache.workload_of(pod)
        return workload.saved if workload is not None else 0.0

    def _start(self, pod: PodRecord, now: float) -> None:
        """Count the time until a pod's first container, as far as it has passed."""
        counted = self._starting.get(pod.uid)
        until = min(now, pod.started) if pod.started else now
        if counted is not None and until > counted:
            self._add(pod.uid, "starting", _gpus(pod) * (until - counted))
            self._starting[pod.uid] = until

    def _add(self, uid: str, state: str, seconds: float) -> None:
        owner, price = self._owners[uid]
        if (owner, state) not in self._seconds and len(self._seconds) >= _MOST_OWNERS * len(
            _STATES
        ):
            owner = Owner(_OTHER, _OTHER, _OTHER, owner.flavor, owner.capacity_type)
        key = owner, state
        self._seconds[key] = self._seconds.get(key, 0.0) + seconds
        if price:
            self._usd[key] = self._usd.get(key, 0.0) + seconds * price

    # ---- nodes -----------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        passed, self._looked_at = max(0.0, now - self._looked_at), now
        for pod in self._cache.pods_on_nodes():
            if pod.uid in self._starting:
                self._start(pod, now)
        used = self._cache.gpus_in_use()
        held = self._held()
        for node in self._cache.nodes.values():
            if not node.gpus:
                continue
            states = _states(node, used.get(node.name, 0), held)
            held -= states["held"]
            kind = node.model or node.resource, node.capacity_type or _ON_DEMAND
            price = node.price / node.gpus / _HOUR
            for state, gpus in states.items():
                key = (*kind, state)
                self._capacity[key] = self._capacity.get(key, 0.0) + gpus * passed
                if state != "allocated" and price:
                    cost = gpus * passed * price
                    self._overhead[kind] = self._overhead.get(kind, 0.0) + cost

    def _held(self) -> int:
        """Return how many GPUs are kept for pods of gangs that have quota and no node yet."""
        bound: dict[tuple[str, str], int] = {}
        for pod in self._cache.pods_on_nodes():
            key = pod.namespace, pod.workload
            bound[key] = bound.get(key, 0) + _gpus(pod)
        return sum(
            max(0, one.gpus - bound.get(one.key, 0))
            for one in self._cache.workloads.values()
            if one.reserved and not one.ready and not one.finished and not one.is_buying
        )

    # ---- telling ---------------------------------------------------------------------------------

    def families(self, now: float) -> Iterator[Family]:
        """Yield the counters, as of now."""
        self._advance(now)
        yield Family(
            "unisono_gpu_seconds_total",
            "counter",
            "GPU-seconds of allocated GPUs by state; lost ones were counted before, too.",
            [
                Sample({**owner._asdict(), "state": state}, round(seconds, 3))
                for (owner, state), seconds in self._seconds.items()
            ],
        )
        yield Family(
            "unisono_gpu_capacity_seconds_total",
            "counter",
            "GPU-seconds of all GPUs: allocated, held for a starting workload, free, or down.",
            [
                Sample({"flavor": model, "capacity_type": sold, "state": state}, round(seconds, 3))
                for (model, sold, state), seconds in self._capacity.items()
            ],
        )
        yield Family(
            "unisono_cost_usd_total",
            "counter",
            "Cost in US dollars; overhead is the cost of GPUs that were not allocated.",
            [*self._costs()],
        )

    def _costs(self) -> Iterator[Sample]:
        bills: dict[tuple[str, str, str, str, str], float] = {}
        for (owner, state), usd in self._usd.items():
            key = owner.queue, owner.user, owner.flavor, owner.capacity_type, state
            bills[key] = bills.get(key, 0.0) + usd
        for (model, sold), usd in self._overhead.items():
            bills["", "", model, sold, "overhead"] = usd
        names = ("queue", "user", "flavor", "capacity_type", "class")
        for key, usd in bills.items():
            yield Sample(dict(zip(names, key, strict=True)), round(usd, 6))


def _states(node: NodeRecord, used: int, held: int) -> dict[str, int]:
    """Say what becomes of a node's GPUs: each is in exactly one state."""
    there = min(node.gpus, node.allocatable) if node.is_ready else 0
    allocated = min(used, node.gpus)
    there = max(there, allocated)
    kept = min(held, there - allocated)
    return {
        "allocated": allocated,
        "held": kept,
        "free": there - allocated - kept,
        "down": node.gpus - there,
    }


def _gpus(pod: PodRecord) -> int:
    return sum(count for _, count in pod.gpus)
