"""Alerts that hold now, as the page and `unisono alerts` show them, and where Grafana shows more.

They come from the rules that an embedded cluster evaluates itself (`alerting`), or from the
Prometheus of a real one; names, labels and severities are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

from unisono.kinds.views import seconds_of
from unisono.monitor.rules.alerts import ALERTS, Alert, Severity

Labels = Mapping[str, str]
RULES: Mapping[str, Alert] = {one.name: one for one in ALERTS}
_STATES = ("firing", "pending")

# The panel that shows what an alert is about: the dashboard and the number of the panel in it.
_PANELS: Mapping[str, tuple[str, int]] = {
    "GPUHighTemperature": ("fleet", 8),
    "GPUMemoryExhausted": ("fleet", 15),
    "GPUUnderutilized": ("fleet", 13),
    "GPUAllocatedIdle": ("fleet", 13),
    "GPUXidCritical": ("reliability", 3),
    "GPUXidOther": ("reliability", 3),
    "GPUEccUncorrectable": ("reliability", 4),
    "GPURowRemapFailure": ("reliability", 4),
    "GPUThermalThrottling": ("reliability", 6),
    "GPULost": ("reliability", 5),
    "GPUExporterDown": ("fleet", 2),
    "GPUMetricsMissing": ("fleet", 2),
    "QuarantineLimitReached": ("reliability", 5),
    "GPUMetricsUnattributed": ("fleet", 5),
    "GangWaitingTooLong": ("gangs", 2),
    "GangPartiallyRunning": ("workload", 2),
    "QuotaStarvation": ("queues", 3),
    "WorkloadCannotStart": ("gangs", 3),
    "StragglerDetected": ("workload", 8),
    "GPUClockBelowGang": ("workload", 4),
    "TrainingStalled": ("workload", 7),
    "RestartStorm": ("reliability", 8),
    "ProvisioningFailing": ("capacity", 13),
    "CapacityStockOut": ("capacity", 16),
    "PaidNodeIdle": ("capacity", 7),
    "SpendAboveBudget": ("capacity", 5),
    "SchedulerSlow": ("reliability", 12),
}
# What a dashboard can be narrowed to, by the label of the alert.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "fleet": ("gpu",),
    "gangs": ("queue",),
    "queues": ("queue",),
    "workload": ("namespace", "workload"),
}


class ActiveAlert(NamedTuple):
    """One alert about one thing."""

    rule: Alert
    labels: Labels
    state: Literal["firing", "pending"]
    since: float


class AlertBoard:
    """The alerts that held when they were last evaluated."""

    def __init__(self) -> None:
        """Begin before the first evaluation."""
        self.version = 0
        self.is_known = False
        self.error = ""  # why nothing newer is known
        self.alerts: tuple[ActiveAlert, ...] = ()

    def take(self, alerts: Iterable[ActiveAlert]) -> None:
        """Take what holds now."""
        found = tuple(alerts)
        if found != self.alerts or self.error or not self.is_known:
            self.version += 1
        self.alerts, self.error, self.is_known = found, "", True

    def fail(self, error: str) -> None:
        """Take that it is not known what holds now."""
        if error != self.error:
            self.version += 1
        self.error, self.alerts = error, ()


def of_prometheus(answer: Any) -> tuple[ActiveAlert, ...]:
    """Return the alerts of our rules from a Prometheus' answer; raises ValueError if it is none.

    Other rules may be about things that the users of a page must not see.
    """
    try:
        found = answer["data"]["alerts"]
        alerts = []
        for one in found:
            labels = {str(key): str(value) for key, value in one["labels"].items()}
            rule = RULES.get(labels.pop("alertname", ""))
            state = one["state"]
            if rule is not None and state in _STATES:
                since = seconds_of(one["activeAt"])
                alerts.append(ActiveAlert(rule, labels, state, since))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("these are no alerts of a Prometheus") from error
    return tuple(alerts)


def severity_rank(severity: Severity) -> int:
    """Return how urgent a severity is; the most urgent is 0."""
    return ("critical", "warning", "info").index(severity)


def about(labels: Labels) -> str:
    """Say what an alert is about.

    >>> about({"kubernetes_node": "n1", "gpu": "0", "namespace": "a", "pod": "p", "user": "kim"})
    'n1 GPU 0, pod a/p of kim'
    >>> about({"kind": "Workload", "stage": "audit"})
    'Workload (audit)'
    """
    parts = []
    if "gpu" in labels and "kubernetes_node" in labels:
        parts.append(f"{labels['kubernetes_node']} GPU {labels['gpu']}")
    elif "node" in labels:
        parts.append(f"node {labels['node']}")
    if "xid" in labels:
        parts.append(f"XID {labels['xid']}")
    namespace = labels.get("namespace", "")
    if "pod" in labels:
        owner = f" of {labels['user']}" if labels.get("user") else ""
        parts.append(f"pod {namespace}/{labels['pod']}{owner}")
    elif "workload" in labels:
        reason = f" ({labels['reason']})" if labels.get("reason") else ""
        parts.append(f"{namespace}/{labels['workload']}{reason}")
    elif "stage" in labels:
        parts.append(f"{labels.get('kind', '')} ({labels['stage']})")
    if "pod" not in labels and labels.get("queue"):
        parts.append(f"queue {labels['queue']}")
        if "workload" not in labels and labels.get("reason"):
            parts.append(labels["reason"])
    return ", ".join(parts)


# ---- Grafana -------------------------------------------------------------------------------------


def panel_of(grafana: str, name: str, labels: Labels) -> str:
    """Return the address of the panel that shows more about an alert; empty without Grafana.

    >>> panel_of("https://g.example/", "QuotaStarvation", {"queue": "a b"})
    'https://g.example/d/unisono-queues?var-queue=a+b&viewPanel=3'
    >>> panel_of("", "QuotaStarvation", {})
    ''
    """
    dashboard, panel = _PANELS.get(name, ("reliability", 0))
    return dashboard_of(grafana, dashboard, labels, panel)


def dashboard_of(grafana: str, dashboard: str, labels: Labels, panel: int = 0) -> str:
    """Return the address of a dashboard, about what the labels name."""
    if not grafana:
        return ""
    names = _VARIABLES.get(dashboard, ())
    fields = [(f"var-{name}", labels[name]) for name in names if labels.get(name)]
    fields += [("viewPanel", str(panel))] if panel else []
    query = urlencode(fields)
    return f"{grafana.rstrip('/')}/d/unisono-{dashboard}" + (f"?{query}" if query else "")
