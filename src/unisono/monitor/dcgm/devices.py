"""How simulated devices behave: columns over all devices, which move with time.

    busy, tensor   from the profile of the pod, with three percent of noise
    power          idle at 12 % of the limit; a quarter of the rest for being busy, three quarters
                   for tensor work
    temperature    relaxes towards 30 °C + 48 °C × power / limit within minutes (τ = 60 s)
    memory         ramps within a minute to what the profile uses
    clock          the model's, three fifths of it at 87 °C and above

Noise follows from a seed, the device and the tick, so the same run gives the same values. Device
assignments are laid into columns when they change; while nothing happens, time passes without a
look at any single one of thousands of devices.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.dcgm.assignments import Device, DeviceHolder
from unisono.monitor.gpu_faults import Fault

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

TICK_SECONDS = 15
_TAU_SECONDS = 60.0
_RAMP_SECONDS = 60.0
_THROTTLES_AT = 87.0
_THROTTLED = 0.6
_AMBIENT = 30.0
_NOISE = 0.03
_NAMESPACE = uuid.UUID("6f1f1c5e-6a53-5a06-9d6b-2f6a3f2a6b10")


class Profile(NamedTuple):
    """What a pod makes of its devices."""

    busy: float
    tensor: float
    memory: float = 0.8


PROFILES = {
    "training": Profile(0.95, 0.45),
    "finetune": Profile(0.8, 0.3),
    "dataloader-bound": Profile(0.35, 0.1),
    "comm-bound": Profile(0.98, 0.08),
    "inference": Profile(0.5, 0.2),
    "idle": Profile(0.02, 0.0, 0.1),
}


class Place(NamedTuple):
    """A device: where it is, and of which model."""

    device: Device
    model: Model


def uuid_of(device: Device) -> str:
    """Return a device's name for life; it is the same on every run."""
    node, index = device
    return f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}"


