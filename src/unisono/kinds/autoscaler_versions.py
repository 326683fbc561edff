"""HorizontalPodAutoscalers of `autoscaling` in v1 and v2, as plain dictionaries.

    v1                                          v2
    spec.targetCPUUtilizationPercentage: 50     spec.metrics: cpu, with averageUtilization: 50
    status.currentCPUUtilizationPercentage      status.currentMetrics: the same

v1 knows no other metric.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def raise_autoscaler(obj: Json) -> None:
    """Turn a v1 object into a v2 one, in place."""
    for part, old, new, word in _PLACES:
        inside = obj.get(part)
        if not isinstance(inside, dict):
            continue
        percentage = inside.pop(old, None)
        if percentage is not None:
            value: Json = {"averageUtilization": percentage}
            if word == "target":
                value["type"] = "Utilization"
            inside[new] = [{"type": "Resource", "resource": {"name": "cpu", word: value}}]


def lower_autoscaler(obj: Json) -> None:
    """Turn a v2 object into a v1 one, in place."""
    for part, old, new, word in _PLACES:
        inside = obj.get(part)
        if not isinstance(inside, dict):
            continue
        for metric in inside.pop(new, None) or ():
            percentage = _percentage(metric, word)
            if percentage is not None:
                inside[old] = percentage
                break
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict):
        spec.pop("behavior", None)
    if isinstance(status, dict):
        status.pop("conditions", None)


_PLACES = (
    ("spec", "targetCPUUtilizationPercentage", "metrics", "target"),
    ("status", "currentCPUUtilizationPercentage", "currentMetrics", "current"),
)


def _percentage(metric: Any, word: str) -> Any:
    resource = metric.get("resource") if isinstance(metric, dict) else None
    if not isinstance(resource, dict) or resource.get("name") != "cpu":
        return None
    value = resource.get(word)
    return value.get("averageUtilization") if isinstance(value, dict) else None
