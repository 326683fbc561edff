"""The ledger of an embedded cluster: written every quarter of a minute, a report of it every week.

What cannot be written stays for the next time; a full disk costs reports, never a job.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

from unisono.cli.clock import seconds_now
from unisono.cli.instance import Instance
from unisono.monitor.dcgm.exporter import Exporter, Frame
from unisono.monitor.ledger.keeper import Keeper, Use
from unisono.monitor.ledger.periods import Period
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow
from unisono.monitor.ledger.store import LedgerStore, LedgerTrouble
from unisono.monitor.metrics.page import Figures

_EVERY_SECONDS = 15.0
_IDLE = 0.05  # a device that is less busy than that is not used
_REPORTS_AT = timedelta(hours=7)  # on Mondays, UTC
# Beyond that, rows that could not be written are given up: memory matters more.
_MOST_UNWRITTEN = 100_000


@contextlib.asynccontextmanager
async def bookkeeping(
    instance: Instance,
    figures: Figures,
    exporter: Exporter,
    synced: Callable[[], Awaitable[None]],
) -> AsyncIterator[None]:
    """Keep the ledger while the block lasts; nothing counts as gone before all is `synced`."""
    try:
        store = LedgerStore(instance.ledger)
    except LedgerTrouble as trouble:
        print(f"unisono: warning: {trouble}; usage is not recorded", file=sys.stderr)
        yield
        return
    books = _Bookkeeping(instance, store, Keeper(figures.books), exporter)
    books.resume()
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(books.run(synced))
        try:
            yield
        finally:
            work.cancel()
    books.write()
    store.close()


class _Bookkeeping:
    def __init__(
        self, instance: Instance, store: LedgerStore, keeper: Keeper, exporter: Exporter
    ) -> None:
        self._instance = instance
        self._store = store
        self._keeper = keeper
        self._exporter = exporter
        self._looked_at = seconds_now()
        self._unwritten: list[Row] = []
        self._has_complained = False
        self._is_whole = False

    def resume(self) -> None:
        """Go on where the last one stopped."""
        store = self._store
        self._keeper.resume(
            store.open_rows(PodRow),
            store.open_rows(WorkloadRow),
            store.open_rows(NodeRow),
            store.open_rows(QueueRow),
            seen=store.seen(),
        )

    async def run(self, synced: Callable[[], Awaitable[None]]) -> None:
        """Look and write, again and again."""
        await synced()
        self._keeper.settle(seconds_now())
        self._keeper.close_missing()
        self._is_whole = True
        self.write()
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            now = seconds_now()
            self._keeper.settle(now)
            if self._keeper.has_pods:  # else there is nothing to measure
                frame = self._exporter.frame()
                self._keeper.used(uses(frame, frame.now - self._looked_at))
            self._looked_at = now
            self.write()
            await self._report(datetime.fromtimestamp(now, UTC))

    def write(self) -> None:
        """Write what changed; nothing before the cluster was seen as a whole."""
        if not self._is_whole:
            return
        now = seconds_now()
        self._keeper.settle(now)
        self._unwritten.extend(self._keeper.pending())
        try:
            self._store.write(self._unwritten, int(now))
        except (LedgerTrouble, OSError) as trouble:
            if not self._has_complained:
                print(f"unisono: warning: usage is not recorded: {trouble}", file=sys.stderr)
            self._has_complained = True
            del self._unwritten[:-_MOST_UNWRITTEN]
            return
        self._unwritten = []
        self._has_complained = False

    async def _report(self, now: datetime) -> None:
        """Write the report of the week that is over, once."""
        period = last_week(now)
        folder = self._instance.reports
        name = f"gpu-usage-{datetime.fromtimestamp(period.since, UTC):%Y-%m-%d}"
        if self._store.first() >= period.until or any(folder.glob(f"{name}_*.html")):
            return
        from unisono.cli.report import read, weekly

        await asyncio.to_thread(lambda: weekly(read(self._instance.ledger, period), folder))


def last_week(now: datetime) -> Period:
    """Return the last whole week, Monday to Monday, as of its report on Monday morning."""
    day = (now - _REPORTS_AT).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = day - timedelta(days=day.weekday())
    return Period(int((monday - timedelta(days=7)).timestamp()), int(monday.timestamp()))


def uses(frame: Frame, seconds: float) -> dict[str, Use]:
    """Return what the devices of each pod did for so many seconds."""
    devices = frame.devices
    found: dict[str, Use] = {}
    for uid, rows in frame.by_pod().items():
        busy = devices.busy[rows]
        found[uid] = Use(
            busy=float(busy.sum()) * seconds,
            tensor=float(devices.tensor[rows].sum()) * seconds,
            covered=len(rows) * seconds,
            idle_devices=int((busy < _IDLE).sum()),
            peak_mib=int(devices.used_mib[rows].max()),
        )
    return found
