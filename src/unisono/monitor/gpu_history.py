"""What GPUs did lately: utilisation, memory, temperature and power of each, for half an hour.

One small column over all devices for each point of time, so that eight thousand devices take eight
megabytes once half an hour is over, and next to nothing before. A point is taken every quarter of a
minute: from the simulated devices of an embedded cluster, or from a Prometheus that scrapes
dcgm-exporter (`prometheus_sample`). What was not measured is NaN.

The past is kept in half precision, a two-thousandth of a value: half a watt of a thousand. The
newest point is kept as it was measured.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unisono.kinds.digits import whole_number
from unisono.monitor.dcgm.assignments import Device
from unisono.monitor.dcgm.exporter import Frame
from unisono.monitor.ledger.utilization import Asks, Series

PodName = tuple[str, str]  # namespace, name
Columns = NDArray[np.float32]
_Past = NDArray[np.float16]

STEP_SECONDS = 15.0
POINTS = 120  # half an hour
# A device that was not measured for so long is shown without a value.
_STALE_SECONDS = 90.0
_BUSY, _USED, _CELSIUS, _WATTS = range(4)
# Half precision ends here; a GPU may have more MiB, so its memory is kept in 16 of them.
_MOST_KEPT = 65_504.0
_UNITS: Columns = np.array([1, 16, 1, 1], dtype=np.float32)


class Sample(NamedTuple):
    """All devices at one time."""

    at: float
    devices: tuple[Device, ...]
    values: Columns  # rows: percent busy, MiB used, °C, W
    memory_mib: Columns
    pods: Mapping[Device, PodName]  # which pod has it, where that was measured


class Reading(NamedTuple):
    """One device now; None is what is not known."""

    busy: float | None  # percent
    used_mib: float | None
    memory_mib: float | None
    celsius: float | None
    watts: float | None


class GpuHistory:
    """Keeps the last half hour of every device."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.version = 0
        self.at = 0.0
        self.pods: Mapping[Device, PodName] = {}
        self._rows: dict[Device, int] = {}
        self._devices: tuple[Device, ...] = ()
        self._times: deque[float] = deque(maxlen=POINTS)
        self._past: deque[_Past] = deque(maxlen=POINTS)  # one for each time
        self._now: Columns = np.zeros((4, 0), dtype=np.float32)
        self._memory: Columns = np.zeros(0, dtype=np.float32)

    def take(self, sample: Sample) -> None:
        """Add a point; devices that are gone are forgotten."""
        if sample.devices != self._devices:
            self._follow(sample.devices)
        # Anything may stand in a Prometheus.
        small = np.clip(sample.values / _UNITS[:, None], -_MOST_KEPT, _MOST_KEPT)
        self._past.append(small.astype(np.float16))
        self._times.append(sample.at)
        self._now = sample.values
        self._memory = sample.memory_mib
        self.pods = sample.pods
        self.at = sample.at
        self.version += 1

    def _follow(self, devices: tuple[Device, ...]) -> None:
        pairs = [(at, self._rows[one]) for at, one in enumerate(devices) if one in self._rows]
        here, there = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        for number, before in enumerate(self._past):
            column = np.full((4, len(devices)), np.nan, dtype=np.float16)
            column[:, here] = before[:, there]
            self._past[number] = column
        self._devices = devices
        self._rows = {one: at for at, one in enumerate(devices)}

    @property
    def devices(self) -> int:
        """How many devices were measured the last time."""
        return len(self._devices)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured yet."""
        return not self._devices

    def is_fresh(self, now: float) -> bool:
        """Say whether the newest point is of now."""
        return not self.is_empty and now - self.at < _STALE_SECONDS

    def reading(self, device: Device) -> Reading | None:
        """Return one device now; None if it is not known."""
        row = self._rows.get(device)
        if row is None:
            return None
        busy, used, celsius, watts = (_known(self._now[at, row]) for at in range(4))
        return Reading(busy, used, _known(self._memory[row]), celsius, watts)

    def together(self, devices: Iterable[Device]) -> Together | None:
        """Return several devices as one; None if none of them is known."""
        rows = [self._rows[one] for one in devices if one in self._rows]
        if not rows:
            return None
        now = self._now[:, rows]
        if bool(np.isnan(now).all()):
            return None
        return Together(
            devices=len(rows),
            busy=_rounded(_mean(now[_BUSY])),
            least=_rounded(_least(now[_BUSY])),
            used_mib=_rounded(_sum(now[_USED])),
            memory_mib=_rounded(_sum(self._memory[rows])),
            hottest=_rounded(_most(now[_CELSIUS])),
            watts=_rounded(_sum(now[_WATTS])),
        )

    def series(self, devices: Iterable[Device], points: int) -> dict[str, list[float | None]]:
        """Return the half hour of several devices as one, in so many points, the oldest first.

        Utilisation is their mean, the temperature the hottest one's, memory and power their sums.
        """
        rows = [self._rows[one] for one in devices if one in self._rows]
        if not rows:
            return {}
        of = self._lately(rows)
        whole = (
            ("busy", _mean(of[_BUSY], axis=0)),
            ("used", _sum(of[_USED], axis=0)),
            ("celsius", _most(of[_CELSIUS], axis=0)),
            ("watts", _sum(of[_WATTS], axis=0)),
        )
        # By time, because a Prometheus is asked less often while no page is open.
        width = POINTS * STEP_SECONDS / points
        ago = np.floor((self.at - np.array(self._times)) / width)
        bins = [ago == number for number in reversed(range(points))]
        return {
            name: [_rounded(_mean(column[one])) if one.any() else None for one in bins]
            for name, column in whole
        }

    def busiest(self, devices: Iterable[Device], seconds: float) -> float | None:
        """Return how busy devices together were at most lately; None without so much history."""
        rows = [self._rows[one] for one in devices if one in self._rows]
        recent = [one for one in self._times if one >= self.at - seconds]
        # Some points may be late or lost; most of that time has to be known.
        if not rows or not recent or recent[0] > self.at - 0.8 * seconds:
            return None
        values = self._lately(rows, len(recent))[_BUSY]
        return None if bool(np.isnan(values).any()) else float(values.mean(axis=0).max())

    def _lately(self, rows: Sequence[int], most: int = POINTS) -> Columns:
        """Return the newest points of some devices: by measure, device and time."""
        columns = [column[:, rows] for column in list(self._past)[-most:]]
        return np.stack(columns, axis=2).astype(np.float32) * _UNITS[:, None, None]


class Together(NamedTuple):
    """Several devices as one."""

    devices: int
    busy: float | None  # their mean
    least: float | None  # the least busy one's
    used_mib: float | None
    memory_mib: float | None
    hottest: float | None
    watts: float | None


def _known(value: np.float32) -> float | None:
    return None if math.isnan(value) else round(float(value), 1)


def _rounded(value: Any) -> float | None:
    return None if math.isnan(value) else round(float(value), 1)


# Reductions over what is known; NaN where nothing is.


def _sum(column: Columns, axis: int | None = None) -> Any:
    known = ~np.isnan(column)
    return np.where(known.any(axis=axis), np.sum(column, axis=axis, where=known), np.nan)


def _mean(column: Columns, axis: int | None = None) -> Any:
    counts = np.count_nonzero(~np.isnan(column), axis=axis)
    return _sum(column, axis) / np.maximum(counts, 1)


def _most(column: Columns, axis: int | None = None) -> Any:
    known = ~np.isnan(column)
    found = np.max(column, axis=axis, where=known, initial=-np.inf)
    return np.where(known.any(axis=axis), found, np.nan)


def _least(column: Columns, axis: int | None = None) -> Any:
    return -_most(-column, axis)


# ---- sources -------------------------------------------------------------------------------------


def simulated_sample(frame: Frame) -> Sample:
    """Return the simulated devices of an embedded cluster."""
    devices = frame.devices
    values = np.stack(
        [100.0 * devices.busy, devices.used_mib, devices.temperature, devices.power]
    ).astype(np.float32)
    return Sample(
        frame.now,
        tuple(one.device for one in devices.places),
        values,
        devices.memory_mib.astype(np.float32),
        {
            place.device: holder.pod.key
            for place, holder in zip(devices.places, devices.holders, strict=True)
            if holder is not None
        },
    )


# How Prometheus names the node of an exporter, by what is most often configured.
_NODES = ("kubernetes_node", "Hostname", "hostname", "node", "instance")
_BY = "by (kubernetes_node, Hostname, hostname, node, instance, gpu)"
_POD = "namespace, pod, exported_namespace, exported_pod"
_EXPRESSIONS = (
    # The better measure where there is one: a rank that spins in a collective is 100 % "utilised".
    f"max {_BY[:-1]}, {_POD}) (100 * DCGM_FI_PROF_SM_ACTIVE or"
    " 100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE or DCGM_FI_DEV_GPU_UTIL)",
    f"max {_BY} (DCGM_FI_DEV_FB_USED)",
    f"max {_BY} (DCGM_FI_DEV_GPU_TEMP)",
    f"max {_BY} (DCGM_FI_DEV_POWER_USAGE)",
    f"max {_BY} (DCGM_FI_DEV_FB_TOTAL or DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
)


def prometheus_sample(prometheus: Asks, nodes: Sequence[str], at: int) -> Sample:
    """Ask a Prometheus for the devices of nodes at a time; raises PrometheusError."""
    there = frozenset(nodes)
    columns: list[dict[Device, float]] = []
    pods: dict[Device, PodName] = {}
    for number, expression in enumerate(_EXPRESSIONS):
        column: dict[Device, float] = {}
        for one in prometheus.query(expression, at):
            device = _device_of(one, there)
            if device is not None:
                column[device] = max(one.value, column.get(device, one.value))
                if not number and (pod := _pod_of(one)) is not None:
                    pods[device] = pod
        columns.append(column)
    devices = tuple(sorted(set().union(*columns[:4])))
    found = np.array(
        [[column.get(one, math.nan) for one in devices] for column in columns], dtype=np.float32
    ).reshape(len(columns), len(devices))
    return Sample(float(at), devices, found[:4], found[4], pods)


def _device_of(one: Series, nodes: frozenset[str]) -> Device | None:
    labels = one.labels
    index = whole_number(labels.get("gpu"), most=999)
    if index is None:
        return None
    for key in _NODES:
        name = labels.get(key, "")
        if name in nodes:
            return name, index
        host = name.rpartition(":")[0]
        if host in nodes:
            return host, index
    return None


def _pod_of(one: Series) -> PodName | None:
    """Return the pod; where honorLabels is off, `pod` is the exporter's own."""
    labels = one.labels
    for prefix in ("exported_", ""):
        namespace, name = labels.get(f"{prefix}namespace", ""), labels.get(f"{prefix}pod", "")
        if namespace and name:
            return namespace, name
    return None
