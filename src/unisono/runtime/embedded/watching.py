"""An embedded cluster is looked at every quarter of a minute, for alerts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from unisono.monitor.alerting.conditions import Observation
from unisono.monitor.alerting.evaluator import AlertEvaluator
from unisono.monitor.dcgm.exporter import Exporter
from unisono.monitor.metrics.nodes import IdleNodes
from unisono.monitor.metrics.registry import MetricsRegistry
from unisono.runtime.clock import seconds_now

_EVERY_SECONDS = 15.0


@contextlib.asynccontextmanager
async def watching(figures: MetricsRegistry, exporter: Exporter) -> AsyncIterator[AlertEvaluator]:
    """Look while the block lasts."""
    watch, idle, cache = AlertEvaluator(), IdleNodes(), figures.cache

    async def look() -> None:
        while True:
            frame = exporter.frame()
            now = seconds_now()
            watch.look(Observation(cache, frame, idle.of(cache, now), now, figures.health()))
            await asyncio.sleep(_EVERY_SECONDS)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(look())
        try:
            yield watch
        finally:
            work.cancel()
