"""What holds now, under the names and with the labels that the alert rules have.

These are the rules that tell of a moment: what they need is in the books and in the columns of the
simulated devices. Rules about counters over a time, and about who scrapes whom, need a Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.books import Books
from unisono.monitor.dcgm.exporter import Frame
from unisono.monitor.dcgm.faults import CRITICAL_XIDS
from unisono.monitor.metrics.gangs import named
from unisono.monitor.metrics.scheduler import SchedulerHealth
from unisono.monitor.rules.alerts import BEHIND_SECONDS, UNEXPLAINED_SECONDS

Labels = Mapping[str, str]
Holds = dict[str, list[Labels]]  # by the name of the alert

_TOO_HOT = 85.0
_TOO_FULL = 0.95
_UNDERUTILIZED = 0.2
_IDLE = 0.05
_IDLE_NODE_SECONDS = 1800.0
_PAID_USD_HOUR = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """A cluster at one time."""

    books: Books
    frame: Frame
    idle: Mapping[str, float]  # how long nodes have had nothing to do
    now: float
    health: SchedulerHealth


def devices_that(frame: Frame) -> dict[str, NDArray[np.bool_]]:
    """Return which devices each alert about a device is true of.

    Columns, because an idle cluster of a thousand nodes has eight thousand devices that are not
    used: nobody wants to write all of their labels down every quarter of a minute.
    """
    devices = frame.devices
    return {
        "GPUHighTemperature": devices.temperature > _TOO_HOT,
        "GPUMemoryExhausted": devices.used_mib > _TOO_FULL * devices.memory_mib,
        "GPUUnderutilized": devices.busy < _UNDERUTILIZED,
        "GPUAllocatedIdle": devices.held & (devices.busy < _IDLE),
        "GPUThermalThrottling": devices.throttles,
    }


def what_holds(seen: Seen) -> Holds:
    """Return what else somebody might have to look at, of faults and nodes."""
    return {
        **_of_faults(seen),
        "GPULost": list(_lost(seen)),
        "PaidNodeIdle": list(_paid_idle(seen)),
        **_of_scheduler(seen.health),
    }


def _of_scheduler(health: SchedulerHealth) -> Holds:
    nothing: Labels = {}
    return {
        "ObjectsQuarantined": [
            {"kind": kind, "stage": stage} for kind, stage in sorted(health.quarantined)
        ],
        "SchedulerNotPlanning": [nothing] if health.behind_s > BEHIND_SECONDS else [],
        "SchedulerNotWriting": [nothing] if health.unwritten_s > BEHIND_SECONDS else [],
        "WorkloadUnexplained": [nothing] if health.unexplained_s > UNEXPLAINED_SECONDS else [],
    }


def _of_faults(seen: Seen) -> Holds:
    found: Holds = {
        "GPUXidCritical": [],
        "GPUXidOther": [],
        "GPUEccUncorrectable": [],
        "GPURowRemapFailure": [],
    }
    if not seen.frame.faults:
        return found
    for at, place in enumerate(seen.frame.devices.places):
        fault = seen.frame.faults.get(place.device)
        if fault is None:
            continue
        about = device_labels(seen.books, seen.frame, at)
        if fault.xid:
            name = "GPUXidCritical" if fault.xid in CRITICAL_XIDS else "GPUXidOther"
            found[name].append({**about, "xid": str(fault.xid)})
        if fault.ecc:
            found["GPUEccUncorrectable"].append(about)
        if fault.row_remap_failed:
            found["GPURowRemapFailure"].append(about)
    return found


def device_labels(books: Books, frame: Frame, at: int) -> Labels:
    """Return the labels of a device, of the pod that has it, and of the pod's gang."""
    node, index = frame.devices.places[at].device
    labels = {"kubernetes_node": node, "gpu": str(index), "UUID": frame.devices.uuids[at]}
    holder = frame.devices.holders[at]
    if holder is None:
        return labels
    labels |= {"namespace": holder.pod.namespace, "pod": holder.pod.name}
    workload = books.workload_of(holder.pod)
    if workload is not None:
        labels |= {**named(workload, books), "user": workload.user}
    return labels


def _lost(seen: Seen) -> Iterator[Labels]:
    for node in seen.books.nodes.values():
        if node.allocatable < node.gpus:
            yield {"node": node.name}


def _paid_idle(seen: Seen) -> Iterator[Labels]:
    for name, seconds in seen.idle.items():
        node = seen.books.nodes.get(name)
        if seconds > _IDLE_NODE_SECONDS and node is not None and node.price > _PAID_USD_HOUR:
            yield {"node": name, "nodepool": node.pool, "instance_type": node.instance_type}
