"""The fields that dcgm-exporter writes, and their values from the columns of the devices.

`is_default` marks those of its stock list of counters; the others are what a site may switch on.
Counters have no `_total` in their names there, so this is classic text and never OpenMetrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from unisono.monitor.dcgm.devices import Devices, Floats

Extent = Literal["lean", "default", "full"]

RESERVED_MIB = 559  # what the driver keeps for itself


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


def is_shown(name: str, extent: Extent, *, is_default: bool) -> bool:
    """Say whether a field is on a page of some extent."""
    return name in LEAN if extent == "lean" else is_default or extent == "full"


class Field(NamedTuple):
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
    return np.maximum(0.0, devices.memory_mib - devices.used_mib - RESERVED_MIB)


DEV, PROF = "DCGM_FI_DEV_", "DCGM_FI_PROF_"

FIELDS: tuple[Field, ...] = (
    Field(f"{DEV}SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda d: d.clock),
    Field(f"{DEV}MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda d: d.memory_mhz),
    Field(
        f"{DEV}MEMORY_TEMP",
        "gauge",
        "Memory temperature (in C).",
        lambda d: d.temperature + 4.0 * d.busy,
    ),
    Field(f"{DEV}GPU_TEMP", "gauge", "GPU temperature (in C).", lambda d: d.temperature),
    Field(f"{DEV}POWER_USAGE", "gauge", "Power draw (in W).", lambda d: d.power, digits=3),
    Field(
        f"{DEV}TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        lambda d: d.energy_mj,
    ),
    Field(f"{DEV}PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", _nothing),
    Field(f"{DEV}GPU_UTIL", "gauge", "GPU utilization (in %).", lambda d: 100.0 * d.busy),
    Field(
        f"{DEV}MEM_COPY_UTIL",
        "gauge",
        "Memory utilization (in %).",
        lambda d: 100.0 * _memory_busy(d),
    ),
    Field(f"{DEV}ENC_UTIL", "gauge", "Encoder utilization (in %).", _nothing),
    Field(f"{DEV}DEC_UTIL", "gauge", "Decoder utilization (in %).", _nothing),
    Field(f"{DEV}FB_FREE", "gauge", "Framebuffer memory free (in MiB).", _free),
    Field(f"{DEV}FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda d: d.used_mib),
    Field(
        f"{DEV}FB_RESERVED",
        "gauge",
        "Framebuffer memory reserved (in MiB).",
        lambda d: _nothing(d) + RESERVED_MIB,
    ),
    Field(f"{DEV}NVLINK_BANDWIDTH_TOTAL", "counter", "Total number of NVLink bytes.", _nothing),
    Field(
        f"{DEV}CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for correctable errors.",
        _nothing,
    ),
    Field(f"{DEV}VGPU_LICENSE_STATUS", "gauge", "vGPU license status.", _nothing),
    Field(
        f"{PROF}GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        lambda d: d.busy,
        digits=6,
    ),
    Field(
        f"{PROF}PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor pipe is active.",
        lambda d: d.tensor,
        digits=6,
    ),
    Field(
        f"{PROF}DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active.",
        _memory_busy,
        digits=6,
    ),
    Field(
        f"{PROF}PCIE_TX_BYTES",
        "gauge",
        "Bytes sent over PCIe a second.",
        lambda d: 2e9 * d.busy,
    ),
    Field(
        f"{PROF}PCIE_RX_BYTES",
        "gauge",
        "Bytes received over PCIe a second.",
        lambda d: 3e9 * d.busy,
    ),
    Field(
        f"{DEV}FB_TOTAL",
        "gauge",
        "Total framebuffer memory (in MiB).",
        lambda d: d.memory_mib,
        is_default=False,
    ),
    Field(
        f"{PROF}SM_ACTIVE",
        "gauge",
        "Ratio of cycles an SM has at least one warp assigned.",
        lambda d: 0.95 * d.busy,
        is_default=False,
        digits=6,
    ),
    Field(
        f"{DEV}ECC_SBE_VOL_TOTAL",
        "counter",
        "Total number of single-bit volatile ECC errors.",
        _nothing,
        is_default=False,
    ),
    Field(
        f"{DEV}THERMAL_VIOLATION",
        "counter",
        "Throttling duration due to thermal constraints (in ns).",
        lambda d: d.throttled_ns,
        is_default=False,
    ),
    Field(
        f"{DEV}POWER_VIOLATION",
        "counter",
        "Throttling duration due to power constraints (in ns).",
        _nothing,
        is_default=False,
    ),
)
