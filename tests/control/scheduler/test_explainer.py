"""Explanations as conditions of Workloads, and how many of them are written."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from unisono.control.scheduler.explainer import (
    _MOST_CHARACTERS,
    BUSY_PER_SECOND,
    MOST_AT_ONCE,
    QUIET_PER_SECOND,
    ExplanationRate,
    facts_of,
    waiting_status,
    written_facts,
)
from unisono.engine.model.explanation import Explanation, GangDoesNotFit, Quarantined
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.kube.form import Key


def _explanation(*lengths: int) -> Explanation:
    blockers = tuple(
        Quarantined(stage="read", problem="x" * length, retry_at=Instant(0)) for length in lengths
    )
    return Explanation(workload=WorkloadKey("a/b"), queue=None, blockers=blockers)


@pytest.mark.parametrize(
    "lengths",
    [(1,), (1, 2, 3), (20_000,), (16_000, 1), (100,) * 500, (1, 20_000, 1), (8000, 8000, 8000)],
    ids=["one", "three", "long", "tight", "many", "long between", "two of three"],
)
def test_as_many_facts_as_fit_are_written(lengths: tuple[int, ...]) -> None:
    explanation = _explanation(*lengths)
    text = written_facts(explanation)
    read = orjson.loads(text)
    every = facts_of(explanation)
    kept = len(read["facts"])
    assert read["facts"] == orjson.loads(orjson.dumps(every[:kept]))
    assert read.get("left_off", 0) == len(every) - kept
    assert orjson.dumps(read).decode() == text
    assert len(text) <= _MOST_CHARACTERS
    if kept < len(every):
        more = {**read, "facts": every[: kept + 1], "left_off": len(every) - kept - 1}
        if not more["left_off"]:
            del more["left_off"]
        assert len(orjson.dumps(more)) > _MOST_CHARACTERS


def test_each_fact_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0
    real = orjson.dumps

    def counting(value: Any) -> bytes:
        nonlocal encoded
        encoded += len(value["facts"]) if isinstance(value, dict) and "facts" in value else 1
        return real(value)

    monkeypatch.setattr("unisono.control.scheduler.explainer.orjson.dumps", counting)
    written_facts(_explanation(*(100,) * 500))
    assert encoded <= 501


def _does_not_fit() -> Explanation:
    blocker = GangDoesNotFit(pod_set="main", pods=4, pods_placeable=3)
    return Explanation(workload=WorkloadKey("a/b"), queue=None, blockers=(blocker,))


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({}, "Unschedulable"),
        ({"kueue.x-k8s.io/podset-preferred-topology": "rack"}, "TopologyPlacementFailed"),
    ],
)
def test_only_a_topology_request_fails_as_one(annotations: dict[str, str], reason: str) -> None:
    template = {"metadata": {"annotations": annotations}, "spec": {}}
    pod_sets = [{"name": "main", "count": 4, "template": template}]
    workload = {"metadata": {"name": "b", "namespace": "a"}, "spec": {"podSets": pod_sets}}
    patch = waiting_status(workload, _does_not_fit(), now=0.0)
    assert patch is not None
    assert patch["status"]["conditions"][0]["reason"] == reason
    assert waiting_status({**workload, **patch}, _does_not_fit(), now=9.0) is None


# ---- how many explanations are written while there is better to do -------------------------------

_LONG_AGO = -1e9


def told(rate: ExplanationRate, count: int, now: float, admitted_at: float) -> int:
    """Have so many ask at once; return how many are told."""
    keys = [Key("default", str(number)) for number in range(count)]
    for key in keys:
        list(rate.put_off(key, now, admitted_at))
    return sum(not rate.has_put_off(key) for key in keys)


def test_some_are_told_at_once_and_the_others_as_time_passes() -> None:
    rate = ExplanationRate()
    assert told(rate, 200, 1000.0, _LONG_AGO) == MOST_AT_ONCE
    assert told(rate, 200, 1000.1, _LONG_AGO) == QUIET_PER_SECOND / 10
    assert told(rate, 200, 1001.1, 1001.0) == BUSY_PER_SECOND


def test_updates_that_are_put_off_are_written_once_it_is_quiet() -> None:
    rate = ExplanationRate()
    told(rate, 50, 1000.0, 1000.0)
    key = Key("default", "late")
    (again,) = rate.put_off(key, 1000.0, 1000.0)
    assert rate.has_put_off(key)
    assert list(rate.put_off(key, again.at, 1000.0)) == []  # type: ignore[union-attr]  # an Again
    assert not rate.has_put_off(key)


def test_a_late_admission_keeps_it_busy() -> None:
    rate = ExplanationRate()
    told(rate, 50, 1000.0, 1000.0)
    told(rate, 200, 1005.0, 1005.0)  # a long step admits still, and began at 1000
    assert told(rate, 200, 1006.0, 1000.0) == BUSY_PER_SECOND


def test_an_unchanged_explanation_uses_no_token() -> None:
    rate = ExplanationRate()
    assert told(rate, 50, 1000.0, 1000.0) == MOST_AT_ONCE
    rate.give_back()
    assert told(rate, 2, 1000.0, 1000.0) == 1
