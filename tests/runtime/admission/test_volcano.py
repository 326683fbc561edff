"""What Volcano's webhook refuses, as policies of a real API server, read by our own CEL."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.control.job_kinds.test_volcano_flows import flow, step
from tests.control.job_kinds.test_volcano_policies import on, task, vcjob
from tests.runtime.admission.test_policies import run
from unisono.kube.form import Json
from unisono.runtime.admission.volcano import RULES

BY_NAME = {one.name.removeprefix("unisono-volcano-"): one for one in RULES}


def refusals(kind: str, new: Json | None, old: Json | None = None) -> list[str]:
    return [
        message
        for expression, message in BY_NAME[kind].validations
        if run(expression, new or {}, old) is not True
    ]


def exits(code: int, action: str = "RestartJob") -> Json:
    return {"exitCode": code, "action": action}


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        ([on("PodFailed", "RestartJob"), exits(3)], ""),
        ([{"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}], ""),
        ([on("*", "RestartJob")], ""),
        ([{**exits(3), "event": "PodFailed"}], "must not specify event and exitCode"),
        ([{"action": "AbortJob"}], "either event and exitCode should be specified"),
        ([on("PodGone", "AbortJob")], "invalid policy event"),
        ([on("PodFailed", "Explode")], "invalid policy action"),
        ([exits(0)], "0 is not a valid error code"),
        ([exits(3), exits(3, "AbortJob")], "duplicate exitCode"),
        (
            [on("PodFailed", "AbortJob"), {"events": ["PodFailed"], "action": "RestartJob"}],
            "duplicate event",
        ),
        ([on("*", "AbortJob"), on("PodFailed", "RestartJob")], "if there's * here"),
    ],
)
def test_policies_of_jobs_and_tasks(policies: list[Json], said: str) -> None:
    for job in (vcjob(task("w", 2), policies=policies), vcjob(task("w", 2, policies=policies))):
        found = refusals("jobs", job)
        assert any(said in one for one in found) == bool(said)
        assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"plugins": {"svc": [], "ray": []}}, ""),
        ({"plugins": {"other": []}}, "unable to find job plugin"),
        ({"tasks": []}, "No task specified"),
        ({"tasks": [task("w", 1), task("w", 1)]}, "duplicated task name"),
        ({"tasks": [{**task("w", 1), "minAvailable": 2}]}, "greater than 'replicas'"),
        ({"volumes": [{"mountPath": "/a", "volumeClaimName": "c"}]}, ""),
        ({"volumes": [{"mountPath": "/a"}]}, "either VolumeClaim or VolumeClaimName"),
        (
            {"volumes": [{"mountPath": "/a", "volumeClaimName": name} for name in "cd"]},
            "duplicated mountPath",
        ),
    ],
)
def test_the_rest_of_a_job(spec: Json, said: str) -> None:
    made = vcjob(task("w", 2))
    made["spec"] |= spec
    found = refusals("jobs", made)
    assert any(said in one for one in found) == bool(said)
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec["tasks"][0].update(replicas=3), ""),
        (lambda spec: spec.update(minAvailable=1), ""),
        (lambda spec: spec["tasks"].append(task("x", 1)), "add or remove tasks"),
        (lambda spec: spec.update(queue="other"), "may not change fields other"),
        (lambda spec: spec["tasks"][0].update(template={}), "may not change fields other"),
    ],
)
def test_only_numbers_of_a_job_change(change: Any, said: str) -> None:
    old = vcjob(task("w", 2), queue="q")
    new = deepcopy(old)
    change(new["spec"])
    found = refusals("jobs", new, old)
    assert any(said in one for one in found) == bool(said)
    assert bool(found) == bool(said)


def test_flows_and_queues() -> None:
    assert refusals("flows", flow(step("a"), step("b", "a"))) == []
    assert "vertex is not defined" in refusals("flows", flow(step("a", "b")))[0]
    assert "depends on itself" in refusals("flows", flow(step("a", "a")))[0]
    assert refusals("queues", None, {"metadata": {"name": "team"}}) == []
    assert refusals("queues", None, {"metadata": {"name": "default"}}) != []
