"""The web page of a replica on a real cluster: it shows the same whether it leads or stands by."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from unisono.control.reconciling.workers import LiveControllers
from unisono.control.scheduler.loop import Scheduler
from unisono.engine.state.cluster import ClusterState
from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded
from unisono.kube.connect import connected
from unisono.kube.errors import BadConfig
from unisono.kube.kubeconfig import Access, Login
from unisono.kube.tls import ServerCertificate
from unisono.monitor.active_alerts import ActiveAlert, AlertBoard
from unisono.monitor.gpu_history import STEP_SECONDS, GpuHistory, prometheus_sample
from unisono.monitor.ledger.utilization import Asks, PrometheusError
from unisono.net.allowed_hosts import Hosts
from unisono.runtime.clock import cpu_seconds, seconds_now
from unisono.runtime.cluster.followed import FollowedCache
from unisono.runtime.ids import new_uid, random_source
from unisono.runtime.log import Journal
from unisono.runtime.usage_reports import LedgerPast
from unisono.web.actions.page_actions import PageActions
from unisono.web.actions.what_if import WhatIf
from unisono.web.auth import AuthenticationError, token_of
from unisono.web.cluster_auth import ClusterAuthenticator
from unisono.web.dashboard import Dashboard
from unisono.web.details import Details
from unisono.web.pages import Pages
from unisono.web.server import Site, serving

# A renewed certificate is shown within that time; the old one is good for days then.
_LOOK_AGAIN_S = 60.0


class AsUsers:
    """Acts on the API with the token of a request, and with nothing of ours."""

    def __init__(self, access: Access, clock: Clock) -> None:
        """Take where the API is. Our own certificate or token must not go along: it would win."""
        self._access = replace(access, login=Login())
        self._clock = clock

    @contextlib.asynccontextmanager
    async def acting(self, headers: Mapping[str, str]) -> AsyncIterator[Client]:
        """Connect as the user of a request."""
        token = token_of(headers)
        if not token:  # without one the API would take it for an anonymous request
            raise AuthenticationError("the token is missing or wrong")
        access = replace(self._access, login=Login(token=token))
        async with connected(
            access, clock=self._clock, random_source=random_source(), ids=new_uid, environ={}
        ) as client:
            yield client.variant(most_tries=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebChoices:
    """Where the web page is, and how."""

    listen: tuple[str, int]
    certificate: ServerCertificate | None = None  # over TLS, with it


class ClusterWeb:
    """Shows a cluster to the users of its API."""

    def __init__(
        self,
        live: LiveControllers,
        followed: FollowedCache,
        client: Client,
        ledger: Path | None,
        *,
        access: Access | None = None,
        prometheus: Watches | None = None,
        grafana: str = "",
        reuse: float,
    ) -> None:
        """Show what is followed; `client` authenticates users.

        `prometheus` knows what GPUs do, and which alerts fire; `grafana` is its address.

        `access` says where the API is, so that users can act there as themselves; without it the
        page is read only.
        """
        self._access = access
        self._prometheus = prometheus
        self._grafana = grafana
        self._view = live.view
        self._client = client
        self._ledger = ledger
        self._reuse = reuse
        self._cache = followed.cache
        self._scheduler: Scheduler | None = None

    def lead(self, scheduler: Scheduler) -> None:
        """Lead from now on: what-if asks this scheduler's state."""
        self._scheduler = scheduler

    async def serve(
        self, choices: WebChoices, names: Iterable[str], clock: Clock, journal: Journal
    ) -> None:
        """Serve the page until cancelled; `names` are those of this host."""
        dashboard = Dashboard(self._cache, self._view.find)
        past = LedgerPast(self._ledger) if self._ledger is not None else None
        history = GpuHistory() if self._prometheus is not None else None
        board = AlertBoard() if self._prometheus is not None else None
        pages = Pages(
            dashboard,
            now=seconds_now,
            past=past.read if past is not None else None,
            report=past.report if past is not None else None,
            reuse=self._reuse,
            history=history,
            alerts=board,
            grafana=self._grafana,
        )
        authenticator = ClusterAuthenticator(
            self._client.variant(most_tries=2), dashboard.namespaces, now=seconds_now
        )
        host, port = choices.listen
        hosts = Hosts(host, names)
        actions = details = None
        if self._access is not None:
            users = AsUsers(self._access, clock)
            details = Details(users)
            actions = PageActions(
                users,
                WhatIf(self._state, seconds_now),
                now=seconds_now,
                job_of=dashboard.job_of,
            )
        site = Site(
            pages,
            authenticator,
            now=seconds_now,
            ticks=cpu_seconds,
            hosts=hosts,
            actions=actions,
            details=details,
        )
        certificate = choices.certificate
        context = None if certificate is None else certificate.context
        async with serving(site, host, port, context) as address:
            journal.info("web page", address=address)
            work = guarded(_kept_fresh(certificate, clock, journal), asyncio.Event().wait())
            if self._prometheus is not None and history is not None and board is not None:
                nodes = self._cache.nodes
                measured = measuring(
                    history,
                    board,
                    self._prometheus,
                    lambda: nodes,
                    lambda: pages.looked_at,
                    clock,
                    journal,
                )
                work = guarded(measured, work)
            await work

    def _state(self) -> ClusterState | None:
        """Return the state of the scheduler, where this replica leads."""
        return self._scheduler.state if self._scheduler is not None else None


async def _kept_fresh(
    certificate: ServerCertificate | None, clock: Clock, journal: Journal
) -> None:
    """Show a renewed certificate soon after its files were replaced."""
    while certificate is not None:
        await clock.sleep(_LOOK_AGAIN_S)
        try:
            if certificate.refresh():
                journal.info("a renewed certificate for the web page")
        except BadConfig as error:
            journal.warning("the certificate of the web page is stuck", reason=str(error))


# ---- what GPUs do, as Prometheus knows it --------------------------------------------------------


_UNWATCHED_SECONDS = 60.0
_WATCHED_SECONDS = 120.0  # a page that was made within that time is open
# Their answers are megabytes, too much for a page that is not open.
_MOST_UNWATCHED = 2000


class Watches(Asks, Protocol):
    """Answers queries, and knows alerts."""

    def alerts(self) -> tuple[ActiveAlert, ...]:
        """Return the alerts of our rules that are pending or fire."""
        ...


async def measuring(
    history: GpuHistory,
    board: AlertBoard,
    prometheus: Watches,
    nodes: Callable[[], Iterable[str]],
    looked_at: Callable[[], float],
    clock: Clock,
    journal: Journal,
) -> None:
    """Fill a history and a board until cancelled; `looked_at` says when a page was last made."""
    complained = ""
    while True:
        now = clock.now()
        is_watched = now - looked_at() < _WATCHED_SECONDS
        names = list(nodes())
        try:
            board.take(await asyncio.to_thread(prometheus.alerts))
        except PrometheusError as error:
            board.fail(str(error))
        if names and (is_watched or history.devices <= _MOST_UNWATCHED):
            try:
                history.take(
                    await asyncio.to_thread(prometheus_sample, prometheus, names, int(now))
                )
                complained = ""
            except PrometheusError as error:
                if str(error) != complained:
                    complained = str(error)
                    journal.warning("GPUs cannot be measured for the page", reason=complained)
        await clock.sleep(STEP_SECONDS if is_watched else _UNWATCHED_SECONDS)
