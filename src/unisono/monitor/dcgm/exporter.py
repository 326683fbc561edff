"""The page of the simulated exporter: one for all nodes, in dcgm-exporter's classic text.

It is made anew for every scrape, from what the cache say and from the faults that were injected.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from unisono.monitor.cache import ClusterCache
from unisono.monitor.dcgm.assignments import Device, DeviceAssignments, DeviceHolder
from unisono.monitor.dcgm.devices import Devices, Floats, Model, Place, model_of
from unisono.monitor.exposition import escaped
from unisono.monitor.gpu_faults import Fault, Faults, fault_at

# ---- fields --------------------------------------------------------------------------------------
#
# Those that dcgm-exporter writes, and their values from the columns of the devices. `is_default`
# marks those of its stock list of counters; the others are what a site may switch on. Counters have
# no `_total` in their names there, so this is classic text and never OpenMetrics.

Extent = Literal["lean", "default", "full"]

_RESERVED_MIB = 559  # what the driver keeps for itself


# What alert rules and dashboards look at: all that a page of thousands of devices can afford.
LEAN = frozenset(
    {
        *(f"DCGM_FI_DEV_{one}" for one in ("GPU_TEMP", "GPU_UTIL", "POWER_USAGE", "SM_CLOCK")),
        *(f"DCGM_FI_DEV_{one}" for one in ("FB_USED", "FB_TOTAL", "XID_ERRORS")),
        *(f"DCGM_FI_DEV_{one}" for one in ("ECC_DBE_VOL_TOTAL", "ROW_REMAP_FAILURE")),
        *(f"DCGM_FI_DEV_{one}" for one in ("UNCORRECTABLE_REMAPPED_ROWS", "THERMAL_VIOLATION")),
        *(f"DCGM_FI_PROF_{one}" for one in ("SM_ACTIVE", "PIPE_TENSOR_ACTIVE")),
    }
)


def _is_shown(name: str, extent: Extent, *, is_default: bool) -> bool:
    """Say whether a field is on a page of some extent."""
    return name in LEAN if extent == "lean" else is_default or extent == "full"


class _Field(NamedTuple):
    """One field."""

    name: str
    type: Literal["gauge", "counter"]
    help: str
    values: Callable[[Devices], Floats]
    is_default: bool = True
    digits: int = 0


def _nothing(devices: Devices) -> Floats:
    return np.zeros(len(devices.places))


def _memory_busy(devices: Devices) -> Floats:
    return 0.6 * devices.busy


def _free(devices: Devices) -> Floats:
    return np.maximum(0.0, devices.memory_mib - devices.used_mib - _RESERVED_MIB)


_DEV, _PROF = "DCGM_FI_DEV_", "DCGM_FI_PROF_"

FIELDS: tuple[_Field, ...] = (
    _Field(f"{_DEV}SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda d: d.clock),
    _Field(f"{_DEV}MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda d: d.memory_mhz),
    _Field(
        f"{_DEV}MEMORY_TEMP",
        "gauge",
        "Memory temperature (in C).",
        lambda d: d.temperature + 4.0 * d.busy,
    ),
    _Field(f"{_DEV}GPU_TEMP", "gauge", "GPU temperature (in C).", lambda d: d.temperature),
    _Field(f"{_DEV}POWER_USAGE", "gauge", "Power draw (in W).", lambda d: d.power, digits=3),
    _Field(
        f"{_DEV}TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        lambda d: d.energy_mj,
    ),
    _Field(f"{_DEV}PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", _nothing),
    _Field(f"{_DEV}GPU_UTIL", "gauge", "GPU utilization (in %).", lambda d: 100.0 * d.busy),
    _Field(
        f"{_DEV}MEM_COPY_UTIL",
        "gauge",
        "Memory utilization (in %).",
        lambda d: 100.0 * _memory_busy(d),
    ),
    _Field(f"{_DEV}ENC_UTIL", "gauge", "Encoder utilization (in %).", _nothing),
    _Field(f"{_DEV}DEC_UTIL", "gauge", "Decoder utilization (in %).", _nothing),
    _Field(f"{_DEV}FB_FREE", "gauge", "Framebuffer memory free (in MiB).", _free),
    _Field(f"{_DEV}FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda d: d.used_mib),
    _Field(
        f"{_DEV}FB_RESERVED",
        "gauge",
        "Framebuffer memory reserved (in MiB).",
        lambda d: _nothing(d) + _RESERVED_MIB,
    ),
    _Field(f"{_DEV}NVLINK_BANDWIDTH_TOTAL", "counter", "Total number of NVLink bytes.", _nothing),
    _Field(
        f"{_DEV}CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for correctable errors.",
        _nothing,
    ),
    _Field(f"{_DEV}VGPU_LICENSE_STATUS", "gauge", "vGPU license status.", _nothing),
    _Field(
        f"{_PROF}GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        lambda d: d.busy,
        digits=6,
    ),
    _Field(
        f"{_PROF}PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor pipe is active.",
        lambda d: d.tensor,
        digits=6,
    ),
    _Field(
        f"{_PROF}DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active.",
        _memory_busy,
        digits=6,
    ),
    _Field(
        f"{_PROF}PCIE_TX_BYTES",
        "gauge",
        "Bytes sent over PCIe a second.",
        lambda d: 2e9 * d.busy,
    ),
    _Field(
        f"{_PROF}PCIE_RX_BYTES",
        "gauge",
        "Bytes received over PCIe a second.",
        lambda d: 3e9 * d.busy,
    ),
    _Field(
        f"{_DEV}FB_TOTAL",
        "gauge",
        "Total framebuffer memory (in MiB).",
        lambda d: d.memory_mib,
        is_default=False,
    ),
    _Field(
        f"{_PROF}SM_ACTIVE",
        "gauge",
        "Ratio of cycles an SM has at least one warp assigned.",
        lambda d: 0.95 * d.busy,
        is_default=False,
        digits=6,
    ),
    _Field(
        f"{_DEV}ECC_SBE_VOL_TOTAL",
        "counter",
        "Total number of single-bit volatile ECC errors.",
        _nothing,
        is_default=False,
    ),
    _Field(
        f"{_DEV}THERMAL_VIOLATION",
        "counter",
        "Throttling duration due to thermal constraints (in ns).",
        lambda d: d.throttled_ns,
        is_default=False,
    ),
    _Field(
        f"{_DEV}POWER_VIOLATION",
        "counter",
        "Throttling duration due to power constraints (in ns).",
        _nothing,
        is_default=False,
    ),
)


_DRIVER = "570.172.08"
_WINDOW_MS = 300_000
# With more devices the page is a lean one: a real exporter has one for each node, ours has all.
_MOST_IN_FULL = 2_000


class Exporter:
    """Lets the devices live; keeps how they stood at the last frame."""

    def __init__(
        self,
        cache: ClusterCache,
        faults: Callable[[], Mapping[str, Faults]],
        *,
        clock: Callable[[], float],
        extent: Extent | None = None,
        seed: int = 1,
    ) -> None:
        """Show the nodes of these cache; `faults` are those of each node.

        Without an extent everything is told, until there are so many devices that it would be too
        much; from then on the page stays lean, because series that come and go are of no use.
        """
        self._cache = cache
        self._faults = faults
        self._clock = clock
        self._extent: Extent = extent or "full"
        self._may_be_lean = extent is None
        self._seed = seed
        self._holders = DeviceAssignments()
        self._seen: tuple[int, frozenset[Device]] = (-1, frozenset())
        self._seen_pods = -1
        self._models: dict[str, str] = {}
        self._devices = Devices((), seed=seed, now=clock())

    def frame(self) -> Frame:
        """Return how things are now."""
        self._cache.refresh()
        faults = self._by_device(self._faults())
        self._renew(faults)
        if self._seen_pods != self._cache.pods_version:
            self._seen_pods = self._cache.pods_version
            pods = self._cache.pods_on_nodes()
            self._devices.hold(self._holders.give_out(pods, self._cache.nodes))
        now = self._clock()
        self._devices.move(now, faults)
        return Frame(copy.copy(self._devices), self._models, faults, self._extent, now)

    def _by_device(self, faults: Mapping[str, Faults]) -> dict[Device, Fault]:
        found: dict[Device, Fault] = {}
        for name, of_node in faults.items():
            node = self._cache.nodes.get(name)
            for index in range(node.gpus if node is not None else 0):
                fault = fault_at(of_node, index)
                if fault is not None:
                    found[name, index] = fault
        return found

    def _renew(self, faults: Mapping[Device, Fault]) -> None:
        """Follow nodes that came and went; a device that fell off the bus has no series."""
        gone = frozenset(device for device, fault in faults.items() if _is_gone(fault))
        seen = self._cache.nodes_version, gone
        if seen == self._seen:
            return
        self._seen = seen
        places = [
            Place(device, _model(node.model, node.memory_mib))
            for node in (self._cache.nodes[name] for name in sorted(self._cache.nodes))
            if "amd.com" not in node.resource
            for index in range(node.gpus)
            if (device := (node.name, index)) not in gone
        ]
        renewed = Devices(places, seed=self._seed, now=self._devices.now)
        renewed.carry_over(self._devices)
        self._devices = renewed
        self._seen_pods = -1  # they have to be given out anew
        self._models = {name: one.model for name, one in self._cache.nodes.items()}
        if self._may_be_lean and len(places) > _MOST_IN_FULL:
            self._extent = "lean"


@dataclass(frozen=True, slots=True)
class Frame:
    """All devices at one time; writing it down touches nothing else, so a thread may do it."""

    devices: Devices
    models: Mapping[str, str]  # of each node
    faults: Mapping[Device, Fault]
    extent: Extent
    now: float

    def text(self) -> str:
        """Return the page."""
        rows = zip(self.devices.places, self.devices.uuids, self.devices.holders, strict=True)
        labels = [self._labels(one.device, uuid, holder) for one, uuid, holder in rows]
        shown = [
            one for one in FIELDS if _is_shown(one.name, self.extent, is_default=one.is_default)
        ]
        parts = [_field(one, self.devices, labels) for one in shown]
        parts.extend(self._told(labels))
        return "".join(parts)

    def _labels(self, device: Device, uuid: str, holder: DeviceHolder | None) -> str:
        """Write the labels of a device and of the pod that has it."""
        if self.extent == "lean":
            written = f'gpu="{device[1]}",UUID="{uuid}",kubernetes_node="{device[0]}"'
        else:
            written = _labels(device, uuid, self.models[device[0]])
        if holder is None:
            return written
        pod = holder.pod
        return (
            f'{written},container="{holder.container}",namespace="{pod.namespace}",pod="{pod.name}"'
        )

    def _told(self, labels: list[str]) -> Iterator[str]:
        """Yield what only injected faults can change."""
        found = [self.faults.get(one.device) or _WELL for one in self.devices.places]
        for name, kind, text, is_default, value in _INJECTED:
            if _is_shown(name, self.extent, is_default=is_default):
                yield _head(name, kind, text)
                yield from _lines(name, labels, (str(value(one)) for one in found))
        if self.extent != "default":
            yield from self._counts(found, labels)

    def _counts(self, found: list[Fault], labels: list[str]) -> Iterator[str]:
        """Yield the exporter's own counts over the last minutes: only of what happened."""
        window = f'window_size_in_ms="{_WINDOW_MS}"'
        name = _XIDS
        yield _head(name, "gauge", "Count of XID errors within the window.")
        for label, fault in zip(labels, found, strict=True):
            if fault.xid and self.now - fault.at < _WINDOW_MS / 1000:
                yield f'{name}{{{label},{window},xid="{fault.xid}"}} 1\n'
        name = _CLOCK_EVENTS
        yield _head(name, "gauge", "Count of clock events within the window.")
        for label, throttles in zip(labels, self.devices.throttles.tolist(), strict=True):
            if throttles:
                yield f'{name}{{{label},clock_event="hw_thermal",{window}}} 1\n'


