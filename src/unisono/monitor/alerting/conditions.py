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
from unisono.monitor.metrics.gangs import named, pods_by_state
from unisono.monitor.metrics.queues import DEFAULT_SLO_SECONDS, Tally

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


def what_holds(seen: Seen) -> Holds:
    """Return everything that somebody might have to look at."""
    return {
        **_of_devices(seen),
        **_of_faults(seen),
        "GPULost": list(_lost(seen)),
        "GangWaitingTooLong": list(_waiting(seen)),
        "GangPartiallyRunning": list(_partly(seen)),
        "QuotaStarvation": list(_starved(seen)),
        "PaidNodeIdle": list(_paid_idle(seen)),
    }


def _of_devices(seen: Seen) -> Holds:
    devices = seen.frame.devices
    held = np.array([one.device in seen.frame.holders for one in devices.places], dtype=bool)
    masks: dict[str, NDArray[np.bool_]] = {
        "GPUHighTemperature": devices.temperature > _TOO_HOT,
        "GPUMemoryExhausted": devices.used_mib > _TOO_FULL * devices.memory_mib,
        "GPUUnderutilized": devices.busy < _UNDERUTILIZED,
        "GPUAllocatedIdle": held & (devices.busy < _IDLE),
        "GPUThermalThrottling": devices.throttles,
    }
    return {
        name: [_device(seen, int(at)) for at in np.flatnonzero(mask)]
        for name, mask in masks.items()
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
        about = _device(seen, at)
        if fault.xid:
            name = "GPUXidCritical" if fault.xid in CRITICAL_XIDS else "GPUXidOther"
            found[name].append({**about, "xid": str(fault.xid)})
        if fault.ecc:
            found["GPUEccUncorrectable"].append(about)
        if fault.row_remap_failed:
            found["GPURowRemapFailure"].append(about)
    return found


def _device(seen: Seen, at: int) -> Labels:
    """Return the labels of a device, of the pod that has it, and of the pod's gang."""
    node, index = seen.frame.devices.places[at].device
    labels = {
        "kubernetes_node": node,
        "gpu": str(index),
        "UUID": seen.frame.devices.uuids[at],
    }
    holder = seen.frame.holders.get((node, index))
    if holder is None:
        return labels
    labels |= {"namespace": holder.pod.namespace, "pod": holder.pod.name}
    workload = seen.books.workload_of(holder.pod)
    if workload is not None:
        labels |= {**named(workload, seen.books), "user": workload.user}
    return labels


def _lost(seen: Seen) -> Iterator[Labels]:
    for node in seen.books.nodes.values():
        if node.allocatable < node.gpus:
            yield {"node": node.name}


def _waiting(seen: Seen) -> Iterator[Labels]:
    books = seen.books
    for one in books.workloads.values():
        if one.is_waiting:
            queue = books.queues.get(books.queue_of(one))
            slo = queue.wait_slo if queue is not None else None
            waited = seen.now - max(one.created, one.evicted)
            if waited > (DEFAULT_SLO_SECONDS if slo is None else slo):
                yield {**named(one, books), "user": one.user, "reason": one.waits.stage or "order"}


def _partly(seen: Seen) -> Iterator[Labels]:
    books = seen.books
    admitted = [one for one in books.workloads.values() if not one.finished and not one.is_waiting]
    for one, counts in pods_by_state(books, admitted):
        if 0 < counts["bound"] < counts["required"]:
            yield named(one, books)


def _starved(seen: Seen) -> Iterator[Labels]:
    tally = Tally.of(seen.books)
    for queue in seen.books.queues.values():
        # Who waits has no flavor yet, and is counted with the first one.
        for quota in queue.quotas[:1]:
            used = tally.used.get((queue.name, quota.flavor), 0)
            if tally.pending.get(queue.name, 0) and used < quota.nominal:
                yield {"queue": queue.name, "cohort": queue.cohort, "flavor": quota.flavor}


def _paid_idle(seen: Seen) -> Iterator[Labels]:
    for name, seconds in seen.idle.items():
        node = seen.books.nodes.get(name)
        if seconds > _IDLE_NODE_SECONDS and node is not None and node.price > _PAID_USD_HOUR:
            yield {"node": name, "nodepool": node.pool, "instance_type": node.instance_type}
