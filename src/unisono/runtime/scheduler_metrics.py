"""Metrics that follow running controllers: every change they see, the phases of every decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from unisono import __version__
from unisono.control.gangs.controller import GangController
from unisono.control.queue_status.cluster_queue import FairShares
from unisono.control.reconciling.driver import Driver, Outcome
from unisono.control.reconciling.workers import Crashes
from unisono.control.scheduler.loop import Scheduler
from unisono.control.view import Difference, View
from unisono.engine.cycle import Decides
from unisono.engine.estimates import estimates
from unisono.engine.model.explanation import Expected, GangDoesNotFit
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Plan
from unisono.engine.model.provisioning import MICRO
from unisono.engine.placement.placement import Answer, placement_of
from unisono.engine.state.cluster import ClusterState
from unisono.kinds import views
from unisono.kube.informer import MOST_TOLD
from unisono.kube.mapping import Kind
from unisono.monitor.cache import FOLLOWED, NODE_CLAIM, fill
from unisono.monitor.exposition import Histogram
from unisono.monitor.metrics.nodes import SIZES, Offering
from unisono.monitor.metrics.notifications import NotificationCounts
from unisono.monitor.metrics.registry import ON_CLUSTERS, Compat, MetricsRegistry
from unisono.monitor.metrics.scheduler import Largest, SchedulerHealth
from unisono.monitor.records import NodeRecord
from unisono.notify.controller import Notifier
from unisono.provision.catalog.instance_types import machine_types, region_of
from unisono.provision.keys import SYSTEM
from unisono.provision.offerings import OfferingsReader, refusals
from unisono.runtime.clock import seconds_now

_KUEUE = "kueue.x-k8s.io/v1beta2"


def metrics_of(
    view: View,
    driver: Driver,
    timed: Timed,
    crashes: Crashes,
    *,
    mode: str,
    compat: Collection[Compat] = (),
) -> MetricsRegistry:
    """Return metrics that follow a cluster from now on."""
    registry = _following(view, driver, timed, crashes, mode=mode, compat=compat)
    for _ in _filling(registry, view):
        pass
    return registry


async def metrics_in_steps(
    view: View,
    driver: Driver,
    timed: Timed,
    crashes: Crashes,
    *,
    mode: str,
    since: float,
    home: str,
) -> MetricsRegistry:
    """Return the same, also of what came `since` then; others have their turns meanwhile.

    The namespace `home` holds the records of unavailable machine types.
    """
    registry = _following(
        view, driver, timed, crashes, mode=mode, compat=ON_CLUSTERS, since=since, home=home
    )
    for _ in _filling(registry, view):
        await asyncio.sleep(0)
    return registry


def _following(
    view: View,
    driver: Driver,
    timed: Timed,
    crashes: Crashes,
    *,
    mode: str,
    compat: Collection[Compat] = (),
    since: float | None = None,
    home: str = SYSTEM,
) -> MetricsRegistry:
    registry = MetricsRegistry(
        clock=seconds_now,
        version=__version__,
        mode=mode,
        compat=compat,
        price=catalogue_price,
        since=since,
    )
    cache = registry.cache

    def heard(kind: Kind, difference: Difference) -> None:
        cache.observe(kind, difference.old, difference.new)
        registry.provisioning.observe(kind, difference.old, difference.new)

    driver.listeners.append(heard)
    if view.has(NODE_CLAIM):
        registry.provisioning.offerings = lambda: tuple(_offerings(view, home))
    registry.provisioning.most_usd_hour = lambda: timed.most_usd_hour
    timed.cycles, timed.placements = registry.cycles, registry.placement.placements
    timed.attempt = registry.kueue.attempt
    by_name = {kind.kind: kind for kind in view.kinds() if kind.api_version != _KUEUE}

    def job_created(kind: str, namespace: str, name: str) -> float:
        found = view.peek(by_name[kind], name, namespace) if kind in by_name else None
        return views.Object(found).metadata.created if found is not None else 0.0

    registry.kueue.job_created = job_created
    shares = driver.controllers.get("fair-shares")
    if isinstance(shares, FairShares):
        registry.kueue.shares = lambda: shares.shares
    driver.on_attended = timed.attended
    registry.placement.largest = lambda: largest_gangs(timed.state)
    registry.placement.cached = lambda: _cached(timed.state)
    scheduler, gangs = driver.controllers.get("scheduler"), driver.controllers.get("gangs")
    if isinstance(scheduler, Scheduler):
        scheduler.estimates.works_out = timed.estimates
        registry.health = lambda: _health(scheduler, crashes)
    if isinstance(gangs, GangController):
        registry.placement.rollbacks = lambda: gangs.rollbacks
    notifier = driver.controllers.get("notifications")
    if isinstance(notifier, Notifier):
        outbox = notifier.teller.outbox
        registry.notifications = lambda: NotificationCounts(outbox.counts, len(outbox))
    return registry


def _health(scheduler: Scheduler, crashes: Crashes) -> SchedulerHealth:
    health, now = scheduler.health, seconds_now()
    return SchedulerHealth(
        quarantined=scheduler.quarantine.counts(),
        quarantines=scheduler.quarantine.total,
        refused_plans=scheduler.refused,
        rebuilds=scheduler.rebuilds,
        failing_keys=len(crashes),
        planned_at=health.planned_at,
        written_at=health.written_at,
        behind_s=health.behind_s(now),
        unwritten_s=health.unwritten_s(now),
        unexplained_s=health.unexplained_s(now),
    )


def _cached(state: ClusterState | None) -> tuple[int, int]:
    """Return how often an answer was known, and how often it was not."""
    if state is None:
        return 0, 0
    return placement_of(state).hits_and_misses


def _filling(registry: MetricsRegistry, view: View) -> Iterator[None]:
    """Read what is there already, as it is when its turn comes; yield now and then."""
    for kind in FOLLOWED:
        keys = view.keys(kind) if view.has(kind) else []
        for first in range(0, len(keys), MOST_TOLD):
            turn = keys[first : first + MOST_TOLD]
            some = (view.get(kind, one.name, one.namespace) for one in turn)
            fill(registry.cache, kind, (one for one in some if one is not None))
            yield


def _offerings(view: View, home: str) -> Iterator[Offering]:
    """Yield the offers of all zones of machine types that were refused somewhere lately."""
    refused = {(one.machine, one.capacity_type) for one in refusals(view, home)}
    offerings = OfferingsReader(home=home).read(view) if refused else None
    if offerings is None:
        return
    now = Instant(int(seconds_now() * 1000))
    out = {
        (one.machine, one.zone, one.capacity_type) for one in offerings.outages if one.until > now
    }
    for offer in offerings.offers:
        if (offer.machine, offer.capacity_type) in refused:
            key = offer.machine, offer.zone, offer.capacity_type
            yield Offering(*key, is_unavailable=key in out)


# ---- how large a gang would fit ------------------------------------------------------------------

_EVERYWHERE = "cluster"


def largest_gangs(state: ClusterState | None) -> Iterator[Largest]:
    """Yield how many pods of one, two, four and eight GPUs fit; nothing before the first look."""
    if state is None:
        return
    table = state.nodes.table
    rows = np.flatnonzero(table.usable)
    free = [np.maximum(table.free_of(column)[rows], 0) for column in table.gpu_columns()]
    levels = dict(_levels(state, rows))
    for size in SIZES:
        pods = sum((one // size for one in free), np.zeros(len(rows), np.int64))
        yield Largest(_EVERYWHERE, size, int(pods.sum()))
        for level, domains in levels.items():
            in_domain = np.bincount(domains, weights=pods, minlength=1)
            yield Largest(level, size, int(in_domain.max()))


def _levels(state: ClusterState, rows: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Yield every level with the number of each row's domain in it.

    A rack of one block is another than the rack of the same name in the next: a domain is what has
    the same labels at its own level and at all above.
    """
    seen: set[str] = set()
    for _, topology in sorted(state.config.topologies.items()):
        domains = np.zeros(len(rows), np.int64)
        for level in topology.levels:
            codes = state.nodes.table.label_codes(level)[0][rows].astype(np.int64)
            pairs = domains * (int(codes.max(initial=0)) + 1) + codes
            domains = np.unique(pairs, return_inverse=True)[1].astype(np.int64).reshape(-1)
            if level not in seen:
                seen.add(level)
                yield level, domains


