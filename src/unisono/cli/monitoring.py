"""Metrics of an embedded cluster: figures of the scheduler, telemetry of its simulated GPUs.

Two pages on loopback, as a Prometheus expects them: `/metrics` of Unisono, and `/metrics` of an
exporter of GPU telemetry on a port of its own. The first is also a page of the API, for those who
have a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping

from unisono import __version__
from unisono.cli.controller_metrics import process_families
from unisono.cli.controllers import AtWork
from unisono.cli.embedded import Running
from unisono.cli.probes import Asked, CannotListen, Page, Pages, probes
from unisono.control.view import Difference
from unisono.engine.cycle import Decides
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Plan
from unisono.engine.state.cluster import ClusterState
from unisono.kube.mapping import Kind
from unisono.monitor.books import FOLLOWED, NODE, fill
from unisono.monitor.dcgm.exporter import Exporter
from unisono.monitor.dcgm.faults import ANNOTATION, Faults, faults_of
from unisono.monitor.exposition import classic, negotiated
from unisono.monitor.histogram import Histogram
from unisono.monitor.metrics.page import ALL, Figures

# Where NVIDIA's exporter listens; ours is next to it.
GPU_PORT = 9400
PORT = 9401
_HOST = "127.0.0.1"


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


@contextlib.asynccontextmanager
async def monitored(
    cluster: Running, timed: Timed, *, port: int | None
) -> AsyncIterator[dict[str, str]]:
    """Show the figures of a cluster while the block lasts; yields addresses by what is there.

    Port 0 means no pages on loopback, None the usual ones if they are free.
    """
    figures = _figures(cluster.at_work, timed)
    cluster.api.surface.gauges.append(lambda: classic(figures.families()).rstrip("\n"))
    if port == 0:
        yield {}
        return
    exporter = _exporter(cluster.at_work, figures)
    async with _exposed(figures, exporter, port=port) as addresses:
        yield addresses


def _figures(at_work: AtWork, timed: Timed) -> Figures:
    """Return figures that follow a cluster from now on."""
    figures = Figures(clock=_now, version=__version__, mode="embedded", compat=ALL)
    books = figures.books

    def heard(kind: Kind, difference: Difference) -> None:
        books.heard(kind, difference.old, difference.new)

    at_work.driver.on_difference = heard
    for kind in FOLLOWED:
        if at_work.view.has(kind):
            fill(books, kind, at_work.view.all(kind))
    timed.histogram = figures.cycles
    return figures


def _exporter(at_work: AtWork, figures: Figures) -> Exporter:
    """Return the telemetry of a cluster's GPUs."""

    def faults() -> Mapping[str, Faults]:
        found: dict[str, Faults] = {}
        for node in at_work.view.all(NODE):
            annotations = node["metadata"].get("annotations") or {}
            if ANNOTATION in annotations:
                found[node["metadata"]["name"]] = faults_of(annotations)
        return found

    return Exporter(figures.books, faults, clock=_now)


@contextlib.asynccontextmanager
async def _exposed(
    figures: Figures, exporter: Exporter, *, port: int | None
) -> AsyncIterator[dict[str, str]]:
    """Answer on loopback while the block lasts; without a port, on the usual ones if free."""

    def metrics(asked: Asked) -> Page:
        content_type, text = negotiated((*figures.families(), *process_families()), asked.accept)
        return Page(200, text, content_type)

    async def telemetry(asked: Asked) -> Page:
        # Writing down thousands of devices takes a while; the API goes on meanwhile.
        return Page(200, await asyncio.to_thread(exporter.frame().text))

    async with contextlib.AsyncExitStack() as stack:
        mine = await stack.enter_async_context(_listening(port, PORT, {"/metrics": metrics}))
        gpu_port = port - 1 if port else None
        gpus = _listening(gpu_port, GPU_PORT, {"/metrics": telemetry})
        theirs = await stack.enter_async_context(gpus)
        yield {"metrics": f"{mine}/metrics", "gpus": f"{theirs}/metrics"}


@contextlib.asynccontextmanager
async def _listening(port: int | None, usual: int, pages: Pages) -> AsyncIterator[str]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(probes(_HOST, port or usual, pages))
        except CannotListen:
            if port:
                raise
            address = await stack.enter_async_context(probes(_HOST, 0, pages))
        yield address


def _now() -> float:
    return time.time_ns() / 1e9
