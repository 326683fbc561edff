"""kubeflow.org: PyTorchJob and its relatives."""

from __future__ import annotations

import pytest

from tests.support.manifests import job


def replica(type_: str, cpu: int, replicas: int | None = None, more: str = "") -> str:
    count = "" if replicas is None else f"replicas: {replicas}, "
    pod = f"{{{more}containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"
    return f"    {type_}: {{{count}restartPolicy: OnFailure, template: {{spec: {pod}}}}}\n"


def manifest(kind: str, field: str, *replicas: str, version: str = "v1", more: str = "") -> str:
    return f"""
apiVersion: kubeflow.org/{version}
kind: {kind}
metadata: {{name: train}}
spec:
  {more}
  {field}:
{"".join(replicas)}"""


@pytest.mark.parametrize(
    ("kind", "field", "version", "types", "names"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "v1", ["Worker", "Master"], ["master", "worker"]),
        (
            "TFJob",
            "tfReplicaSpecs",
            "v1",
            ["Evaluator", "Worker", "PS", "Chief"],
            ["chief", "ps", "worker", "evaluator"],
        ),
        ("XGBoostJob", "xgbReplicaSpecs", "v1", ["Worker", "Master"], ["master", "worker"]),
        ("JAXJob", "jaxReplicaSpecs", "v1", ["Worker"], ["worker"]),
        ("MPIJob", "mpiReplicaSpecs", "v1", ["Worker", "Launcher"], ["launcher", "worker"]),
        ("MPIJob", "mpiReplicaSpecs", "v2beta1", ["Worker", "Launcher"], ["launcher", "worker"]),
    ],
)
def test_sets_are_in_the_operators_order(
    kind: str, field: str, version: str, types: list[str], names: list[str]
) -> None:
    made = job(manifest(kind, field, *(replica(type_, 1) for type_ in types), version=version))
    assert made.problems == []
    assert list(made.counts) == names


def test_counts_and_requests() -> None:
    made = job(
        manifest("PyTorchJob", "pytorchReplicaSpecs", replica("Master", 2), replica("worker", 4, 3))
    )
    assert made.counts == {"master": 1, "worker": 3}
    assert made.requests("worker") == {"cpu": 4000}


def test_priority_classes() -> None:
    worker = replica("Worker", 1, more="priorityClassName: pods, ")
    plain = manifest("PyTorchJob", "pytorchReplicaSpecs", replica("Master", 1), worker)
    assert job(plain).priority_class == "pods"
    policy = "runPolicy: {suspend: true, schedulingPolicy: {priorityClass: job, minAvailable: 2}}"
    own = manifest("PyTorchJob", "pytorchReplicaSpecs", worker, more=policy)
    assert job(own).priority_class == "job"


def test_finished() -> None:
    text = manifest("PyTorchJob", "pytorchReplicaSpecs", replica("Worker", 1))
    assert not job(text).is_finished
    done = '{type: Succeeded, status: "True", lastUpdateTime: "2026-01-01T00:00:00Z"}'
    assert job(f"{text}status: {{conditions: [{done}]}}\n").is_finished


def test_faults() -> None:
    unknown = manifest("PyTorchJob", "pytorchReplicaSpecs", replica("Wroker", 1))
    assert job(unknown).problems == [
        (
            "spec.pytorchReplicaSpecs[Wroker]",
            'unknown replica type; did you mean "Worker"?',
        )
    ]
    empty = manifest("PyTorchJob", "pytorchReplicaSpecs", "    {}\n")
    assert job(empty).problems == [
        ("spec.pytorchReplicaSpecs", "is required: there is nothing to run")
    ]
    negative = manifest("MPIJob", "mpiReplicaSpecs", replica("Worker", -1))
    assert job(negative).problems == [
        (
            "spec.mpiReplicaSpecs[Worker].template.spec.containers[0].resources.requests[cpu]",
            "is -1; it must not be negative",
        )
    ]
