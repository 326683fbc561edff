"""The policies that refuse negative counts and amounts, evaluated by our own reader of CEL."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from tests.control.job_kinds.test_kubeflow import torch
from tests.control.job_kinds.test_volcano_policies import task, vcjob
from tests.control.test_huge_counts import _ray, _ray_job, _ray_spec
from tests.control.training_world import job_set, replicated, train_job
from tests.kinds.test_known import WORKLOAD, poked_at
from unisono.apiserver.access.reserved_fields import job_kinds
from unisono.kinds.expressions.evaluate import Program
from unisono.kinds.shapes.served import served_kinds
from unisono.kube.form import Json
from unisono.runtime.admission.policies import validating

POLICIES = {
    one["metadata"]["name"]: one["spec"]
    for one in validating("unisono-system")
    if one["kind"] == "ValidatingAdmissionPolicy" and "-counts-of-" in one["metadata"]["name"]
}


def run(expression: str, new: Json, old: Json | None = None) -> Any:
    """Evaluate an expression of a policy; ours reads `self` where a policy says `object`."""
    return compiled(expression).run(new, old)


@cache
def compiled(expression: str) -> Program:
    """Return an expression of a policy as ours."""
    renamed = re.sub(r"\boldObject\b", "oldSelf", re.sub(r"\bobject\b", "self", expression))
    program = Program(renamed)
    assert not program.missing, program.missing
    return program


def is_taken(name: str, new: Json, old: Json | None = None) -> bool:
    """Say whether a policy lets an object pass."""
    spec = POLICIES[name]
    if not all(run(one["expression"], new, old) for one in spec["matchConditions"]):
        return True
    return all(run(one["expression"], new, old) for one in spec["validations"])


LIMITS = "template/spec/containers/0/resources/limits/nvidia.com~gpu"
GROUP = "workerGroupSpecs/0"
MOST = 2**31 - 1
SET = "spec/replicatedJobs/0"
HEAD = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "-8"}}}]}
ASKED = {"requests": {"nvidia.com/gpu": "-8"}}
RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainingRuntime",
    "metadata": {"name": "r", "namespace": "default"},
    "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": job_set(replicated())["spec"]}},
}


@pytest.mark.parametrize(
    ("plural", "made", "path", "value"),
    [
        ("volcano-jobs", vcjob(task("w", 2)), f"spec/tasks/0/{LIMITS}", "-8"),
        ("volcano-jobs", vcjob(task("w", 2)), f"spec/tasks/0/{LIMITS}", -8),
        ("volcano-jobs", vcjob(task("w", 2)), "spec/tasks/0/replicas", -1),
        ("jobsets", job_set(replicated(gpus=1)), f"{SET}/replicas", -1),
        ("jobsets", job_set(replicated(pods=2)), f"{SET}/replicas", MOST),
        ("jobsets", job_set(replicated(pods=1)), f"{SET}/template/spec/parallelism", 2**31),
        ("volcano-jobs", vcjob(task("w", 2)), "spec/minAvailable", -1),
        ("trainjobs", train_job(), "spec/trainer/numNodes", -1),
        ("trainjobs", train_job(), "spec/trainer/resourcesPerNode", ASKED),
        ("training-runtimes", RUNTIME, f"spec/template/{SET}/replicas", MOST),
        ("training-runtimes", RUNTIME, "spec/mlPolicy/numNodes", -1),
        (
            "jobsets",
            job_set(replicated(gpus=1)),
            f"spec/replicatedJobs/0/template/spec/{LIMITS}",
            "-1m",
        ),
        ("rayclusters", _ray(_ray_spec(1, replicas=2)), f"spec/{GROUP}/{LIMITS}", "-8"),
        ("rayclusters", _ray(_ray_spec(1, replicas=2)), f"spec/{GROUP}/replicas", -1),
        ("rayclusters", _ray(_ray_spec(1, replicas=2)), "spec/headGroupSpec/template/spec", HEAD),
        (
            "rayclusters",
            _ray(_ray_spec(1, replicas=2)),
            "spec/autoscalerOptions",
            {"resources": ASKED},
        ),
        ("rayclusters", _ray(_ray_spec(1, replicas=MOST)), f"spec/{GROUP}/numOfHosts", 2),
        (
            "rayclusters",
            _ray(_ray_spec(1, replicas=1, numOfHosts=2)),
            f"spec/{GROUP}/minReplicas",
            MOST,
        ),
        (
            "rayjobs",
            _ray_job(1, replicas=2),
            "spec/rayClusterSpec/headGroupSpec/template/spec",
            HEAD,
        ),
        ("rayjobs", _ray_job(1, replicas=2), "spec/submitterPodTemplate", {"spec": HEAD}),
        ("rayjobs", _ray_job(1, replicas=2), f"spec/rayClusterSpec/{GROUP}/numOfHosts", -1),
        ("pytorchjobs", torch(), "spec/pytorchReplicaSpecs/Worker/replicas", -1),
        ("pytorchjobs", torch(), f"spec/pytorchReplicaSpecs/Worker/{LIMITS}", "-8"),
        ("workloads", WORKLOAD, "spec/podSets/0/count", -1),
        ("workloads", WORKLOAD, "spec/podSets/0/count", 2**31),
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


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("jobsets", job_set(replicated(pods=1, replicas=MOST))),
        ("jobsets", job_set(replicated(pods=5, completions=1, replicas=MOST))),
        ("jobsets", poked_at(job_set(replicated(replicas=MOST)), f"{SET}/template/spec", {})),
        ("rayclusters", _ray(_ray_spec(1, replicas=MOST, numOfHosts=1))),
        ("rayclusters", _ray(_ray_spec(1, replicas=MOST, numOfHosts=4, maxReplicas=2))),
        ("rayclusters", _ray(_ray_spec(1, replicas=MOST, numOfHosts=4, suspend=True))),
    ],
)
def test_large_counts_are_legal_as_long_as_they_are_counts(name: str, made: Json) -> None:
    assert is_taken(f"unisono-counts-of-{name}", made)


def test_every_kind_of_job_of_others_has_its_numbers_checked() -> None:
    checked = {
        (rule["apiGroups"][0], plural)
        for spec in POLICIES.values()
        for rule in spec["matchConstraints"]["resourceRules"]
        for plural in rule["resources"]
    }
    # A Job is checked by the server itself, a SlurmJob by the definition that is always ours.
    others = {
        (served.group, served.plural)
        for served in job_kinds().values()
        if served.group not in ("batch", "unisono.dev")
    }
    assert others <= checked


@pytest.mark.parametrize("name", POLICIES)
def test_fields_that_are_not_there_are_no_error(name: str) -> None:
    assert is_taken(name, {"metadata": {}})
    assert is_taken(name, {"metadata": {}, "spec": {}})


def test_every_policy_is_about_a_kind_that_there_is() -> None:
    served = {(one.group, one.plural) for one in served_kinds()} | {("kubeflow.org", "paddlejobs")}
    for spec in POLICIES.values():
        for rule in spec["matchConstraints"]["resourceRules"]:
            assert {(rule["apiGroups"][0], one) for one in rule["resources"]} <= served


WARNS = {
    one["metadata"]["name"]: one["spec"]
    for one in validating("unisono-system")
    if one["kind"] == "ValidatingAdmissionPolicy" and "-devices-of-" in one["metadata"]["name"]
}
CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]


@pytest.mark.parametrize(
    ("name", "job", "pod"),
    [
        ("unisono-devices-of-volcano-jobs", vcjob(task("t", 1)), "spec/tasks/0/template/spec"),
        (
            "unisono-devices-of-jobsets",
            job_set(replicated(), queue="q"),
            f"{SET}/template/spec/template/spec",
        ),
        (
            "unisono-devices-of-pytorchjobs",
            torch(),
            "spec/pytorchReplicaSpecs/Worker/template/spec",
        ),
        (
            "unisono-devices-of-rayjobs",
            _ray_job(1),
            f"spec/rayClusterSpec/{GROUP}/template/spec",
        ),
        ("unisono-devices-of-pods", {"metadata": {}, "spec": {"containers": []}}, "spec"),
    ],
)
def test_claims_of_devices_get_a_warning(name: str, job: Json, pod: str) -> None:
    def passes(obj: Json) -> bool:
        return all(run(one["expression"], obj) for one in WARNS[name]["validations"])

    assert passes(job)
    assert not passes(poked_at(job, f"{pod}/resourceClaims", CLAIMS))


def test_a_warning_refuses_nothing() -> None:
    bindings = [
        one["spec"]
        for one in validating("unisono-system")
        if one["kind"].endswith("Binding") and one["spec"]["policyName"] in WARNS
    ]
    assert len(bindings) == len(WARNS) > 10
    assert {tuple(one["validationActions"]) for one in bindings} == {("Warn",)}
