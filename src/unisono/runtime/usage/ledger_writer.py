"""The ledger of a cluster, written every quarter of a minute.

    what happens ──▶ cache ──▶ keeper ──▶ rows ──▶ the file
    how busy devices were ──▶ meter ──────▲

What cannot be written stays for the next time; a full disk costs reports, never a job.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from unisono.monitor.ledger.recorder import GpuUse, LedgerRecorder, with_use
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow
from unisono.monitor.ledger.store import LedgerError, LedgerStore
from unisono.monitor.metrics.registry import MetricsRegistry
from unisono.monitor.series import PrometheusError
from unisono.runtime.clock import seconds_now
from unisono.runtime.usage.utilization import Measured

_EVERY_SECONDS = 15.0
# Beyond that, rows that could not be written are given up: memory matters more.
_MOST_UNWRITTEN = 100_000


class Meter(Protocol):
    """Knows how busy devices were."""

    async def measure(self, store: LedgerStore, *, has_pods: bool) -> Measured | None:
        """Return what devices did since the last time; None if it is too early to ask."""
        ...


@contextlib.asynccontextmanager
async def bookkeeping(
    ledger: Path,
    figures: MetricsRegistry,
    meter: Meter | None,
    synced: Callable[[], Awaitable[None]],
    *,
    complain: Callable[[str], None],
    afterwards: Callable[[LedgerStore], Awaitable[None]] | None = None,
) -> AsyncIterator[None]:
    """Keep the ledger while the block lasts; nothing counts as gone before all is `synced`."""
    try:
        store = LedgerStore(ledger)
        cache = _Bookkeeping(store, LedgerRecorder(figures.cache), meter, complain, afterwards)
        cache.resume()
    except LedgerError as trouble:
        complain(f"usage is not recorded: {trouble}")
        yield
        return
    cache.on_measured = figures.cost.measured
    try:
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(cache.run(synced))
            try:
                yield
            finally:
                work.cancel()
    except BaseExceptionGroup as several:  # callers expect the one reason why it ended
        raise several.exceptions[0] from several.exceptions[0].__cause__
    finally:
        cache.close()


class _Bookkeeping:
    def __init__(
        self,
        store: LedgerStore,
        keeper: LedgerRecorder,
        meter: Meter | None,
        complain: Callable[[str], None],
        afterwards: Callable[[LedgerStore], Awaitable[None]] | None,
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._meter = meter
        self._complain = complain
        self._afterwards = afterwards
        self._unwritten: list[Row] = []
        self._complaints: dict[str, str] = {}  # by what does not work; told once
        self._is_whole = False
        self.on_measured: Callable[[Mapping[str, GpuUse]], None] = lambda uses: None

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
        await self._write(seconds_now())
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            now = seconds_now()
            self._keeper.settle(now)
            if await self._write(now) and self._meter is not None:
                await self._measure(self._meter)
            if self._afterwards is not None:
                await self._report(self._afterwards)

    async def _report(self, report: Callable[[LedgerStore], Awaitable[None]]) -> None:
        trouble_with = "reports are not written"
        try:
            await report(self._store)
        except (LedgerError, OSError) as trouble:
            self._tell(trouble_with, trouble)
        else:
            self._complaints.pop(trouble_with, None)

    def close(self) -> None:
        """Write what changed last; nothing if the cluster was never seen as a whole."""
        if self._is_whole:
            now = seconds_now()
            self._keeper.settle(now)
            try:
                self._store.write((*self._unwritten, *self._keeper.pending()), int(now))
            except (LedgerError, OSError) as trouble:
                self._tell("usage is not recorded", trouble)
        self._store.close()

    async def _write(self, now: float, measured: int = 0) -> bool:
        """Write what changed; say whether that went well."""
        self._unwritten.extend(self._keeper.pending())
        try:
            # In a thread: a slow disk must not hold up decisions.
            await asyncio.to_thread(self._store.write, self._unwritten, int(now), measured)
        except (LedgerError, OSError) as trouble:
            self._tell("usage is not recorded", trouble)
            del self._unwritten[:-_MOST_UNWRITTEN]
            return False
        self._unwritten = []
        self._complaints.pop("usage is not recorded", None)
        return True

    async def _measure(self, meter: Meter) -> None:
        """Add how busy devices were; what is in the store by then is whole."""
        trouble_with = "GPU utilization is not measured"
        try:
            found = await meter.measure(self._store, has_pods=self._keeper.has_pods)
        except (PrometheusError, LedgerError) as trouble:
            self._tell(trouble_with, trouble)
            return
        self._complaints.pop(trouble_with, None)
        if found is not None:
            self.on_measured(found.uses)
            over = self._keeper.used(found.uses)
            try:
                rows = list(self._store.pods(over))
            except LedgerError as trouble:
                self._tell("usage is not recorded", trouble)
                return
            self._unwritten.extend([with_use(row, over[row.uid]) for row in rows])
            await self._write(seconds_now(), found.until)

    def _tell(self, what: str, trouble: Exception) -> None:
        if what not in self._complaints:
            self._complain(f"{what}: {trouble}")
        self._complaints[what] = str(trouble)
