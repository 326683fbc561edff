"""For how long something has held: an alert is pending until its rule's time is over, then fires.

Names, times and severities are those of the rule files, so what is told here and what a Prometheus
tells are the same alerts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from unisono.monitor.alerting.conditions import Labels
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
        self._since: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._now = 0.0

    def look(self, holds: Mapping[str, Iterable[Labels]], now: float) -> None:
        """Take what holds now; what does not any more is forgotten, and begins anew."""
        keys = [(name, tuple(labels.items())) for name, some in holds.items() for labels in some]
        self._since = {key: self._since.get(key, now) for key in keys}
        self._now = now

    def active(self) -> list[Active]:
        """Return what is pending or fires: what fires first, the urgent first."""
        found = [
            Active(_RULES[name], dict(labels), since, self._state(_RULES[name], since))
            for (name, labels), since in self._since.items()
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
