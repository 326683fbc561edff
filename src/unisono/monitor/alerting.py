"""Alerts without a Prometheus: an embedded cluster evaluates its own.

An alert is pending until the time of its rule is over, then it fires. Names, labels, times and
severities are those of the rule files, so this and a Prometheus report the same alerts. The rules
are those about a moment: what they need is in the cache and in the columns of the simulated
devices. Rules about rates, and about missing scrape targets, need a Prometheus.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from unisono.monitor.active_alerts import RULES, ActiveAlert, severity_rank
from unisono.monitor.cache import ClusterCache
from unisono.monitor.dcgm.assignments import Device
from unisono.monitor.dcgm.devices import Devices, Floats
from unisono.monitor.dcgm.exporter import Frame
from unisono.monitor.gpu_faults import CRITICAL_XIDS
from unisono.monitor.metrics.queues import DEFAULT_SLO_SECONDS, QueueCounters
from unisono.monitor.metrics.scheduler import SchedulerHealth
from unisono.monitor.metrics.workloads import named, pods_by_state
from unisono.monitor.rules.alerts import BEHIND_SECONDS, UNEXPLAINED_SECONDS, Alert

_LASTING = re.compile(r"(\d+)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class AlertEvaluator:
    """Remembers since when what holds."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._since: dict[str, dict[_Identity, float]] = {}
        self._held: _Holds = {}
        self._restored: dict[str, dict[_Identity, float]] = {}  # of before a restart
        self._devices = Columns()
        self._gangs = Gangs()
        self._now = 0.0

    def look(self, seen: Observation) -> None:
        """Take what holds now; what does not any more is forgotten, and begins anew."""
        self._devices.look(seen.cache, seen.frame, devices_that(seen.frame))
        now = seen.now
        holds = {**what_holds(seen), **self._gangs.hold(seen.cache, now)}
        for name, some in holds.items():
            if some is not self._held.get(name):
                since = self._since.get(name) or self._restored.get(name, {})
                keys = [_identity(name, labels) for labels in some]
                self._since[name] = {key: since.get(key, now) for key in keys}
        self._held, self._now, self._restored = holds, now, {}

    def active(self) -> list[ActiveAlert]:
        """Return what is pending or fires: what fires first, the urgent first."""
        found = [
            ActiveAlert(RULES[name], labels, self._state(RULES[name], since), since)
            for name, labels, since in self._all()
        ]
        found.sort(
            key=lambda one: (
                one.state != "firing",
                severity_rank(one.rule.severity),
                one.rule.name,
                one.since,
                tuple(one.labels.values()),
            )
        )
        return found

    def _all(self) -> Iterator[tuple[str, _Labels, float]]:
        for name, some in self._held.items():
            of_name = self._since[name]
            for labels in some:
                yield name, labels, of_name[_identity(name, labels)]
        last = self._devices.last
        if last is not None:
            for name, at, since in self._devices.active():
                yield name, _device_labels(last.cache, last.frame, at), since

    def _state(self, rule: Alert, since: float) -> Literal["pending", "firing"]:
        return "firing" if self._now - since >= seconds_of(rule.lasting) else "pending"

    def told(self) -> dict[str, Any]:
        """Return it as Prometheus answers `/api/v1/alerts`."""
        alerts = [
            {
                "labels": {
                    "alertname": one.rule.name,
                    "severity": one.rule.severity,
                    **dict(_identity(one.rule.name, one.labels)),
                },
                # The pod that has a device comes and goes while the alert about it stays.
                "annotations": {"summary": one.rule.summary, **_joined(one)},
                "state": one.state,
                "activeAt": datetime.fromtimestamp(one.since, UTC).isoformat(),
            }
            for one in self.active()
        ]
        return {"status": "success", "data": {"alerts": alerts}}

    # ---- restarts --------------------------------------------------------------------------------

    def timers(self) -> _Timers:
        """Return since when what has held, to be restored after a restart."""
        found: dict[str, dict[str, float]] = {}
        for name, labels, since in self._all():
            key = msgspec.json.encode(dict(_identity(name, labels))).decode()
            found.setdefault(name, {})[key] = since
        return _Timers(self._now, found)

    def restore(self, timers: _Timers, now: float) -> None:
        """Go on where another evaluator stopped, unless that is too long ago.

        What fired by then fires at once if it still holds. The time of what was pending does not
        pass while nothing looks, as in Prometheus.
        """
        away = now - timers.at
        if not 0 <= away <= _LONGEST_AWAY_SECONDS:
            return
        for name, some in timers.since.items():
            rule = RULES.get(name)
            if rule is None:
                continue
            for key, since in some.items():
                has_fired = timers.at - since >= seconds_of(rule.lasting)
                at = since if has_fired else since + away
                identity = tuple(sorted(msgspec.json.decode(key, type=dict[str, str]).items()))
                self._restored.setdefault(name, {})[identity] = at
        for name, times in self._restored.items():
            of_devices = self._devices.restored.setdefault(name, {})
            for about, at in times.items():
                labels = dict(about)
                of_devices[labels.get("kubernetes_node", ""), labels.get("gpu", "")] = at