_WELL = Fault()
_INJECTED: tuple[tuple[str, str, str, bool, Callable[[Fault], int]], ...] = (
    (
        f"{_DEV}XID_ERRORS",
        "gauge",
        "Value of the last XID error encountered.",
        True,
        lambda fault: fault.xid,
    ),
    (
        f"{_DEV}UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors.",
        True,
        lambda fault: fault.ecc,
    ),
    (
        f"{_DEV}ROW_REMAP_FAILURE",
        "gauge",
        "Whether remapping of rows has failed.",
        True,
        lambda fault: int(fault.row_remap_failed),
    ),
    (
        f"{_DEV}ECC_DBE_VOL_TOTAL",
        "counter",
        "Total number of double-bit volatile ECC errors.",
        False,
        lambda fault: fault.ecc,
    ),
)


_XIDS = "DCGM_EXP_XID_ERRORS_COUNT"
_CLOCK_EVENTS = "DCGM_EXP_CLOCK_EVENTS_COUNT"


class Counter(NamedTuple):
    """A line of the exporter's list of what to export; commas end a column there."""

    name: str
    type: str
    help: str
    is_default: bool


COUNTERS: tuple[Counter, ...] = (
    *(Counter(one.name, one.type, one.help, one.is_default) for one in FIELDS),
    *(Counter(name, kind, text, is_default) for name, kind, text, is_default, _ in _INJECTED),
    Counter(_XIDS, "gauge", "Count of XID errors within the window.", is_default=False),
    Counter(_CLOCK_EVENTS, "gauge", "Count of clock events within the window.", is_default=False),
)


