"""The policies that refuse negative counts and amounts, evaluated by our own reader of CEL."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.control.operators.test_kubeflow import torch
from tests.control.operators.test_volcano_policies import task, vcjob
from tests.control.test_huge_counts import _ray, _ray_job, _ray_spec
from tests.control.training_world import job_set, replicated
from tests.kinds.test_intake import WORKLOAD, poked_at
from unisono.apiserver.schema.expressions.evaluate import Program
from unisono.cli.admission import validating
from unisono.kinds.shapes.served import served_kinds

Json = dict[str, Any]
POLICIES = {
    one["metadata"]["name"]: one["spec"]
    for one in validating("unisono-system")
    if one["kind"] == "ValidatingAdmissionPolicy" and "-counts-of-" in one["metadata"]["name"]
}


def run(expression: str, new: Json, old: Json | None = None) -> Any:
    """Evaluate an expression of a policy; ours reads `self` where a policy says `object`."""
    renamed = re.sub(r"\boldObject\b", "oldSelf", re.sub(r"\bobject\b", "self", expression))
    program = Program(renamed)
    assert not program.missing, program.missing
    return program.run(new, old)


def is_taken(name: str, new: Json, old: Json | None = None) -> bool:
    """Say whether a policy lets an object pass."""
    spec = POLICIES[name]
    if not all(run(one["expression"], new, old) for one in spec["matchConditions"]):
        return True
    return all(run(one["expression"], new, old) for one in spec["validations"])


LIMITS = "template/spec/containers/0/resources/limits/nvidia.com~gpu"
GROUP = "workerGroupSpecs/0"


@pytest.mark.parametrize(
    ("plural", "made", "path", "value"),
    [
        ("volcano-jobs", vcjob(task("w", 2)), f"spec/tasks/0/{LIMITS}", "-8"),
        ("volcano-jobs", vcjob(task("w", 2)), f"spec/tasks/0/{LIMITS}", -8),
        ("volcano-jobs", vcjob(task("w", 2)), "spec/tasks/0/replicas", -1),
        ("jobsets", job_set(replicated(gpus=1)), "spec/replicatedJobs/0/replicas", -1),
        (
            "jobsets",
            job_set(replicated(gpus=1)),
            f"spec/replicatedJobs/0/template/spec/{LIMITS}",
            "-1m",
        ),
        ("rayclusters", _ray(_ray_spec(1, replicas=2)), f"spec/{GROUP}/{LIMITS}", "-8"),
        ("rayclusters", _ray(_ray_spec(1, replicas=2)), f"spec/{GROUP}/replicas", -1),
        ("rayjobs", _ray_job(1, replicas=2), f"spec/rayClusterSpec/{GROUP}/numOfHosts", -1),
        ("pytorchjobs", torch(), "spec/pytorchReplicaSpecs/Worker/replicas", -1),
        ("pytorchjobs", torch(), f"spec/pytorchReplicaSpecs/Worker/{LIMITS}", "-8"),
        ("workloads", WORKLOAD, "spec/podSets/0/count", -1),
        ("workloads", WORKLOAD, f"spec/podSets/0/{LIMITS}", "-8"),
    ],
)
def test_it_is_refused_at_kubectl_apply(plural: str, made: Json, path: str, value: object) -> None:
    name = f"unisono-counts-of-{plural}"
    assert is_taken(name, made)
    worse = poked_at(made, path, value)
    assert not is_taken(name, worse)
    assert not is_taken(name, worse, made)
    labelled = {**worse, "metadata": {**worse["metadata"], "finalizers": []}}
    assert is_taken(name, labelled, worse), "what is stored already can be let go"


@pytest.mark.parametrize("name", POLICIES)
def test_fields_that_are_not_there_are_no_error(name: str) -> None:
    assert is_taken(name, {"metadata": {}})
    assert is_taken(name, {"metadata": {}, "spec": {}})


def test_every_policy_is_about_a_kind_that_there_is() -> None:
    served = {(one.group, one.plural) for one in served_kinds()} | {("kubeflow.org", "paddlejobs")}
    for spec in POLICIES.values():
        for rule in spec["matchConstraints"]["resourceRules"]:
            assert {(rule["apiGroups"][0], one) for one in rule["resources"]} <= served
