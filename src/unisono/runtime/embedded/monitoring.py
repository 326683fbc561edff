"""Metrics of an embedded cluster: those of the scheduler, telemetry of its simulated GPUs.

Two pages on loopback, as a Prometheus expects them: `/metrics` of Unisono, and `/metrics` of an
exporter of GPU telemetry on a port of its own. The first is also a page of the API, with a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from unisono.monitor.active_alerts import AlertBoard
from unisono.monitor.alerting import AlertEvaluator, Observation, timers_of
from unisono.monitor.dcgm.exporter import Exporter, Extent
from unisono.monitor.exposition import classic, negotiated
from unisono.monitor.gpu_history import GpuHistory, simulated_sample
from unisono.monitor.metrics.nodes import IdleNodes
from unisono.monitor.metrics.registry import ALL, MetricsRegistry
from unisono.monitor.pending import PendingWorkloads
from unisono.net.listener import CannotListen
from unisono.runtime.clock import cpu_seconds, seconds_now
from unisono.runtime.cluster.health import process_families
from unisono.runtime.embedded.server import Running
from unisono.runtime.embedded.web_users import Users
from unisono.runtime.instance import Instance
from unisono.runtime.log import warn
from unisono.runtime.probes import Asked, Page, Pages, probes
from unisono.runtime.scheduler_metrics import Timed, metrics_of
from unisono.runtime.usage_ledger import ExporterMeter, bookkeeping
from unisono.runtime.usage_reports import LedgerPast, weekly_reports
from unisono.web.actions.page_actions import PageActions
from unisono.web.actions.what_if import WhatIf
from unisono.web.dashboard import Dashboard
from unisono.web.details import Details
from unisono.web.pages import Pages as WebPages
from unisono.web.server import Site, serving

# Where NVIDIA's exporter listens; ours is next to it.
GPU_PORT = 9400
PORT = 9401
WEB_PORT = 9402
_HOST = "127.0.0.1"
_OPTION = "--metrics-port"


@contextlib.asynccontextmanager
async def monitored(
    cluster: Running,
    instance: Instance,
    timed: Timed,
    *,
    port: int | None,
    extent: Extent | None = None,
    reuse: float,
    grafana: str = "",
) -> AsyncIterator[dict[str, str]]:
    """Show the figures of a cluster and keep its ledger while the block lasts.

    Yields the addresses of the pages.

    Port 0 means no pages on loopback, None the usual ones if they are free. `reuse` is how long the
    machines of an incomplete purchase are kept. `grafana` is where panels are.
    """
    at_work = cluster.at_work
    figures = metrics_of(
        at_work.view, at_work.driver, timed, at_work.crashes, mode="embedded", compat=ALL
    )
    health = at_work.scheduler.health
    cluster.api.endpoints.checks["scheduler"] = lambda: health.why_unhealthy(seconds_now())
    cluster.api.endpoints.ready_checks["scheduler"] = lambda: health.why_not_ready(seconds_now())
    figures.cache.on_unreadable = lambda what, why: warn(f"no figures of {what}: {why!r}")
    cluster.api.endpoints.pending = PendingWorkloads(figures.cache, at_work.view.peek)
    cluster.api.endpoints.gauges.append(lambda: classic(figures.families()).rstrip("\n"))
    exporter = exporter_of(figures, extent)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(
            bookkeeping(
                instance.ledger,
                figures,
                ExporterMeter(exporter),
                at_work.synced,
                complain=warn,
                afterwards=weekly_reports(instance),
                is_cluster_ours=True,
            )
        )
        if port == 0:
            yield {}
            return
        history, board = GpuHistory(), AlertBoard()
        watch = await stack.enter_async_context(
            watching(figures, exporter, history, board, instance.alert_timers)
        )
        exposed = _exposed(figures, exporter, watch, port=port)
        addresses = await stack.enter_async_context(exposed)
        ledger = LedgerPast(instance.ledger)
        dashboard = Dashboard(figures.cache, at_work.view.find)
        pages = WebPages(
            dashboard,
            now=seconds_now,
            past=ledger.read,
            report=ledger.report,
            reuse=reuse,
            history=history,
            alerts=board,
            grafana=grafana,
        )
        web = _web(cluster, pages, instance, port)
        address = await stack.enter_async_context(web)
        yield {**addresses, "web": address}


def exporter_of(figures: MetricsRegistry, extent: Extent | None = None) -> Exporter:
    """Return the telemetry of a cluster's GPUs."""
    cache = figures.cache
    return Exporter(cache, lambda: cache.faults, clock=seconds_now, extent=extent)


