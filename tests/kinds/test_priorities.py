"""Where a priority comes from (spec quota §3, scenario 70)."""

from __future__ import annotations

import pytest

from tests.support.manifests import sound
from unisono.kinds.snapshot.build import World

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


def workload_class(name: str, value: int) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: WorkloadPriorityClass\n"
        f"metadata: {{name: {name}}}\nvalue: {value}\n"
    )


def pod_class(name: str, value: int, *, is_default: bool = False) -> str:
    return (
        f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\n"
        f"value: {value}\nglobalDefault: {str(is_default).lower()}\n"
    )


def job(label: str = "", pod: str = "") -> str:
    labels = "kueue.x-k8s.io/queue-name: lq"
    labels += f", kueue.x-k8s.io/priority-class: {label}" if label else ""
    return (
        f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j, labels: {{{labels}}}}}\n"
        f"spec: {{template: {{spec: {{restartPolicy: Never, priorityClassName: '{pod}',"
        " containers: [{name: c}]}}}\n"
    )


def priority(made: World) -> int:
    (workload,) = made.snapshot.waiting
    return workload.priority


PROD, LOW = workload_class("prod", 1000), pod_class("low", 10)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((job("prod", "low"), PROD, LOW), 1000),  # the label wins over the pods
        ((job("", "low"), PROD, LOW), 10),
        ((job(), PROD, LOW), 0),
        ((job(), pod_class("a", 7, is_default=True), pod_class("b", 5, is_default=True)), 5),
        ((job("", "low"), LOW, pod_class("a", 7, is_default=True)), 10),
        ((job(), workload_class("default", 3), pod_class("a", 7, is_default=True)), 3),
        ((job("", "low"), LOW, workload_class("default", 3)), 3),
        ((job("prod"), PROD, workload_class("default", 3)), 1000),
        ((job("", "system-node-critical"),), 2_000_001_000),
        ((job("", "system-cluster-critical"),), 2_000_000_000),
    ],
)
def test_which_priority_class_decides(texts: tuple[str, ...], expected: int) -> None:
    made = sound(QUEUES, *texts)
    assert priority(made) == expected
    assert made.warnings == ()


@pytest.mark.parametrize(
    ("text", "path"),
    [(job("gone"), "metadata.labels[kueue.x-k8s.io/priority-class]"), (job("", "gone"), "spec")],
)
def test_a_class_that_does_not_exist_counts_as_0(text: str, path: str) -> None:
    made = sound(QUEUES, text, pod_class("a", 7, is_default=True))
    assert priority(made) == 0
    assert [(one.code, one.path) for one in made.warnings] == [
        ("WorkloadPriorityClassNotFound", path)
    ]


def test_in_strict_mode_there_is_no_workload_to_admit() -> None:
    policy = "apiVersion: unisono.dev/v1\nkind: Policy\ncompat: {strict: true}\n"
    made = sound(QUEUES, job("gone"), policy)
    (workload,) = made.snapshot.waiting
    assert workload.misconfigured == 'there is no WorkloadPriorityClass "gone"'


def workload(priority: str) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Workload\nmetadata: {name: w}\n"
        f"spec: {{queueName: lq, {priority} podSets:"
        " [{template: {spec: {containers: [{name: c}]}}}]}\n"
    )


@pytest.mark.parametrize(
    ("written", "expected", "codes"),
    [
        ("", 0, []),
        ("priority: 5,", 5, []),
        ("priority: 5, priorityClassName: prod,", 5, []),  # a class edited later changes nothing
        ("priorityClassName: prod,", 1000, []),
        (
            "priorityClassName: low, priorityClassSource: scheduling.k8s.io/priorityclass,",
            10,
            [],
        ),
        ("priorityClassName: gone,", 0, ["WorkloadPriorityClassNotFound"]),
    ],
)
def test_a_workload_says_its_priority_itself(written: str, expected: int, codes: list[str]) -> None:
    made = sound(QUEUES, PROD, LOW, workload(written))
    assert priority(made) == expected
    assert [one.code for one in made.warnings] == codes
