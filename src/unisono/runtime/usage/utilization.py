"""Sources of device utilization: the simulated exporter, or the Prometheus of a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unisono.monitor.dcgm.exporter import Exporter, Frame
from unisono.monitor.ledger.accounts import Period
from unisono.monitor.ledger.recorder import GpuUse
from unisono.monitor.ledger.rows import PodRow
from unisono.monitor.ledger.store import LedgerStore
from unisono.monitor.ledger.utilization import Asks, measured
from unisono.runtime.clock import seconds_now

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
