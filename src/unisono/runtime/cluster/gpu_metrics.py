"""What GPUs of a real cluster do, and its alerts, for the page: asked of a Prometheus.

Every quarter of a minute while a page is open, and every minute else, so that there is a history
when one is opened; of very many devices only while a page is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from unisono.kube.clock import Clock
from unisono.monitor.active_alerts import ActiveAlert, AlertBoard
from unisono.monitor.gpu_history import STEP_SECONDS, GpuHistory, prometheus_sample
from unisono.monitor.ledger.utilization import Asks, PrometheusError
from unisono.runtime.log import Journal

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
    said = ""
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
                said = ""
            except PrometheusError as error:
                if str(error) != said:
                    said = str(error)
                    journal.warning("GPUs cannot be measured for the page", reason=said)
        await clock.sleep(STEP_SECONDS if is_watched else _UNWATCHED_SECONDS)