def _is_gone(fault: Fault) -> bool:
    return fault.fallen_off or fault.silent


@lru_cache(maxsize=256)  # more models than clusters have; thousands of devices share each
def _model(product: str, memory_mib: int) -> Model:
    known = model_of(product)
    return known._replace(memory_mib=memory_mib) if memory_mib else known


def _field(field: _Field, devices: Devices, labels: list[str]) -> str:
    values = field.values(devices)
    return _head(field.name, field.type, field.help) + "".join(
        _lines(field.name, labels, _texts(values, field.digits))
    )


def _texts(values: Floats, digits: int) -> Iterable[str]:
    if digits:
        return [f"{one:.{digits}f}" for one in values.tolist()]
    return map(str, np.rint(values).astype(np.int64).tolist())


def _lines(name: str, labels: list[str], values: Iterable[str]) -> Iterator[str]:
    return (f"{name}{{{label}}} {value}\n" for label, value in zip(labels, values, strict=True))


def _head(name: str, kind: str, text: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _labels(device: Device, uuid: str, model: str) -> str:
    """Write the labels of a device in the exporter's order.

    The name of the node is there three times: newer exporters write `hostname` for `Hostname`, and
    `kubernetes_node` is what scrape configurations usually make of it.
    """
    node, index = device
    return (
        f'gpu="{index}",UUID="{uuid}",pci_bus_id="00000000:{16 + index:02X}:1C.0",'
        f'device="nvidia{index}",modelName="{escaped(model) or "NVIDIA GPU"}",Hostname="{node}",'
        f'hostname="{node}",kubernetes_node="{node}",DCGM_FI_DRIVER_VERSION="{_DRIVER}"'
    )
