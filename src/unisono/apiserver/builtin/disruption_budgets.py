"""How many pods of a disruption budget may go right now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from unisono.apiserver.objects import Json


def selects(budget: Json, labels: Mapping[str, str]) -> bool:
    """Say whether a budget protects pods with these labels."""
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(clause, labels) for clause in selector.get("matchExpressions") or ())


def _holds(clause: Json, labels: Mapping[str, str]) -> bool:
    key, values = clause["key"], clause.get("values") or ()
    match clause["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def counted(budget: Json, pods: Sequence[Json]) -> tuple[int, int, int]:
    """Return how many selected pods are healthy, how many must be, and how many there are."""
    spec = budget.get("spec") or {}
    alive = [
        pod
        for pod in pods
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        and "deletionTimestamp" not in pod["metadata"]
    ]
    healthy = sum(1 for pod in alive if _is_ready(pod))
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None:
        needed = _part(least, len(alive))
    elif most is not None:
        needed = max(0, len(alive) - _part(most, len(alive)))
    else:
        needed = 1
    return healthy, needed, len(alive)


def allowed_disruptions(budget: Json, pods: Sequence[Json]) -> int:
    """Return how many of the selected pods may be evicted."""
    healthy, needed, _ = counted(budget, pods)
    return max(0, healthy - needed)


def _part(amount: Any, whole: int) -> int:
    """Read 2 or "50%", rounding up as Kubernetes does."""
    if isinstance(amount, str) and amount.endswith("%"):
        return math.ceil(int(amount[:-1]) * whole / 100)
    return int(amount)


def _is_ready(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