_Identity = tuple[tuple[str, str], ...]
_LONGEST_AWAY_SECONDS = 3600.0
_DEVICE = ("UUID", "gpu", "kubernetes_node")
# An allocated GPU is idle for its pod: with another one that time begins anew.
_OF_PODS = ("GPUAllocatedIdle",)


class _Timers(msgspec.Struct):
    """Since when alerts have held, by their names and labels."""

    at: float
    since: dict[str, dict[str, float]]


def timers_of(text: bytes) -> _Timers | None:
    """Read the timers of an evaluator that stopped; None if they cannot be read."""
    try:
        return msgspec.json.decode(text, type=_Timers)
    except msgspec.MsgspecError:
        return None


def _identity(name: str, labels: _Labels) -> _Identity:
    """Return the labels that make an alert this one: of a device, where it is about one."""
    if "UUID" not in labels or name in _OF_PODS:
        return tuple(sorted(labels.items()))
    more = ("xid",) if name == "GPUXidOther" else ()
    return tuple((key, labels[key]) for key in sorted((*_DEVICE, *more)) if key in labels)


def _joined(one: ActiveAlert) -> _Labels:
    """Return what is not of the alert itself: the pod that has its device now."""
    own = dict(_identity(one.rule.name, one.labels))
    return {key: value for key, value in one.labels.items() if key not in own}


def seconds_of(lasting: str) -> int:
    """Return how long a rule's time is.

    >>> seconds_of("5m"), seconds_of("0s")
    (300, 0)
    """
    found = _LASTING.fullmatch(lasting)
    return int(found[1]) * _SECONDS[found[2]] if found is not None else 0


HeldDevice = tuple[Device, str]  # a device, and the uid of the pod that has it


class Look(NamedTuple):
    """What was observed, to find the pod of a device later."""

    cache: ClusterCache
    frame: Frame


class Columns:
    """Remembers since when; never is what is not a number."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.last: Look | None = None
        self._since: dict[str, Floats] = {}
        # Of before a restart: by alert, node and index.
        self.restored: dict[str, dict[tuple[str, str], float]] = {}

    def look(
        self, cache: ClusterCache, frame: Frame, masks: Mapping[str, NDArray[np.bool_]]
    ) -> None:
        """Take which devices each alert is true of now."""
        if self.last is None or _has_changed(self.last.frame.devices, frame.devices):
            self._follow(frame.devices)
        self.last = Look(cache, frame)
        never = np.full(len(frame.devices.places), np.nan)
        for name, mask in masks.items():
            since = self._since.get(name, never)
            if name in self.restored:
                since = self._restored_of(name, frame.devices)
            begun = np.where(np.isnan(since), frame.now, since)
            self._since[name] = np.where(mask, begun, np.nan)
        self.restored = {}

    def _restored_of(self, name: str, devices: Devices) -> Floats:
        known = self.restored[name]
        places = [(one.device[0], str(one.device[1])) for one in devices.places]
        return np.array([known.get(place, np.nan) for place in places], dtype=np.float64)

    def _follow(self, devices: Devices) -> None:
        """Take along what is known of those that are there still; of pods' only with the pod."""
        for name, since in self._since.items():
            rows = _rows if name in _OF_PODS else _devices
            before = {} if self.last is None else rows(self.last.frame.devices)
            pairs = [(at, before[held]) for held, at in rows(devices).items() if held in before]
            here, there = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
            moved = np.full(len(devices.places), np.nan)
            moved[here] = since[there]
            self._since[name] = moved

    def active(self) -> Iterator[tuple[str, int, float]]:
        """Yield the alerts that are true of a device: the name, the device's row, since when."""
        for name, since in self._since.items():
            for at in np.flatnonzero(~np.isnan(since)).tolist():
                yield name, at, float(since[at])


