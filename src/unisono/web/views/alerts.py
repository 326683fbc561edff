"""Alerts: what needs attention, the most urgent first, each with what it is about."""

from __future__ import annotations

from collections.abc import Mapping

from unisono.kube.form import Json
from unisono.monitor.active_alerts import (
    ActiveAlert,
    AlertBoard,
    Labels,
    about,
    panel_of,
    severity_rank,
)
from unisono.web.auth import Permissions
from unisono.web.dashboard import Dashboard
from unisono.web.view_models import PageModel

# Of one rule; thousands of idle GPUs are one alert with a number.
_MOST_THINGS = 20
_OF_PODS = ("namespace", "pod", "workload", "user", "queue")


def alerts(
    dashboard: Dashboard,
    asked: Mapping[str, str],
    permissions: Permissions,
    *,
    board: AlertBoard | None = None,
    grafana: str = "",
) -> PageModel:
    """Return the page: a row for every rule that fires or will."""
    if board is None:
        return PageModel({"absent": True})
    seen = visible(board, permissions)
    rows: dict[str, Json] = {}
    order = sorted(seen, key=lambda one: (one.state != "firing", severity_rank(one.rule.severity)))
    for one in order:
        row = rows.setdefault(
            one.rule.name,
            {
                "name": one.rule.name,
                "severity": one.rule.severity,
                "summary": one.rule.summary,
                "firing": 0,
                "pending": 0,
                "since": one.since,
                "panel": panel_of(grafana, one.rule.name, {}),
                "things": [],
            },
        )
        row[one.state] += 1
        row["since"] = min(row["since"], one.since)
        if len(row["things"]) < _MOST_THINGS:
            row["things"].append(_thing(one, dashboard, grafana))
    head = {"trouble": board.error, "known": board.is_known, **counted(seen)}
    return PageModel(head, rows)


def visible(board: AlertBoard, permissions: Permissions) -> list[ActiveAlert]:
    """Return the alerts that a user may see, without what the user may not list."""
    found = []
    for one in board.alerts:
        labels = _visible(one.labels, permissions)
        if labels is not None:
            found.append(one._replace(labels=labels))
    return found


def counted(seen: list[ActiveAlert]) -> Json:
    """Return how many rules fire, by severity."""
    firing = {one.rule.name: one.rule.severity for one in seen if one.state == "firing"}
    return {
        severity: sum(found == severity for found in firing.values())
        for severity in ("critical", "warning", "info")
    }


def _visible(labels: Labels, permissions: Permissions) -> Labels | None:
    """Return the labels that a user may see; None if nothing is left that it is about."""
    if "namespace" in labels and not permissions.sees(labels["namespace"]):
        labels = {key: value for key, value in labels.items() if key not in _OF_PODS}
        if "kubernetes_node" not in labels and "node" not in labels:
            return None
    elif "namespace" not in labels and not permissions.queues:
        if "queue" in labels or "cohort" in labels:
            return None
    is_of_node = any(key in labels for key in ("kubernetes_node", "node", "nodepool"))
    if is_of_node and not permissions.nodes:
        if "namespace" not in labels:
            return None
        of_node = ("kubernetes_node", "node", "gpu", "UUID", "nodepool", "instance_type")
        labels = {key: value for key, value in labels.items() if key not in of_node}
    return labels


def _thing(one: ActiveAlert, dashboard: Dashboard, grafana: str) -> Json:
    labels = one.labels
    namespace, workload = labels.get("namespace", ""), labels.get("workload", "")
    if namespace and not workload and labels.get("pod"):
        pod = dashboard.pod(namespace, labels["pod"])
        workload = pod.workload if pod is not None else ""
    # A rule may know a job by the name of its owner; only what is there has a page.
    known = dashboard.workload(namespace, workload) is not None
    return {
        "about": about(labels),
        "state": one.state,
        "since": one.since,
        "node": labels.get("kubernetes_node") or labels.get("node", ""),
        "gang": f"{namespace}/{workload}" if known else "",
        "queue": labels.get("queue", ""),
        "panel": panel_of(grafana, one.rule.name, labels),
    }