# ---- what nodes cost -----------------------------------------------------------------------------


def catalogue_price(node: NodeRecord) -> float:
    """Return the price of a node by its instance type, region and capacity type; 0 if unknown.

    A type that is not sold in a region that we know costs what it costs where it is cheapest.
    """
    machine = machine_types().get(node.instance_type)
    if machine is None:
        return 0.0
    here = machine.price.get(region_of(node.zone))
    sold = [here] if here is not None else list(machine.price.values())
    is_spot = node.capacity_type == "spot"
    prices = [one.spot if is_spot else one.on_demand for one in sold]
    return min((one for one in prices if one), default=0.0)


# ---- phases of a decision ------------------------------------------------------------------------
#
#     total   one decision: admit and place together
#     place   looking for nodes, within it
#     admit   the rest of it: order, quota, preemption, reservations
#     plan    estimating when the others start; apart from decisions, once a minute at most
#     bind    bringing one gang's pods to their nodes, writes included
#
# The engine has no clock. It tells its listener when a search for nodes begins and ends.

_BINDS = "gangs"  # the controller that does


class Timed:
    """Wraps a decider, and measures how long its decisions take."""

    def __init__(self, decides: Decides) -> None:
        """Measure nothing until there are histograms."""
        self._decides = decides
        self.cycles: Histogram | None = None
        self.placements: Histogram | None = None
        self.most_usd_hour: float | None = None  # as the policy said the last time
        self.attempt: Callable[..., None] | None = None  # hears of each decision
        self.state: ClusterState | None = None  # that was decided about the last time
        self._placing = 0.0  # seconds of the decision that is being made
        self._search_began = 0.0
        self._decided = asyncio.Event()

    def __call__(self, state: ClusterState, now: Instant) -> Plan:
        """Decide one cycle."""
        most = state.policy.provisioning.most_per_hour_micro
        self.most_usd_hour = None if most is None else most / MICRO
        self.state = state
        placement_of(state).listener = self
        self._placing = 0.0
        before = perf_counter()
        made = self._decides(state, now)
        total = perf_counter() - before
        if self.attempt is not None:
            self.attempt(admitted=bool(made.admissions), seconds=total)
        if self.cycles is not None:
            self.cycles.observe(total, "total")
            self.cycles.observe(self._placing, "place")
            self.cycles.observe(max(0.0, total - self._placing), "admit")
        self._decided.set()
        return made

    async def has_decided(self) -> None:
        """Wait for the first decision."""
        await self._decided.wait()

    def search_begins(self) -> None:
        """Hear that nodes are looked for."""
        self._search_began = perf_counter()

    def search_ends(self, answer: Answer) -> None:
        """Hear that nodes were found, or none."""
        seconds = perf_counter() - self._search_began
        self._placing += seconds
        if self.placements is not None:
            result = "refused" if isinstance(answer, GangDoesNotFit) else "placed"
            self.placements.observe(seconds, result)

    def estimates(
        self, state: ClusterState, now: Instant, *, most: int
    ) -> dict[WorkloadKey, Expected]:
        """Estimate the starts of pending workloads."""
        before = perf_counter()
        found = estimates(state, now, most=most)
        if self.cycles is not None:
            self.cycles.observe(perf_counter() - before, "plan")
        return found

    def attended(self, outcome: Outcome, seconds: float) -> None:
        """Hear what a controller did, and how long it took."""
        if outcome.task.controller == _BINDS and outcome.actions and self.cycles is not None:
            self.cycles.observe(seconds, "bind")
