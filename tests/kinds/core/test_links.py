"""Which group a pod says that it belongs to."""

from __future__ import annotations

import pytest

from tests.support.manifests import read
from unisono.kinds.core.links import GroupLink, group_link, task_of
from unisono.kinds.core.schema import Pod


def pod(meta: str = "", spec: str = "") -> Pod:
    made: Pod = read(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p0{meta}}}\n"
        f"spec: {{containers: [{{name: c}}]{spec}}}\n"
    )
    return made


UPSTREAM = ", schedulingGroup: {podGroupName: g}"
OLD = ", workloadRef: {name: w, podGroup: g}"
LABEL = "scheduling.x-k8s.io/pod-group: g"
ANNOTATION = "scheduling.k8s.io/group-name: g"


@pytest.mark.parametrize(
    ("meta", "spec", "link", "workload"),
    [
        ("", UPSTREAM, GroupLink("PodGroup.scheduling.k8s.io", "g"), "podgroup-g"),
        ("", OLD, GroupLink("Workload.scheduling.k8s.io", "w", "g"), "workload-w-g"),
        (
            "",
            ", workloadRef: {name: w, podGroup: g, podGroupReplicaKey: r}",
            GroupLink("Workload.scheduling.k8s.io", "w", "g", "r"),
            "workload-w-g-r",
        ),
        (
            f", labels: {{{LABEL}}}",
            "",
            GroupLink("PodGroup.scheduling.x-k8s.io", "g"),
            "podgroup-g",
        ),
        (
            f", annotations: {{{ANNOTATION}}}",
            "",
            GroupLink("PodGroup.scheduling.volcano.sh", "g"),
            "podgroup-g",
        ),
        (
            ", annotations: {scheduling.volcano.sh/group-name: g}",
            "",
            GroupLink("PodGroup.scheduling.volcano.sh", "g"),
            "podgroup-g",
        ),
    ],
)
def test_every_api_has_its_own_link(meta: str, spec: str, link: GroupLink, workload: str) -> None:
    found = group_link(pod(meta, spec))
    assert found == link
    assert found.workload == workload


def test_the_first_link_counts() -> None:
    both = f", labels: {{{LABEL}}}, annotations: {{{ANNOTATION}}}"
    found = group_link(pod(both))
    assert found is not None
    assert found.kind == "PodGroup.scheduling.x-k8s.io"
    found = group_link(pod(both, UPSTREAM + OLD))
    assert found is not None
    assert found.kind == "PodGroup.scheduling.k8s.io"


def test_most_pods_have_none() -> None:
    assert group_link(pod()) is None
    assert group_link(pod(spec=", schedulingGroup: {}")) is None


def test_tasks() -> None:
    assert task_of(pod()) == ""
    assert task_of(pod(", annotations: {volcano.sh/task-spec: worker}")) == "worker"
    assert task_of(pod(", labels: {volcano.sh/task-spec: worker}")) == "worker"
