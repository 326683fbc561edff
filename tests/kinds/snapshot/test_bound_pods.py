"""Jobs that run although no Workload says so."""

from __future__ import annotations

import pytest

from tests.support.manifests import sound
from unisono.engine.model.workload import AdmittedWorkload

CLUSTER = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: a100}
spec: {nodeLabels: {gpu: a100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec: {nodeLabels: {gpu: h100}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: a100, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}
    - {name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq}
spec: {clusterQueue: q}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {gpu: h100}}
"""
CONTAINERS = "containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]"
JOB = (
    "apiVersion: batch/v1\nkind: Job\n"
    "metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
    f"spec: {{parallelism: 2, template: {{spec: {{restartPolicy: Never, {CONTAINERS}}}}}}}\n"
)
OWNER = "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j}]"
LABEL = "labels: {batch.kubernetes.io/job-name: j}"


def pod(
    name: str = "p",
    meta: str = OWNER,
    spec: str = "nodeName: n1",
    status: str = "phase: Running, startTime: '1970-01-01T00:00:09Z'",
) -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {meta}}}\n"
        f"spec: {{{spec}, {CONTAINERS}}}\nstatus: {{{status}}}\n"
    )


def admitted(*texts: str) -> AdmittedWorkload:
    snapshot = sound(CLUSTER, JOB, *texts).snapshot
    assert snapshot.waiting == ()
    (made,) = snapshot.admitted_workloads
    return made


@pytest.mark.parametrize("meta", [OWNER, LABEL, "labels: {job-name: j}"])
def test_a_job_with_bound_pods_holds_the_quota_of_its_queue(meta: str) -> None:
    made = admitted(pod(meta=meta))
    assert made.workload.key == "default/job-j"
    assert made.admission.queue == "q"
    (assignment,) = made.admission.pod_sets
    assert (assignment.name, assignment.count) == ("main", 2)
    assert assignment.flavors == (("nvidia.com/gpu", "h100"),)
    assert made.reserved_at == 9000
    assert not made.evicting


def test_without_its_node_the_pods_selector_tells_the_flavor() -> None:
    bound = pod(spec="nodeName: unknown, nodeSelector: {gpu: h100}")
    assert admitted(bound).admission.pod_sets[0].flavors[0][1] == "h100"
    assert admitted(pod(spec="nodeName: unknown")).admission.pod_sets[0].flavors[0][1] == "a100"


@pytest.mark.parametrize(
    "text",
    [
        pod(spec="nodeName: ''"),
        pod(status="phase: Succeeded"),
        pod(status="phase: Failed"),
        pod(meta="labels: {job-name: other}"),
    ],
)
def test_other_pods_say_nothing(text: str) -> None:
    snapshot = sound(CLUSTER, JOB, text).snapshot
    assert snapshot.admitted_workloads == ()
    assert len(snapshot.waiting) == 1


def test_pods_that_are_all_being_deleted_mean_that_it_leaves() -> None:
    going = pod(meta=f"{OWNER}, deletionTimestamp: '1970-01-01T00:00:10Z'")
    assert admitted(going).evicting
    assert not admitted(going, pod("r")).evicting


def test_owners_are_followed_upwards() -> None:
    job_set = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: s, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
        "spec: {replicatedJobs: [{name: r, template: {spec: {template: {spec:"
        f" {{{CONTAINERS}}}}}}}}}}}]}}\n"
    )
    child = JOB.replace(
        "metadata: {name: j, ",
        "metadata: {name: j, ownerReferences:"
        " [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: s}], ",
    )
    snapshot = sound(CLUSTER, job_set, child, pod()).snapshot
    assert [one.workload.key for one in snapshot.admitted_workloads] == ["default/jobset-s"]
    by_label = pod(meta="labels: {jobset.sigs.k8s.io/jobset-name: s}")
    snapshot = sound(CLUSTER, job_set, by_label).snapshot
    assert [one.workload.key for one in snapshot.admitted_workloads] == ["default/jobset-s"]


def test_a_single_pod_of_ours_may_be_bound_itself() -> None:
    bound = pod(meta="labels: {kueue.x-k8s.io/queue-name: lq}")
    snapshot = sound(CLUSTER, bound).snapshot
    assert [one.workload.key for one in snapshot.admitted_workloads] == ["default/pod-p"]
