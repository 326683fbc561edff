"""Horizontal autoscalers: what they watch, how it is, and between which bounds they scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.apiserver.tables.age import UNKNOWN
from unisono.apiserver.tables.printer import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Content,
    column,
    inside,
    of,
    printer,
)

# So many measures stand in a cell, then "+ 1 more...".
_MOST_MEASURES = 2

# Under which name the details of a metric stand, by its type.
_DETAILS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_OF_RESOURCES = ("Resource", "ContainerResource")


def _reference(scaler: Mapping[str, Any], now: float) -> Content:
    target = inside(scaler, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(scaler: Mapping[str, Any], now: float) -> Content:
    spec, status = scaler.get("spec") or {}, scaler.get("status") or {}
    percentage = spec.get("targetCPUUtilizationPercentage")
    if percentage is not None:  # autoscaling/v1 knows nothing but the processor
        current = status.get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{percentage}%"
    metrics, measured = spec.get("metrics") or [], status.get("currentMetrics") or []
    if not metrics:
        return NONE
    texts = [
        _measure(metric, measured[at] if at < len(measured) else {})
        for at, metric in enumerate(metrics)
    ]
    shown = ", ".join(texts[:_MOST_MEASURES])
    more = len(texts) - _MOST_MEASURES
    return f"{shown} + {more} more..." if more > 0 else shown


def _measure(metric: Mapping[str, Any], measured: Mapping[str, Any]) -> str:
    kind = metric.get("type", "")
    details = _DETAILS.get(kind)
    if details is None:
        return "<unknown type>"
    wanted = metric.get(details) or {}
    target = wanted.get("target") or {}
    current = (measured.get(details) or {}).get("current") or {}
    if kind in _OF_RESOURCES:
        if "averageValue" in target:
            amounts = f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
        else:
            used, limit = current.get("averageUtilization"), target.get("averageUtilization")
            amounts = (
                f"{UNKNOWN if used is None else f'{used}%'}/"
                f"{'<auto>' if limit is None else f'{limit}%'}"
            )
        return f"{wanted.get('name', '')}: {amounts}"
    if "averageValue" in target:
        suffix = "" if kind == "Pods" else " (avg)"
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', '0')}"


def _fewest(scaler: Mapping[str, Any], now: float) -> Content:
    fewest = inside(scaler, "spec", "minReplicas")
    return UNSET if fewest is None else str(fewest)


AUTOSCALERS = printer(
    NAME,
    column("Reference", _reference, "What is scaled."),
    column("Targets", _targets, "What is measured, and what it should be."),
    column("MinPods", _fewest, "Never fewer replicas than this."),
    column("MaxPods", of("spec", "maxReplicas", absent=0), "Never more."),
    column("Replicas", of("status", "currentReplicas", absent=0), "How many there are."),
    AGE,
)