@contextlib.asynccontextmanager
async def _exposed(
    figures: MetricsRegistry, exporter: Exporter, watch: AlertEvaluator, *, port: int | None
) -> AsyncIterator[dict[str, str]]:
    """Answer on loopback while the block lasts; without a port, on the usual ones if free."""

    def metrics(asked: Asked) -> Page:
        content_type, text = negotiated((*figures.families(), *process_families()), asked.accept)
        return Page(200, text, content_type)

    def alerts(asked: Asked) -> Page:
        return Page(200, json.dumps(watch.told()), "application/json")

    async def telemetry(asked: Asked) -> Page:
        # Writing down thousands of devices takes a while; the API goes on meanwhile.
        return Page(200, await asyncio.to_thread(exporter.frame().text))

    async with contextlib.AsyncExitStack() as stack:
        own: Pages = {"/metrics": metrics, "/api/v1/alerts": alerts}
        mine = await stack.enter_async_context(_listening(port, PORT, own))
        gpu_port = port - 1 if port else None
        gpus = _listening(gpu_port, GPU_PORT, {"/metrics": telemetry})
        theirs = await stack.enter_async_context(gpus)
        yield {"metrics": f"{mine}/metrics", "gpus": f"{theirs}/metrics"}


@contextlib.asynccontextmanager
async def _web(
    cluster: Running, pages: WebPages, instance: Instance, port: int | None
) -> AsyncIterator[str]:
    """Serve the page while the block lasts; its address holds the token that signs in."""
    token = instance.web_token()
    dashboard = pages.dashboard
    users = Users(cluster.api, token, dashboard.namespaces)
    scheduler = cluster.at_work.scheduler
    actions = PageActions(
        users,
        WhatIf(lambda: scheduler.state, seconds_now),
        now=seconds_now,
        job_of=dashboard.job_of,
        may_create_policy=True,  # what counts without one is in no file
    )
    site = Site(
        pages,
        users,
        now=seconds_now,
        ticks=cpu_seconds,
        actions=actions,
        details=Details(users),
    )
    wanted = port + 1 if port else WEB_PORT
    async with contextlib.AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(serving(site, _HOST, wanted, option=_OPTION))
        except CannotListen:
            if port:
                raise
            address = await stack.enter_async_context(serving(site, _HOST, 0))
        yield f"{address}#token={token}"


@contextlib.asynccontextmanager
async def _listening(port: int | None, usual: int, pages: Pages) -> AsyncIterator[str]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            address = await stack.enter_async_context(
                probes(_HOST, port or usual, pages, option=_OPTION)
            )
        except CannotListen:
            if port:
                raise
            address = await stack.enter_async_context(probes(_HOST, 0, pages))
        yield address


# ---- alerts --------------------------------------------------------------------------------------

_EVERY_SECONDS = 15.0


@contextlib.asynccontextmanager
async def watching(
    figures: MetricsRegistry,
    exporter: Exporter,
    history: GpuHistory,
    board: AlertBoard,
    timers: Path,
) -> AsyncIterator[AlertEvaluator]:
    """Evaluate the alerts, and remember what GPUs do, every quarter of a minute.

    Since when what holds is kept in the file `timers`; one that cannot be written costs only that.
    """
    watch, idle, cache = AlertEvaluator(), IdleNodes(), figures.cache
    with contextlib.suppress(OSError):
        known = timers_of(await asyncio.to_thread(timers.read_bytes))
        if known is not None:
            watch.restore(known, seconds_now())

    async def look() -> None:
        while True:
            frame = exporter.frame()
            history.take(simulated_sample(frame))
            now = seconds_now()
            watch.look(Observation(cache, frame, idle.of(cache, now), now, figures.health()))
            board.take(watch.active())
            with contextlib.suppress(OSError):
                await asyncio.to_thread(_write_whole, timers, msgspec.json.encode(watch.timers()))
            await asyncio.sleep(_EVERY_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(look())
        try:
            yield watch
        finally:
            work.cancel()


def _write_whole(path: Path, text: bytes) -> None:
    """Write a file that is never seen in part."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(text)
    fresh.replace(path)
