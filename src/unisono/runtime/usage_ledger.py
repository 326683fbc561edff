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
from typing import NamedTuple, Protocol

import numpy as np

from unisono.monitor.dcgm.exporter import Exporter, Frame
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.recorder import GpuUse, LedgerRecorder, with_use
from unisono.monitor.ledger.rows import NodeRow, PodRow, QueueRow, Row, WorkloadRow
from unisono.monitor.ledger.store import LedgerError, LedgerStore
from unisono.monitor.ledger.utilization import Asks, PrometheusError, measured
from unisono.monitor.metrics.registry import MetricsRegistry
from unisono.runtime.clock import seconds_now

_EVERY_SECONDS = 15.0
# A cluster that was away for less was restarted, and never off.
_OFF_SECONDS = 300.0
# Beyond that, rows that could not be written are given up: memory matters more.
_MOST_UNWRITTEN = 100_000


class Meter(Protocol):
    """Knows how busy devices were: the simulated exporter, or the Prometheus of a real cluster."""

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
    is_cluster_ours: bool = False,
) -> AsyncIterator[None]:
    """Keep the ledger while the block lasts; nothing counts as gone before all is `synced`.

    A cluster of our own is off while we are: that time is no capacity.
    """
    try:
        store = LedgerStore(ledger)
        ledger_recorder = LedgerRecorder(figures.cache)
        ledger_recorder.on_started = figures.estimates.count
        cache = _Bookkeeping(store, ledger_recorder, meter, complain, afterwards)
        cache.resume(is_cluster_ours=is_cluster_ours)
    except LedgerError as error:
        complain(f"usage is not recorded: {error}")
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
        ledger_recorder: LedgerRecorder,
        meter: Meter | None,
        complain: Callable[[str], None],
        afterwards: Callable[[LedgerStore], Awaitable[None]] | None,
    ) -> None:
        self._store = store
        self._ledger_recorder = ledger_recorder
        self._meter = meter
        self._complain = complain
        self._afterwards = afterwards
        self._unwritten: list[Row] = []
        self._complaints: dict[str, str] = {}  # by what does not work; told once
        self._is_whole = False
        self.on_measured: Callable[[Mapping[str, GpuUse]], None] = lambda uses: None

    def resume(self, *, is_cluster_ours: bool) -> None:
        """Go on where the last one stopped."""
        store = self._store
        seen = store.seen()
        was_off = is_cluster_ours and seen and seconds_now() - seen > _OFF_SECONDS
        self._ledger_recorder.resume(
            store.open_rows(PodRow),
            store.open_rows(WorkloadRow),
            store.open_rows(NodeRow),
            store.open_rows(QueueRow),
            seen=seen,
            off_since=seen if was_off else 0,
        )

    async def run(self, synced: Callable[[], Awaitable[None]]) -> None:
        """Look and write, again and again."""
        await synced()
        self._ledger_recorder.settle(seconds_now())
        self._ledger_recorder.close_missing()
        self._is_whole = True
        await self._write(seconds_now())
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            now = seconds_now()
            self._ledger_recorder.settle(now)
            if await self._write(now) and self._meter is not None:
                await self._measure(self._meter)
            if self._afterwards is not None:
                await self._report(self._afterwards)

    async def _report(self, report: Callable[[LedgerStore], Awaitable[None]]) -> None:
        purpose = "reports are not written"
        try:
            await report(self._store)
        except (LedgerError, OSError) as error:
            self._tell(purpose, error)
        else:
            self._complaints.pop(purpose, None)

    def close(self) -> None:
        """Write what changed last; nothing if the cluster was never seen as a whole."""
        if self._is_whole:
            now = seconds_now()
            self._ledger_recorder.settle(now)
            try:
                self._store.write((*self._unwritten, *self._ledger_recorder.pending()), int(now))
            except (LedgerError, OSError) as error:
                self._tell("usage is not recorded", error)
        self._store.close()

    async def _write(self, now: float, measured: int = 0) -> bool:
        """Write what changed; say whether that went well."""
        self._unwritten.extend(self._ledger_recorder.pending())
        try:
            # In a thread: a slow disk must not hold up decisions.
            await asyncio.to_thread(self._store.write, self._unwritten, int(now), measured)
        except (LedgerError, OSError) as error:
            self._tell("usage is not recorded", error)
            del self._unwritten[:-_MOST_UNWRITTEN]
            return False
        self._unwritten = []
        self._complaints.pop("usage is not recorded", None)
        return True

    async def _measure(self, meter: Meter) -> None:
        """Add how busy devices were; what is in the store by then is whole."""
        purpose = "GPU utilization is not measured"
        try:
            found = await meter.measure(self._store, has_pods=self._ledger_recorder.has_pods)
        except (PrometheusError, LedgerError) as error:
            self._tell(purpose, error)
            return
        self._complaints.pop(purpose, None)
        if found is not None:
            self.on_measured(found.uses)
            over = self._ledger_recorder.used(found.uses)
            try:
                rows = list(self._store.pods(over))
            except LedgerError as error:
                self._tell("usage is not recorded", error)
                return
            self._unwritten.extend([with_use(row, over[row.uid]) for row in rows])
            await self._write(seconds_now(), found.until)

    def _tell(self, what: str, error: Exception) -> None:
        if what not in self._complaints:
            self._complain(f"{what}: {error}")
        self._complaints[what] = str(error)


