"""What pages show of GPUs in use: of a gang, a pod, a node and a device, now and lately.

Which pod has a device is measured where the exporter says so; else it is what the dashboard assumes
of its nodes. A gang is idle when its GPUs did nothing for ten minutes; a pod holds its gang up when
its steps take longer than those of the others (`kinds.pace`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unisono.kinds.pace import ranked
from unisono.kube.form import Json
from unisono.monitor.cache import Key
from unisono.monitor.dcgm.assignments import Device
from unisono.monitor.gpu_history import GpuHistory
from unisono.monitor.records import PodRecord, WorkloadRecord
from unisono.web.dashboard import Dashboard

_POINTS = 60  # of half an hour
_FEW_POINTS = 24  # in rows
_IDLE_PERCENT = 5.0  # as the alert GPUAllocatedIdle has it
_IDLE_SECONDS = 600.0


class Gpus:
    """Reads a history for pages."""

    def __init__(
        self, dashboard: Dashboard, history: GpuHistory, *, now: Callable[[], float]
    ) -> None:
        """Read this history."""
        self._dashboard = dashboard
        self._history = history
        self._now = now
        self._seen = -1
        self._measured: dict[Key, tuple[Device, ...]] = {}

    @property
    def version(self) -> int:
        """Grows with every point; 0 while nothing was measured."""
        return self._history.version if not self._history.is_empty else 0

    @property
    def is_known(self) -> bool:
        """Whether there are values of now."""
        return self._history.is_fresh(self._now())

    # ---- devices ---------------------------------------------------------------------------------

    def of_pod(self, pod: PodRecord) -> tuple[Device, ...]:
        """Return the devices of a pod."""
        history = self._history
        if self._seen != history.version:
            self._seen = history.version
            found: dict[Key, list[Device]] = {}
            for device, name in history.pods.items():
                found.setdefault(name, []).append(device)
            self._measured = {name: tuple(sorted(some)) for name, some in found.items()}
        measured = self._measured.get(pod.key)
        return measured if measured is not None else self._dashboard.devices_of(pod)

    def _of_gang(self, one: WorkloadRecord) -> list[Device]:
        pods = self._dashboard.pods_of.get(one.key, {}).values()
        return [device for pod in pods if not pod.is_over for device in self.of_pod(pod)]

    # ---- what they do ----------------------------------------------------------------------------

    def gang(self, one: WorkloadRecord) -> Json | None:
        """Return what the GPUs of a gang do, with their half hour."""
        devices = self._of_gang(one)
        found = self._together(devices)
        if found is None:
            return None
        return {
            **found,
            "idle": self._is_idle(one, devices),
            "series": self._history.series(devices, _POINTS),
        }

    def row(self, one: WorkloadRecord) -> Json:
        """Return the little that lists show of a gang: how busy it is, and whether it is idle."""
        if one.is_waiting or one.finished or not self.is_known:
            return {}
        devices = self._of_gang(one)
        found = self._history.together(devices)
        if found is None or found.busy is None:
            return {}
        return {"busy": round(found.busy), "idle": self._is_idle(one, devices)}

    def pod(self, pod: PodRecord) -> Json | None:
        """Return what the GPUs of a pod do."""
        return self._with_series(self.of_pod(pod))

    def node(self, name: str, gpus: int) -> Json | None:
        """Return what the GPUs of a node do."""
        return self._with_series([(name, index) for index in range(gpus)])

    def node_now(self, name: str, gpus: int) -> Json:
        """Return the little that lists show of a node."""
        if not self.is_known:
            return {}
        found = self._history.together((name, index) for index in range(gpus))
        return {} if found is None else {"busy": found.busy, "hottest": found.hottest}

    def device(self, device: Device) -> Json | None:
        """Return what one device does."""
        return self._with_series([device])

    def map_values(self, name: str, gpus: int, by: str) -> list[int | None]:
        """Return a whole number for each GPU of a node: percent busy, or degrees."""
        found: list[int | None] = []
        for index in range(gpus):
            one = self._history.reading((name, index)) if self.is_known else None
            value = None if one is None else one.busy if by == "busy" else one.celsius
            found.append(None if value is None else round(value))
        return found

    def _with_series(self, devices: Iterable[Device]) -> Json | None:
        these = list(devices)
        found = self._together(these)
        if found is None:
            return None
        series = self._history.series(these, _FEW_POINTS)
        return {**found, "series": {name: series[name] for name in ("busy", "celsius")}}

    def _together(self, devices: Iterable[Device]) -> Json | None:
        found = self._history.together(devices) if self.is_known else None
        if found is None:
            return None
        return {
            "devices": found.devices,
            "busy": found.busy,
            "least": found.least,
            "used": found.used_mib,
            "memory": found.memory_mib,
            "hottest": found.hottest,
            "watts": found.watts,
        }

    def _is_idle(self, one: WorkloadRecord, devices: Iterable[Device]) -> bool:
        if not one.ready or self._now() - one.ready < _IDLE_SECONDS:
            return False
        busy = self._history.busiest(devices, _IDLE_SECONDS)
        return busy is not None and busy < _IDLE_PERCENT


def laggards(pods: Iterable[PodRecord]) -> dict[str, float]:
    """Return the pods that hold their gang up, and how much longer their steps take.

    A step of 2 s where the others take 1 s is twice as long.
    """
    times = {one.name: one.step_seconds for one in pods if one.step_seconds and not one.is_over}
    return {name: round(rank.factor, 2) for name, rank in ranked(times).items() if rank.is_slow}