def _has_changed(before: Devices, after: Devices) -> bool:
    """Say whether devices came and went or have other pods; both are new tuples then."""
    return before.places is not after.places or before.holders is not after.holders


def _rows(devices: Devices) -> dict[HeldDevice, int]:
    rows = zip(devices.places, devices.holders, strict=True)
    return {
        (one.device, holder.pod.uid if holder is not None else ""): at
        for at, (one, holder) in enumerate(rows)
    }


def _devices(devices: Devices) -> dict[HeldDevice, int]:
    """Return the rows of devices, whatever pod has them."""
    return {(one.device, ""): at for at, one in enumerate(devices.places)}


# ---- what holds ----------------------------------------------------------------------------------

_Labels = Mapping[str, str]
_Holds = dict[str, list[_Labels]]  # by the name of the alert

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


def what_holds(seen: Observation) -> _Holds:
    """Return the other conditions of faults, nodes and the scheduler that hold."""
    return {
        **_of_faults(seen),
        "GPULost": list(_lost(seen)),
        "PaidNodeIdle": list(_paid_idle(seen)),
        **_of_scheduler(seen.health),
    }


def _of_scheduler(health: SchedulerHealth) -> _Holds:
    nothing: _Labels = {}
    return {
        "ObjectsQuarantined": [
            {"kind": kind, "stage": stage} for kind, stage in sorted(health.quarantined)
        ],
        "SchedulerNotPlanning": [nothing] if health.behind_s > BEHIND_SECONDS else [],
        "SchedulerNotWriting": [nothing] if health.unwritten_s > BEHIND_SECONDS else [],
        "WorkloadUnexplained": [nothing] if health.unexplained_s > UNEXPLAINED_SECONDS else [],
    }


def _of_faults(seen: Observation) -> _Holds:
    found: _Holds = {
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
        about = _device_labels(seen.cache, seen.frame, at)
        if fault.xid:
            name = "GPUXidCritical" if fault.xid in CRITICAL_XIDS else "GPUXidOther"
            found[name].append({**about, "xid": str(fault.xid)})
        if fault.ecc:
            found["GPUEccUncorrectable"].append(about)
        if fault.row_remap_failed:
            found["GPURowRemapFailure"].append(about)
    return found


def _device_labels(cache: ClusterCache, frame: Frame, at: int) -> _Labels:
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


def _lost(seen: Observation) -> Iterator[_Labels]:
    for node in seen.cache.nodes.values():
        if node.allocatable < node.gpus:
            yield {"node": node.name}


def _paid_idle(seen: Observation) -> Iterator[_Labels]:
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
        self._waiting: list[_Labels] = []  # and its labels
        self._late: list[_Labels] = []
        self._partly: list[_Labels] = []
        self._starved: list[_Labels] = []
        self._unstartable: list[_Labels] = []

    def hold(self, cache: ClusterCache, now: float) -> _Holds:
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


def _waiting(cache: ClusterCache) -> Iterator[tuple[float, _Labels]]:
    for one in cache.workloads.values():
        if one.is_waiting:
            queue = cache.queues.get(cache.queue_of(one))
            slo = queue.wait_slo if queue is not None else None
            deadline = max(one.created, one.evicted) + (DEFAULT_SLO_SECONDS if slo is None else slo)
            labels = {**named(one, cache), "user": one.user, "reason": one.waits.stage or "order"}
            yield deadline, labels


def _partly(cache: ClusterCache) -> Iterator[_Labels]:
    admitted = [one for one in cache.workloads.values() if not one.finished and not one.is_waiting]
    for one, counts in pods_by_state(cache, admitted):
        if 0 < counts["bound"] < counts["required"]:
            yield named(one, cache)


def _starved(cache: ClusterCache, tally: QueueCounters) -> Iterator[_Labels]:
    for queue in cache.queues.values():
        # A waiting workload has no flavor yet, and is counted with the first one.
        for quota in queue.quotas[:1]:
            used = tally.used.get((queue.name, quota.flavor), 0)
            if tally.pending.get(queue.name, 0) and used < quota.nominal:
                yield {"queue": queue.name, "cohort": queue.cohort, "flavor": quota.flavor}
