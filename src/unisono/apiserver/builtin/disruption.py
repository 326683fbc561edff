"""PodDisruptionBudgets: how many pods may be missing at once."""

from __future__ import annotations

import re
from collections.abc import Iterator

from unisono.apiserver.builtin.causes import invalid, not_supported
from unisono.apiserver.builtin.judge import causes_of
from unisono.apiserver.builtin.reach import Json, at
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.decode import decode
from unisono.kinds.overriding import override
from unisono.kinds.selectors import LabelSelector, check_selector

_PERCENT = re.compile(r"[0-9]{1,9}%")  # as many digits as an int32 surely holds
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


class PodDisruptionBudgetStrategy(Strategy):
    """A PodDisruptionBudget."""

    @override
    def prepare_create(self, obj: Json, around: Surroundings) -> None:
        """Until somebody has counted the pods, none may go."""
        obj["status"] = {
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "disruptionsAllowed": 0,
            "expectedPods": 0,
        }

    @override
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
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
