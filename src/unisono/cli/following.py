"""Figures that follow controllers at work: every difference they hear of, every decision."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from unisono import __version__
from unisono.cli.clock import seconds_now
from unisono.cli.prices import catalogue_price
from unisono.control.driver import Driver
from unisono.control.view import Difference, View
from unisono.engine.cycle import Decides
from unisono.engine.model.market import MICRO
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.state.cluster import ClusterState
from unisono.kube.mapping import Kind
from unisono.monitor.books import FOLLOWED, NODE_CLAIM, fill
from unisono.monitor.histogram import Histogram
from unisono.monitor.metrics.machines import Offering
from unisono.monitor.metrics.page import Compat, Figures
from unisono.provision.reader import Reader
from unisono.provision.stock import refusals


class Timed:
    """Decides as somebody else does, and tells how long it took."""

    def __init__(self, decides: Decides) -> None:
        """Measure nothing until there is a histogram."""
        self._decides = decides
        self.histogram: Histogram | None = None
        self.most_usd_hour: float | None = None  # as the policy said the last time

    def __call__(self, state: ClusterState, now: Instant) -> Plan:
        """Decide one cycle."""
        most = state.policy.provisioning.most_per_hour_micro
        self.most_usd_hour = None if most is None else most / MICRO
        before = time.perf_counter()
        made = self._decides(state, now)
        if self.histogram is not None:
            self.histogram.observe(time.perf_counter() - before, "total")
        return made


def figures_of(
    view: View, driver: Driver, timed: Timed, *, mode: str, compat: Collection[Compat] = ()
) -> Figures:
    """Return figures that follow a cluster from now on."""
    figures = Figures(
        clock=seconds_now, version=__version__, mode=mode, compat=compat, price=catalogue_price
    )
    books = figures.books

    def heard(kind: Kind, difference: Difference) -> None:
        books.heard(kind, difference.old, difference.new)
        figures.machines.heard(kind, difference.old, difference.new)

    driver.on_difference = heard
    for kind in FOLLOWED:
        if view.has(kind):
            fill(books, kind, view.all(kind))
    if view.has(NODE_CLAIM):
        figures.machines.offerings = lambda: tuple(_offerings(view))
    figures.machines.most_usd_hour = lambda: timed.most_usd_hour
    timed.histogram = figures.cycles
    return figures


def _offerings(view: View) -> Iterator[Offering]:
    """Yield the offers of all zones of machine types that were refused somewhere lately."""
    refused = {(one.machine, one.capacity_type) for one in refusals(view)}
    market = Reader().read(view) if refused else None
    if market is None:
        return
    now = Instant(int(seconds_now() * 1000))
    out = {(one.machine, one.zone, one.capacity_type) for one in market.outages if one.until > now}
    for offer in market.offers:
        if (offer.machine, offer.capacity_type) in refused:
            key = offer.machine, offer.zone, offer.capacity_type
            yield Offering(*key, is_unavailable=key in out)
