"""Pending workloads and those with quota: order, history, limits of the namespace."""

from __future__ import annotations

from tests.support.manifests import NOW, lines, sound, world
from unisono.engine.cluster import restore
from unisono.engine.dry_run import one_cycle
from unisono.engine.model.names import Instant

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


def job(name: str, meta: str = "", labels: str = "", requests: str = "cpu: 1") -> str:
    return (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}{meta},"
        f" labels: {{kueue.x-k8s.io/queue-name: lq{labels}}}}}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers:"
        f" [{{name: c, resources: {{requests: {{{requests}}}}}}}]}}}}}}\n"
    )


def workload(name: str, status: str = "") -> str:
    return (
        f"apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {{name: {name}}}\n"
        "spec: {queueName: lq, podSets: [{template: {spec: {containers: [{name: c}]}}}]}\n"
        f"status: {{{status}}}\n"
    )


def test_documents_keep_their_order_where_nothing_else_decides() -> None:
    snapshot = sound(QUEUES, job("b"), workload("c"), job("a")).snapshot
    assert [one.key for one in snapshot.waiting] == [
        "default/job-b",
        "default/c",
        "default/job-a",
    ]
    uids = [one.uid for one in snapshot.waiting]
    assert uids == sorted(uids)
    assert {one.created_at for one in snapshot.waiting} == {NOW}


def test_creation_times_and_uids_are_taken_over() -> None:
    meta = ", uid: u-1, creationTimestamp: '1970-01-01T00:00:03Z'"
    (made,) = sound(QUEUES, job("a", meta)).snapshot.waiting
    assert (made.created_at, made.uid) == (3000, "u-1")


def test_a_job_may_be_gated_and_limited_in_time() -> None:
    meta = ", annotations: {kueue.x-k8s.io/admission-gated-by: boss}"
    labels = ", kueue.x-k8s.io/max-exec-time-seconds: '600'"
    (made,) = sound(QUEUES, job("a", meta, labels)).snapshot.waiting
    assert (made.gated_by, made.max_execution_ms) == ("boss", 600_000)


def test_a_time_limit_must_be_a_number_of_seconds() -> None:
    for value in ("0", "1h", "-5", "99999999999"):
        labels = f", kueue.x-k8s.io/max-exec-time-seconds: '{value}'"
        paths = [problem.path for problem in world(QUEUES, job("a", "", labels)).problems]
        assert "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]" in paths


def test_defaults_of_the_namespace_are_filled_in() -> None:
    limits = (
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\n"
        "spec: {limits: [{type: Container, defaultRequest: {cpu: 250m}, max: {cpu: 2}}]}\n"
    )
    (made,) = sound(QUEUES, limits, job("a", requests="")).snapshot.waiting
    assert made.pod_sets[0].requests == (("cpu", 250),)
    (made,) = sound(QUEUES, limits, job("a", requests="cpu: 3")).snapshot.waiting
    assert "the maximum is 2 cpu" in made.misconfigured


def test_resources_are_counted_as_the_operator_wants() -> None:
    policy = (
        "apiVersion: unisono.dev/v1\nkind: Policy\nresources: {excludeResourcePrefixes: [cpu],"
        " transformations: [{input: mig, strategy: Replace, outputs: {gb: 5Gi}}]}\n"
    )
    (made,) = sound(QUEUES, policy, job("a", requests="cpu: 1, mig: 1")).snapshot.waiting
    assert made.pod_sets[0].requests == (("gb", 5 * 2**30),)


def test_a_reservation_in_a_queue_that_does_not_exist_counts_nowhere() -> None:
    made = sound(QUEUES, workload("w", "admission: {clusterQueue: gone}"), workload("x"))
    assert lines(made.warnings) == [
        '2.yaml: document 1: status.admission.clusterQueue: there is no ClusterQueue "gone"; what'
        " it holds counts nowhere"
    ]
    state = restore(made.snapshot)
    one_cycle(state, Instant(0), checked=True)
    assert "default/x" in state.running


def test_an_admitted_workload_needs_no_local_queue_any_more() -> None:
    queue_only = QUEUES.split("---", maxsplit=1)[0]
    made = sound(queue_only, workload("w", "admission: {clusterQueue: q}"))
    assert len(made.snapshot.admitted_workloads) == 1


def test_a_workload_in_a_missing_queue_waits() -> None:
    made = sound(QUEUES.split("---", maxsplit=1)[0], workload("w"))
    assert lines(made.warnings) == [
        '2.yaml: document 1: spec.queueName: there is no LocalQueue "lq" in namespace default;'
        " it waits"
    ]
    assert len(made.snapshot.waiting) == 1


def test_a_job_that_cannot_be_read_without_another_object_does_not_stop_the_others() -> None:
    train = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
        "metadata: {name: t, labels: {kueue.x-k8s.io/queue-name: lq}}\n"
        "spec: {runtimeRef: {name: none}}\n"
    )
    made = sound(QUEUES, train, workload("w"))
    assert [(one.path, one.code) for one in made.warnings] == [
        ("spec.runtimeRef.name", "ReferenceNotFound")
    ]
    assert len(made.snapshot.waiting) == 1
