"""Which objects stand for workloads, and under which name."""

from __future__ import annotations

from tests.support.findings import sound
from unisono.kinds.world import World

QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec: {namespaceSelector: {}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq}
spec: {clusterQueue: q}
"""
LABELS = "labels: {kueue.x-k8s.io/queue-name: lq}"
POD_SPEC = "{restartPolicy: Never, containers: [{name: c}]}"


def job(name: str = "j", status: str = "{}") -> str:
    return (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, {LABELS}}}\n"
        f"spec: {{template: {{spec: {POD_SPEC}}}}}\nstatus: {status}\n"
    )


def pod(name: str, group: str = "") -> str:
    more = f", kueue.x-k8s.io/pod-group-name: {group}" if group else ""
    count = ", annotations: {kueue.x-k8s.io/pod-group-total-count: '2'}" if group else ""
    labels = LABELS.replace("}", more + "}")
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, {labels}{count}}}\n"
        f"spec: {POD_SPEC}\n"
    )


def workload(owner: str) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Workload\n"
        f"metadata: {{name: job-j-12345, ownerReferences: [{owner}]}}\n"
        "spec: {queueName: lq, podSets: [{template: {spec: {containers: [{name: c}]}}}]}\n"
    )


def names(made: World) -> list[str]:
    return [one.key for one in made.snapshot.waiting]


def test_jobs_are_named_after_their_kind() -> None:
    assert names(sound(QUEUES, job("b"), job("a"))) == ["default/job-b", "default/job-a"]


def test_two_kinds_of_one_name_do_not_collide() -> None:
    volcano = (
        f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: j, {LABELS}}}\n"
        f"spec: {{tasks: [{{name: t, replicas: 1, template: {{spec: {POD_SPEC}}}}}]}}\n"
    )
    assert names(sound(QUEUES, job(), volcano)) == [
        "default/job-j",
        "default/job.batch.volcano.sh-j",
    ]


def test_pods_of_a_group_are_one_workload() -> None:
    made = sound(QUEUES, pod("a", "g"), pod("single"), pod("b", "g"))
    assert names(made) == ["default/g", "default/pod-single"]
    assert sum(one.count for one in made.snapshot.waiting[0].pod_sets) == 2


def test_a_job_whose_workload_is_given_counts_once() -> None:
    owner = "{apiVersion: batch/v1, kind: Job, name: j}"
    assert names(sound(QUEUES, job(), workload(owner))) == ["default/job-j-12345"]
    other = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: j}"
    assert len(names(sound(QUEUES, job(), workload(other)))) == 2


def test_pods_whose_workload_is_given_count_once() -> None:
    owner = "{apiVersion: v1, kind: Pod, name: b}"
    made = sound(QUEUES, pod("a", "g"), pod("b", "g"), workload(owner))
    assert names(made) == ["default/job-j-12345"]


def test_a_finished_job_is_gone() -> None:
    done = "{conditions: [{type: Complete, status: 'True'}]}"
    made = sound(QUEUES, job(status=done))
    assert names(made) == []
    assert made.unmanaged == ()
