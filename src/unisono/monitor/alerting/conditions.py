"""What holds now, under the names and with the labels that the alert rules have.

These are the rules that tell of a moment: what they need is in the cache and in the columns of the
simulated devices. Rules about rates, and about missing scrape targets, need a Prometheus.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.cache import ClusterCache
from unisono.monitor.dcgm.exporter import Frame
from unisono.monitor.gpu_faults import CRITICAL_XIDS
from unisono.monitor.metrics.queues import DEFAULT_SLO_SECONDS, QueueCounters
from unisono.monitor.metrics.scheduler import SchedulerHealth
from unisono.monitor.metrics.workloads import named, pods_by_state
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
class Observation:
    """A cluster at one time."""

    cache: ClusterCache
    frame: Frame
    idle: Mapping[str, float]  # how long nodes have had nothing to do
    now: float
    health: SchedulerHealth


def devices_that(frame: Frame) -> dict[str, NDArray[np.bool_]]:
    """Return which devices each alert about a device is true of.

    Columns, because an idle cluster of a thousand nodes has eight thousand devices that are not
    used: writing all of their labels every quarter of a minute would cost too much.
    """
    devices = frame.devices
    return {
        "GPUHighTemperature": devices.temperature > _TOO_HOT,
        "GPUMemoryExhausted": devices.used_mib > _TOO_FULL * devices.memory_mib,
        "GPUUnderutilized": devices.busy < _UNDERUTILIZED,
        "GPUAllocatedIdle": devices.held & (devices.busy < _IDLE),
        "GPUThermalThrottling": devices.throttles,
    }


def what_holds(seen: Observation) -> Holds:
    """Return the other conditions of faults, nodes and the scheduler that hold."""
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


def _of_faults(seen: Observation) -> Holds:
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
        about = device_labels(seen.cache, seen.frame, at)
        if fault.xid:
            name = "GPUXidCritical" if fault.xid in CRITICAL_XIDS else "GPUXidOther"
            found[name].append({**about, "xid": str(fault.xid)})
        if fault.ecc:
            found["GPUEccUncorrectable"].append(about)
        if fault.row_remap_failed:
            found["GPURowRemapFailure"].append(about)
    return found


def device_labels(cache: ClusterCache, frame: Frame, at: int) -> Labels:
    """Return the labels of a device, of the pod that has it, and of the pod's gang."""
    node, index = frame.devices.places[at].device
    labels = {"kubernetes_node": node, "gpu": str(index), "UUID": frame.devices.uuids[at]}
    holder = frame.devices.holders[at]
    if holder is None:
        return labels
    labels |= {"namespace": holder.pod.namespace, "pod": holder.pod.name}
    workload = cache.workload_of(holder.pod)
    if workload is not None:
        labels |= {**named(workload, cache), "user": workload.user}
    return labels


def _lost(seen: Observation) -> Iterator[Labels]:
    for node in seen.cache.nodes.values():
        if node.allocatable < node.gpus:
            yield {"node": node.name}


def _paid_idle(seen: Observation) -> Iterator[Labels]:
    for name, seconds in seen.idle.items():
        node = seen.cache.nodes.get(name)
        if seconds > _IDLE_NODE_SECONDS and node is not None and node.price > _PAID_USD_HOUR:
            yield {"node": name, "nodepool": node.pool, "instance_type": node.instance_type}


class Gangs:
    """Remembers what the cache said of gangs the last time."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._seen = (-1, -1, -1)
        self._deadlines: list[float] = []  # from when on each waits too long, the first first
        self._waiting: list[Labels] = []  # and its labels
        self._late: list[Labels] = []
        self._partly: list[Labels] = []
        self._starved: list[Labels] = []
        self._unstartable: list[Labels] = []

    def hold(self, cache: ClusterCache, now: float) -> Holds:
        """Return the conditions of workloads and queues; the same lists while nothing changed."""
        seen = cache.workloads_version, cache.pods_version, cache.queues_version
        if seen != self._seen:
            self._seen = seen
            waiting = sorted(_waiting(cache), key=itemgetter(0))
            self._deadlines = [at for at, _ in waiting]
            self._waiting = [labels for _, labels in waiting]
            self._late = []
            self._partly = list(_partly(cache))
            tally = QueueCounters.of(cache)
            self._starved = list(_starved(cache, tally))
            self._unstartable = [
                {"queue": queue, "reason": reason} for queue, reason in sorted(tally.unstartable)
            ]
        late = bisect_left(self._deadlines, now)
        if late != len(self._late):
            self._late = self._waiting[:late]
        return {
            "GangWaitingTooLong": self._late,
            "GangPartiallyRunning": self._partly,
            "QuotaStarvation": self._starved,
            "WorkloadCannotStart": self._unstartable,
        }


def _waiting(cache: ClusterCache) -> Iterator[tuple[float, Labels]]:
    for one in cache.workloads.values():
        if one.is_waiting:
            queue = cache.queues.get(cache.queue_of(one))
            slo = queue.wait_slo if queue is not None else None
            deadline = max(one.created, one.evicted) + (DEFAULT_SLO_SECONDS if slo is None else slo)
            labels = {**named(one, cache), "user": one.user, "reason": one.waits.stage or "order"}
            yield deadline, labels


def _partly(cache: ClusterCache) -> Iterator[Labels]:
    admitted = [one for one in cache.workloads.values() if not one.finished and not one.is_waiting]
    for one, counts in pods_by_state(cache, admitted):
        if 0 < counts["bound"] < counts["required"]:
            yield named(one, cache)


def _starved(cache: ClusterCache, tally: QueueCounters) -> Iterator[Labels]:
    for queue in cache.queues.values():
        # A waiting workload has no flavor yet, and is counted with the first one.
        for quota in queue.quotas[:1]:
            used = tally.used.get((queue.name, quota.flavor), 0)
            if tally.pending.get(queue.name, 0) and used < quota.nominal:
                yield {"queue": queue.name, "cohort": queue.cohort, "flavor": quota.flavor}
