"""For how long something has held: an alert is pending until its rule's time is over, then fires.

Names, times and severities are those of the rule files, so what is told here and what a Prometheus
tells are the same alerts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unisono.monitor.alerting.conditions import (
    Gangs,
    Holds,
    Labels,
    Observation,
    device_labels,
    devices_that,
    what_holds,
)
from unisono.monitor.cache import ClusterCache
from unisono.monitor.dcgm.assignments import Device
from unisono.monitor.dcgm.devices import Devices, Floats
from unisono.monitor.dcgm.exporter import Frame
from unisono.monitor.rules.alerts import ALERTS, Alert

State = Literal["pending", "firing"]
_LASTING = re.compile(r"(\d+)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_RULES: Mapping[str, Alert] = {one.name: one for one in ALERTS}


class Active(NamedTuple):
    """An alert that holds."""

    rule: Alert
    labels: Labels
    since: float
    state: State


class AlertEvaluator:
    """Remembers since when what holds."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._since: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self._held: Holds = {}
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
                since = self._since.get(name, {})
                keys = [tuple(labels.items()) for labels in some]
                self._since[name] = {key: since.get(key, now) for key in keys}
        self._held, self._now = holds, now

    def active(self) -> list[Active]:
        """Return what is pending or fires: what fires first, the urgent first."""
        found = [
            Active(_RULES[name], labels, since, self._state(_RULES[name], since))
            for name, labels, since in self._all()
        ]
        urgency = ("critical", "warning", "info")
        found.sort(
            key=lambda one: (
                one.state != "firing",
                urgency.index(one.rule.severity),
                one.rule.name,
                one.since,
                tuple(one.labels.values()),
            )
        )
        return found

    def _all(self) -> Iterator[tuple[str, Labels, float]]:
        for name, holds in self._since.items():
            for labels, since in holds.items():
                yield name, dict(labels), since
        last = self._devices.last
        if last is not None:
            for name, at, since in self._devices.active():
                yield name, device_labels(last.cache, last.frame, at), since

    def _state(self, rule: Alert, since: float) -> State:
        return "firing" if self._now - since >= seconds_of(rule.lasting) else "pending"

    def told(self) -> dict[str, Any]:
        """Return it as Prometheus answers `/api/v1/alerts`."""
        alerts = [
            {
                "labels": {
                    "alertname": one.rule.name,
                    "severity": one.rule.severity,
                    **one.labels,
                },
                "state": one.state,
                "activeAt": datetime.fromtimestamp(one.since, UTC).isoformat(),
            }
            for one in self.active()
        ]
        return {"status": "success", "data": {"alerts": alerts}}


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
            begun = np.where(np.isnan(since), frame.now, since)
            self._since[name] = np.where(mask, begun, np.nan)

    def _follow(self, devices: Devices) -> None:
        """Take along what is known of those that are there still, with the same pod."""
        before = {} if self.last is None else _rows(self.last.frame.devices)
        pairs = [(at, before[held]) for held, at in _rows(devices).items() if held in before]
        here, there = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
        for name, since in self._since.items():
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
