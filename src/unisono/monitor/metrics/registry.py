"""All metrics of the cache and the scheduler, gathered for one scrape."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Literal

from unisono.monitor.cache import ClusterCache
from unisono.monitor.exposition import Family, Histogram, Sample, doubling, single
from unisono.monitor.ledger.start_estimates import EstimateMetrics
from unisono.monitor.metrics import compatibility, nodes, queues, workloads
from unisono.monitor.metrics.cost import CostMetrics
from unisono.monitor.metrics.kueue import KueueMetrics
from unisono.monitor.metrics.nodes import ProvisioningMetrics
from unisono.monitor.metrics.notifications import NotificationCounts, notification_families
from unisono.monitor.metrics.scheduler import PlacementMetrics, SchedulerHealth, health_families
from unisono.monitor.records import NodeRecord

Compat = Literal["kueue", "kube-state"]
ALL: tuple[Compat, ...] = ("kueue", "kube-state")
ON_CLUSTERS: tuple[Compat, ...] = ("kueue",)  # which have kube-state-metrics themselves

_CYCLES = doubling(0.001, 14)


class MetricsRegistry:
    """Owns the cache and the counters beside them."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        version: str,
        mode: str,
        compat: Collection[Compat] = (),
        price: Callable[[NodeRecord], float] = lambda _: 0.0,
        since: float | None = None,
    ) -> None:
        """Count from now on, or what came `since` then; `compat` adds names of other projects.

        `price` is that of nodes which do not tell theirs.
        """
        since = clock() if since is None else since
        self.cache = ClusterCache(price)
        self._clock = clock
        self._about = {"version": version, "mode": mode}
        self._compat = compat
        self._idle = nodes.IdleNodes()
        self._history = workloads.WorkloadHistory(self.cache, since=since)
        role = "leader" if mode == "cluster" else "standalone"
        self.kueue = KueueMetrics(self.cache, since=since, role=role, version=version)
        self.provisioning = ProvisioningMetrics(self.cache, clock, since=since)
        self.cost = CostMetrics(self.cache, clock)
        self.estimates = EstimateMetrics()
        self.cycles = Histogram(("phase",), _CYCLES)
        self.placement = PlacementMetrics(self.cache, since=since)
        self.health: Callable[[], SchedulerHealth] = SchedulerHealth
        self.notifications: Callable[[], NotificationCounts] = NotificationCounts

    def families(self) -> Iterator[Family]:
        """Yield everything, as it is now."""
        now = self._clock()
        self.cache.refresh()
        tally = queues.QueueCounters.of(self.cache)
        yield Family("unisono_build_info", "gauge", "What runs here.", (Sample(self._about, 1),))
        yield Family(
            "unisono_cycle_duration_seconds",
            "histogram",
            "How long decisions take, by phase.",
            self.cycles.samples(),
        )
        unread = "Objects that could not be read, so that the figures are without them."
        yield single("unisono_unread_objects_total", "counter", unread, self.cache.unreadable)
        yield from health_families(self.health())
        yield from queues.families(self.cache, tally)
        yield from workloads.families(self.cache, now)
        yield from workloads.rank_families(self.cache)
        yield from self._history.families()
        yield from self.placement.families(nodes.in_pieces(self.cache))
        yield from nodes.families(self.cache, self._idle.of(self.cache, now))
        yield from self.provisioning.families()
        yield from self.cost.families(now)
        yield from self.estimates.families()
        yield from notification_families(self.notifications())
        if "kueue" in self._compat:
            yield from self.kueue.families()
        if "kube-state" in self._compat:
            yield from compatibility.kube_state_families(self.cache)
