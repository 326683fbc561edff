"""LimitRanges and autoscalers: what their authors may leave out."""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.causes import invalid, required
from unisono.apiserver.builtin.judge import judge, known_kind
from unisono.apiserver.builtin.reach import Json, at, child, fill, items
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.overriding import override

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
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """Yield bounds that contradict each other."""
        assert _LIMIT_RANGE is not None, "LimitRange is one of our kinds"
        causes, _ = judge(_LIMIT_RANGE, obj)
        yield from causes


class AutoscalerStrategy(Strategy):
    """A HorizontalPodAutoscaler; nobody scales anything here."""

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
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
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
