"""For how long something has held: an alert is pending until its rule's time is over, then fires.

Names, times and severities are those of the rule files, so what is told here and what a Prometheus
tells are the same alerts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from unisono.monitor.alerting.columns import Columns
from unisono.monitor.alerting.conditions import (
    Holds,
    Labels,
    Seen,
    device_labels,
    devices_that,
    what_holds,
)
from unisono.monitor.alerting.gangs import Gangs
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


class Watch:
    """Remembers since when what holds."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._since: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self._held: Holds = {}
        self._devices = Columns()
        self._gangs = Gangs()
        self._now = 0.0

    def look(self, seen: Seen) -> None:
        """Take what holds now; what does not any more is forgotten, and begins anew."""
        self._devices.look(seen.books, seen.frame, devices_that(seen.frame))
        now = seen.now
        holds = {**what_holds(seen), **self._gangs.hold(seen.books, now)}
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
                yield name, device_labels(last.books, last.frame, at), since

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
