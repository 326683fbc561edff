"""An embedded cluster is looked at every quarter of a minute, for alerts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from unisono.cli.clock import seconds_now
from unisono.monitor.alerting.conditions import Seen
from unisono.monitor.alerting.watch import Watch
from unisono.monitor.dcgm.exporter import Exporter
from unisono.monitor.metrics.nodes import Idle
from unisono.monitor.metrics.page import Figures

_EVERY_SECONDS = 15.0


@contextlib.asynccontextmanager
async def watching(figures: Figures, exporter: Exporter) -> AsyncIterator[Watch]:
    """Look while the block lasts."""
    watch, idle, books = Watch(), Idle(), figures.books

    async def look() -> None:
        while True:
            frame = exporter.frame()
            now = seconds_now()
            watch.look(Seen(books, frame, idle.of(books, now), now, figures.health()))
            await asyncio.sleep(_EVERY_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(look())
        try:
            yield watch
        finally:
            work.cancel()