class Devices:
    """Columns over devices; `hold` assigns them, `move` lets time pass."""

    def __init__(self, places: Sequence[Place], *, seed: int, now: float) -> None:
        """Begin cool and empty."""
        self.places = tuple(places)
        self.now = now
        count = len(self.places)
        self.uuids = [uuid_of(one.device) for one in self.places]
        names = [uuid.UUID(one[4:]).int & (2**64 - 1) for one in self.uuids]
        self._ids = np.array(names, dtype=np.uint64) ^ np.uint64(_mixed(seed))
        self.tdp = _column(one.model.tdp_watts for one in self.places)
        self.sm_mhz = _column(one.model.sm_mhz for one in self.places)
        self.memory_mhz = _column(one.model.memory_mhz for one in self.places)
        self.memory_mib = _column(one.model.memory_mib for one in self.places)
        self.busy = np.zeros(count)
        self.tensor = np.zeros(count)
        self.power = 0.12 * self.tdp
        self.temperature = _AMBIENT + 48.0 * self.power / self.tdp
        self.used_mib = np.zeros(count)
        self.clock = self.sm_mhz * 0.2
        self.energy_mj = np.zeros(count)
        self.throttled_ns = np.zeros(count)
        self.throttles = np.zeros(count, dtype=bool)
        self.hold({})

    def hold(self, holders: Mapping[Device, DeviceHolder]) -> None:
        """Take the assignments that hold from now on."""
        self.holders = tuple(holders.get(one.device) for one in self.places)
        self.held = np.array([one is not None for one in self.holders], dtype=bool)
        pods: dict[str, int] = {}
        rows, profiles, started = [], [], []
        for at, holder in enumerate(self.holders):
            if holder is not None and holder.pod.started:
                rows.append((at, pods.setdefault(holder.pod.uid, len(pods))))
                profiles.append(PROFILES.get(holder.pod.profile, PROFILES["training"]))
                started.append(holder.pod.started)
        self.pods = tuple(pods)  # the uids of those that run
        at_work = np.array(rows, dtype=np.int64).reshape(len(rows), 2)
        self.at_work: Rows = at_work[:, 0]  # the rows of their devices,
        self.pod_of: Rows = at_work[:, 1]  # and the pod of each, by its index in `pods`
        self._wants = np.zeros((3, len(self.places)))
        self._wants[:, self.at_work] = np.array(profiles, dtype=np.float64).reshape(-1, 3).T
        self._started = np.full(len(self.places), np.inf)
        self._started[self.at_work] = started

    def carry_over(self, old: Devices) -> None:
        """Go on where devices that were there before stood."""
        at = {one.device: index for index, one in enumerate(old.places)}
        pairs = [(new, at[one.device]) for new, one in enumerate(self.places) if one.device in at]
        if not pairs:
            return
        here, there = np.array(pairs).T
        for name in ("power", "temperature", "used_mib", "energy_mj", "throttled_ns"):
            getattr(self, name)[here] = getattr(old, name)[there]

    def move(self, now: float, faults: Mapping[Device, Fault]) -> None:
        """Let time pass with these faults."""
        elapsed = max(0.0, now - self.now)
        self.now = max(now, self.now)
        busy, tensor, memory = self._wants
        age = np.maximum(0.0, self.now - self._started)
        hot, slow, full = self._wrong(faults)
        noise = 1.0 + _NOISE * (2.0 * self._random(int(self.now) // TICK_SECONDS) - 1.0)
        self.busy = np.clip(busy * noise, 0.0, 1.0)
        self.tensor = np.clip(tensor * noise, 0.0, 1.0)
        idle = 0.12 * self.tdp
        work = 0.25 * self.busy + 0.75 * self.tensor / 0.6
        self.power = np.minimum(self.tdp, idle + (self.tdp - idle) * work)
        target = _AMBIENT + 48.0 * self.power / self.tdp + hot
        self.temperature = target + (self.temperature - target) * np.exp(-elapsed / _TAU_SECONDS)
        self.throttles = (self.temperature >= _THROTTLES_AT) | (slow < 1.0)
        factor = np.where(self.temperature >= _THROTTLES_AT, _THROTTLED, 1.0) * slow
        self.clock = np.where(self.busy > 0.01, self.sm_mhz, 0.2 * self.sm_mhz) * factor
        peak = np.where(full > 0, full, memory) * self.memory_mib
        ramp = np.where(full > 0, 1.0, np.minimum(1.0, age / _RAMP_SECONDS))
        self.used_mib = np.floor(peak * ramp)
        # New columns instead of changed ones: a frame that is being written keeps the old ones.
        self.energy_mj = self.energy_mj + self.power * elapsed * 1000.0
        self.throttled_ns = self.throttled_ns + np.where(self.throttles, elapsed * 1e9, 0.0)

    def _wrong(self, faults: Mapping[Device, Fault]) -> tuple[Floats, Floats, Floats]:
        """Return how much too hot, how slow and how full devices are by injection."""
        count = len(self.places)
        hot, slow, full = np.zeros(count), np.ones(count), np.zeros(count)
        if faults:
            for at, place in enumerate(self.places):
                fault = faults.get(place.device)
                if fault is not None:
                    hot[at], slow[at], full[at] = fault.hot, fault.slow, fault.memory
        return hot, slow, full

    def _random(self, tick: int) -> Floats:
        """Return a number from 0 to 1 for every device and tick (splitmix64)."""
        with np.errstate(over="ignore"):
            mixed = self._ids + np.uint64(_mixed(tick))
            for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
                mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
            mixed ^= mixed >> np.uint64(31)
        return mixed.astype(np.float64) / 2.0**64


def _mixed(number: int) -> int:
    return number * 0x9E3779B97F4A7C15 & (2**64 - 1)


def _column(values: Iterable[float]) -> Floats:
    return np.array(list(values), dtype=np.float64)


class Model(NamedTuple):
    """One model."""

    tdp_watts: int
    sm_mhz: int  # at most
    memory_mhz: int
    memory_mib: int


_MODELS = {
    "T4": Model(70, 1590, 5001, 15360),
    "V100": Model(300, 1530, 877, 16384),
    "A10G": Model(300, 1710, 6251, 23028),
    "A10": Model(150, 1695, 6251, 23028),
    "A100 SXM4 40GB": Model(400, 1410, 1215, 40960),
    "A100": Model(400, 1410, 1593, 81920),
    "L40S": Model(350, 2520, 9001, 46068),
    "L4": Model(72, 2040, 6251, 23034),
    "H100": Model(700, 1980, 2619, 81559),
    "H200": Model(700, 1980, 3201, 143771),
    "B200": Model(1000, 1965, 3996, 183359),
}
# Longer names first: an A10G is no A10, an L40S no L4.
_BY_LENGTH = sorted(_MODELS, key=lambda one: (-len(one), one))
_UNKNOWN = Model(300, 1500, 5000, 16384)


def model_of(product: str) -> Model:
    """Return what is known of a product.

    >>> model_of("NVIDIA L40S").tdp_watts, model_of("NVIDIA H100 80GB HBM3").sm_mhz
    (350, 1980)
    """
    return next((_MODELS[name] for name in _BY_LENGTH if name in product), _UNKNOWN)