# ---- how busy devices were -----------------------------------------------------------------------

_IDLE = 0.05  # a device that is less busy than that is not used
# What is younger than that may not have been scraped yet.
_LAG_SECONDS = 60
# Each question costs Prometheus some work, and pods run for hours.
_LEAST_SECONDS = 300
# What was missed is asked for in such pieces: eight thousand devices are two million points.
_MOST_SECONDS = 3600
# Longer ago, hardly any Prometheus remembers.
_MOST_BACK_SECONDS = 7 * 86_400


class Measured(NamedTuple):
    """What devices did, by the uid of their pod; `until` when, where that has to be remembered."""

    uses: Mapping[str, GpuUse]
    until: int = 0


class ExporterMeter:
    """Looks at simulated devices."""

    def __init__(self, exporter: Exporter) -> None:
        """Count from now on."""
        self._exporter = exporter
        self._looked_at = seconds_now()

    async def measure(self, store: LedgerStore, *, has_pods: bool) -> Measured | None:
        """Return what devices did since the last look."""
        now, before = seconds_now(), self._looked_at
        self._looked_at = now
        if not has_pods:
            return None
        frame = self._exporter.frame()
        return Measured(uses(frame, frame.now - before))


class PrometheusMeter:
    """Asks a Prometheus, also about the time when no replica asked."""

    def __init__(self, prometheus: Asks) -> None:
        """Begin now, or where the ledger stops."""
        self._prometheus = prometheus
        self._begun = int(seconds_now())

    async def measure(self, store: LedgerStore, *, has_pods: bool) -> Measured | None:
        """Return what devices did in the next stretch of time, once all of it was scraped."""
        latest = int(seconds_now()) - _LAG_SECONDS
        since = max(store.measured() or self._begun, latest - _MOST_BACK_SECONDS)
        period = Period(since, min(latest, since + _MOST_SECONDS))
        if period.seconds < _LEAST_SECONDS:
            return None
        pods = list(store.within(PodRow, *period))
        uses = await asyncio.to_thread(measured, self._prometheus, period, pods)
        return Measured(uses, period.until)


def uses(frame: Frame, seconds: float) -> dict[str, GpuUse]:
    """Return what the devices of each pod did for so many seconds."""
    devices = frame.devices
    of_pod, rows, count = devices.pod_of, devices.at_work, len(devices.pods)
    busy = devices.busy[rows]
    peaks = np.zeros(count)
    np.maximum.at(peaks, of_pod, devices.used_mib[rows])
    columns = zip(
        (np.bincount(of_pod, busy, count) * seconds).tolist(),
        (np.bincount(of_pod, devices.tensor[rows], count) * seconds).tolist(),
        (np.bincount(of_pod, minlength=count) * seconds).tolist(),
        np.bincount(of_pod, busy < _IDLE, count).astype(int).tolist(),
        peaks.astype(int).tolist(),
        strict=True,
    )
    return {uid: GpuUse(*one) for uid, one in zip(devices.pods, columns, strict=True)}
