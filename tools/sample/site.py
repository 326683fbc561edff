"""The web page of a cluster on paper: the real page, served by the real listener."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from tools.sample.alerts import board_of
from tools.sample.gpus import history_of
from tools.sample.world import Sample
from unisono.monitor.cache import ClusterCache
from unisono.web.auth import Authenticator, TokenAuthenticator
from unisono.web.dashboard import Dashboard
from unisono.web.pages import Pages
from unisono.web.server import Site, serving

TOKEN = "a-token"


class Served(NamedTuple):
    """Where the page is, and the cache behind it: what they are told of appears on it."""

    address: str
    cache: ClusterCache
    dashboard: Dashboard
    now: Callable[[], float]

    def at(self, page: str) -> str:
        """Return the address of a page, with what signs in."""
        return f"{self.address}#token={TOKEN}{page}"


@contextlib.asynccontextmanager
async def served(
    shown: Sample, authenticator: Authenticator | None = None
) -> AsyncIterator[Served]:
    """Serve the page while the block lasts; its time goes on from the sample's."""
    began = time.monotonic()

    def now() -> float:
        return shown.now + time.monotonic() - began

    cache = shown.cache()
    dashboard = Dashboard(cache, shown.look)
    dashboard.refresh()
    history = history_of(dashboard, shown.now)
    pages = Pages(
        dashboard,
        now=now,
        past=shown.past,
        report=shown.report,
        history=history,
        alerts=board_of(dashboard, shown.now),
        grafana="https://grafana.example",
    )
    site = Site(pages, authenticator or TokenAuthenticator(TOKEN), now=now, ticks=time.process_time)
    async with serving(site, "127.0.0.1", 0) as address:
        yield Served(address, cache, dashboard, now)
