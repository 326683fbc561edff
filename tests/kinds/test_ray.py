"""ray.io/v1 RayCluster and RayJob."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.manifests import job
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.ray import WorkerGroup, workers

MI = 2**20
SPEC = """
rayVersion: 2.9.0
headGroupSpec:
  serviceType: ClusterIP
  enableIngress: false
  rayStartParams: {dashboard-host: 0.0.0.0, block: "true"}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: ray-head
        image: rayproject/ray
        resources: {requests: {cpu: 2, memory: 8G}, limits: {cpu: 2, memory: 8G}}
workerGroupSpecs:
- groupName: Small-Group
  replicas: 2
  minReplicas: 2
  maxReplicas: 4
  rayStartParams: {block: "true"}
  template:
    spec:
      priorityClassName: low
      containers:
      - name: worker
        resources: {limits: {cpu: 4, memory: 8G, nvidia.com/gpu: 2}}
"""


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else "" for line in text.splitlines())


CLUSTER = f"""
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: raycluster-prod
  labels:
    kueue.x-k8s.io/queue-name: local-queue
    kueue.x-k8s.io/priority-class: prod-priority
spec:{indented(SPEC, 2)}
"""
JOB = f"""
apiVersion: ray.io/v1
kind: RayJob
metadata: {{name: tune}}
spec:
  entrypoint: python tune.py
  shutdownAfterJobFinishes: true
  rayClusterSpec:{indented(SPEC, 4)}
"""


def test_head_and_groups() -> None:
    made = job(CLUSTER)
    assert made.problems == []
    assert made.counts == {"head": 1, "small-group": 2}
    assert made.requests("head") == {"cpu": 2000, "memory": 8 * 10**9}
    assert made.requests("small-group") == {
        "cpu": 4000,
        "memory": 8 * 10**9,
        "nvidia.com/gpu": 2,
    }
    assert made.priority_class == "low"
    assert not made.is_finished


@pytest.mark.parametrize(
    ("fields", "pods"),
    [
        ({}, 0),
        ({"replicas": 3}, 3),
        ({"replicas": 3, "num_of_hosts": 4}, 12),
        ({"replicas": 3, "num_of_hosts": 0}, 3),
        ({"replicas": 1, "min_replicas": 2}, 2),
        ({"replicas": 9, "max_replicas": 5}, 5),
        ({"replicas": 3, "suspend": True}, 0),
    ],
)
def test_how_many_workers_a_group_has(fields: dict[str, Any], pods: int) -> None:
    group = WorkerGroup(group_name="g", template=PodTemplateSpec(), **fields)
    assert workers(group) == pods


def test_a_group_without_workers_wants_nothing() -> None:
    text = CLUSTER.replace("replicas: 2\n", "replicas: 0\n").replace(
        "minReplicas: 2", "minReplicas: 0"
    )
    assert job(text).counts == {"head": 1}


def test_the_autoscaler_stands_beside_the_head() -> None:
    text = CLUSTER.replace("  rayVersion:", "  enableInTreeAutoscaling: true\n  rayVersion:")
    assert job(text).requests("head") == {"cpu": 2500, "memory": 8 * 10**9 + 512 * MI}
    own = "  autoscalerOptions: {resources: {requests: {cpu: 1}}}\n  rayVersion:"
    assert job(text.replace("  rayVersion:", own)).requests("head") == {
        "cpu": 3000,
        "memory": 8 * 10**9,
    }


def test_a_ray_job_has_a_submitter() -> None:
    made = job(JOB)
    assert made.problems == []
    assert made.counts == {"head": 1, "small-group": 2, "submitter": 1}
    assert made.requests("submitter") == {"cpu": 500, "memory": 200 * MI}
    container = "{name: s, resources: {requests: {cpu: 1}}}"
    own = f"  submitterPodTemplate: {{spec: {{containers: [{container}]}}}}\n"
    assert job(JOB + own).requests("submitter") == {"cpu": 1000}


def test_a_submitter_may_be_a_sidecar_or_absent() -> None:
    sidecar = job(JOB + "  submissionMode: SidecarMode\n")
    assert sidecar.counts == {"head": 1, "small-group": 2}
    assert sidecar.requests("head") == {"cpu": 2500, "memory": 8 * 10**9 + 200 * MI}
    assert job(JOB + "  submissionMode: HTTPMode\n").counts == {"head": 1, "small-group": 2}


def test_a_job_on_an_existing_cluster_wants_nothing() -> None:
    made = job(JOB + "  clusterSelector: {ray.io/cluster: shared}\n")
    assert made.pod_sets == ()
    assert made.problems == []
    assert made.warnings == [("NotManaged", "spec.clusterSelector")]


def test_finished_ray_jobs() -> None:
    assert not job(JOB + "status: {jobDeploymentStatus: Running}\n").is_finished
    assert job(JOB + "status: {jobDeploymentStatus: Failed, jobStatus: FAILED}\n").is_finished


@pytest.mark.parametrize(
    ("before", "after", "path", "message"),
    [
        (
            "maxReplicas: 4",
            "maxReplicas: 1",
            "spec.workerGroupSpecs[0].minReplicas",
            "is 2; maxReplicas is 1",
        ),
        (
            "groupName: Small-Group",
            "groupName: head",
            "spec.workerGroupSpecs[0].template",
            'the name "head" is already used by spec.headGroupSpec.template',
        ),
        (
            "  replicas: 2",
            "  replica: 2",
            "spec.workerGroupSpecs[0].replica",
            'unknown field; did you mean "replicas"?',
        ),
    ],
)
def test_faults(before: str, after: str, path: str, message: str) -> None:
    assert job(CLUSTER.replace(before, after, 1)).problems == [(path, message)]


def test_a_cluster_has_a_head() -> None:
    text = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: x}\nspec: {}\n"
    assert job(text).problems == [("spec.headGroupSpec", "is required")]
    no_cluster = "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: x}\nspec: {}\n"
    assert job(no_cluster).problems == [
        ("spec.rayClusterSpec", "is required unless there is a clusterSelector")
    ]
