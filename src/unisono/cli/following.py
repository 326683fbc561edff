"""Figures that follow controllers at work: every difference they hear of, every decision."""

from __future__ import annotations

import time
from collections.abc import Collection

from unisono import __version__
from unisono.cli.clock import seconds_now
from unisono.cli.prices import catalogue_price
from unisono.control.driver import Driver
from unisono.control.view import Difference, View
from unisono.engine.cycle import Decides
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.state.cluster import ClusterState
from unisono.kube.mapping import Kind
from unisono.monitor.books import FOLLOWED, fill
from unisono.monitor.histogram import Histogram
from unisono.monitor.metrics.page import Compat, Figures


class Timed:
    """Decides as somebody else does, and tells how long it took."""

    def __init__(self, decides: Decides) -> None:
        """Measure nothing until there is a histogram."""
        self._decides = decides
        self.histogram: Histogram | None = None

    def __call__(self, state: ClusterState, now: Instant) -> Plan:
        """Decide one cycle."""
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

    driver.on_difference = heard
    for kind in FOLLOWED:
        if view.has(kind):
            fill(books, kind, view.all(kind))
    timed.histogram = figures.cycles
    return figures
