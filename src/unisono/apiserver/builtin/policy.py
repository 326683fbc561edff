"""Disruption budgets, limit ranges, autoscalers, and kinds whose generations are not counted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unisono.apiserver.builtin.field_errors import invalid, not_supported, required
from unisono.apiserver.builtin.typed_validation import causes_of, judge, known_kind
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, child, fill, items
from unisono.apiserver.strategy import Context, Strategy
from unisono.kinds.decode import decode
from unisono.kinds.meta import LabelSelector, check_selector
from unisono.kinds.overriding import override

_PERCENT = re.compile(r"[0-9]{1,9}%")  # as many digits as an int32 surely holds
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(Strategy):
    """A PodDisruptionBudget."""

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Until the pods are counted, none may be evicted."""
        obj["status"] = {
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "disruptionsAllowed": 0,
            "expectedPods": 0,
        }

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield counts that contradict each other or are none."""
        spec = at(obj, "spec")
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
        for field in ("minAvailable", "maxUnavailable"):
            yield from _check_count(spec.get(field), f"spec.{field}")
        raw = spec.get("selector")
        if isinstance(raw, dict):
            selector, problems = decode(LabelSelector, raw, path="spec.selector")
            if selector is not None:
                problems = list(check_selector(selector, "spec.selector"))
            yield from causes_of(problems)
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            yield not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES)


def _check_count(value: object, path: str) -> Iterator[Cause]:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")
    elif isinstance(value, str):
        if _PERCENT.fullmatch(value) is None:
            yield invalid(path, value, "must be a number of pods or a percentage such as 50%")
        elif int(value[:-1]) > 100:
            yield invalid(path, value, "must not be greater than 100%")


# ---- limit ranges and autoscalers ----------------------------------------------------------------


_LIMIT_RANGE = known_kind("v1", "LimitRange")


class LimitRangeStrategy(Strategy):
    """A LimitRange."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """The most a container may have is also what it gets, unless something else is said."""
        for item in items(child(obj, "spec"), "limits"):
            if item.get("type") != "Container":
                continue
            for field, source in (
                ("default", "max"),
                ("defaultRequest", "default"),
                ("defaultRequest", "min"),
            ):
                for name, amount in at(item, source).items():
                    child(item, field).setdefault(name, amount)

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield bounds that contradict each other."""
        assert _LIMIT_RANGE is not None, "LimitRange is one of our kinds"
        causes, _ = judge(_LIMIT_RANGE, obj)
        yield from causes


class AutoscalerStrategy(Strategy):
    """A HorizontalPodAutoscaler (`control.apps.autoscaler`)."""

    has_generation = False

    @override
    def default(self, obj: Json) -> None:
        """Fill in the least number of pods, and what to go by."""
        spec = child(obj, "spec")
        fill(spec, minReplicas=1)
        if obj.get("apiVersion") != "autoscaling/v1" and not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": 80}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield numbers of pods that make no sense."""
        spec = at(obj, "spec")
        least, most = spec.get("minReplicas"), spec.get("maxReplicas")
        if isinstance(least, int) and least < 1:
            yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
        if not isinstance(most, int) or most < 1:
            yield required("spec.maxReplicas", "must be set and greater than 0")
        elif isinstance(least, int) and most < least:
            why = "must be greater than or equal to `minReplicas`"
            yield invalid("spec.maxReplicas", most, why)
        for field in ("kind", "name"):
            if not at(spec, "scaleTargetRef").get(field):
                yield required(f"spec.scaleTargetRef.{field}")


# ---- kinds without generations -------------------------------------------------------------------
#
# Most kinds without a spec for controllers do not count generations.


class UncountedStrategy(Strategy):
    """A kind whose generations are not counted."""

    has_generation = False


# ---- disruptions that a budget allows ------------------------------------------------------------
#
# How many pods of a disruption budget may go right now.


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
