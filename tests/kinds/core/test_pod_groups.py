"""Which group a pod is of, which of its pods are alike, and pods that stand for themselves."""

from __future__ import annotations

import pytest

from tests.support.manifests import ReadJob, job, read
from unisono.kinds.core.pod_groups import (
    MEMBERS,
    GroupLink,
    alike,
    group_link,
    set_of_pods,
    task_of,
)
from unisono.kinds.core.schema import Pod


def linked_pod(meta: str = "", spec: str = "") -> Pod:
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
    found = group_link(linked_pod(meta, spec))
    assert found == link
    assert found.workload == workload


def test_the_first_link_counts() -> None:
    both = f", labels: {{{LABEL}}}, annotations: {{{ANNOTATION}}}"
    found = group_link(linked_pod(both))
    assert found is not None
    assert found.kind == "PodGroup.scheduling.x-k8s.io"
    found = group_link(linked_pod(both, UPSTREAM + OLD))
    assert found is not None
    assert found.kind == "PodGroup.scheduling.k8s.io"


def test_most_pods_have_none() -> None:
    assert group_link(linked_pod()) is None
    assert group_link(linked_pod(spec=", schedulingGroup: {}")) is None


def test_tasks() -> None:
    assert task_of(linked_pod()) == ""
    assert task_of(linked_pod(", annotations: {volcano.sh/task-spec: worker}")) == "worker"
    assert task_of(linked_pod(", labels: {volcano.sh/task-spec: worker}")) == "worker"


def pod_like(name: str, labels: str = "", spec: str = "", cpu: int = 1) -> Pod:
    made: Pod = read(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"
        f"spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]{spec}}}\n"
    )
    return made


def names(groups: list[list[Pod]]) -> list[list[str]]:
    return [[pod.metadata.name for pod in group] for group in groups]


AWAY = (
    ", affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
    " [{topologyKey: rack, labelSelector: {matchLabels: {role: boss}}}]}}"
)


def test_pods_that_ask_for_the_same_are_alike() -> None:
    pods = [
        pod_like("a"),
        pod_like("b", cpu=2),
        pod_like("c"),
        pod_like("d", spec=", nodeSelector: {zone: a}"),
    ]
    assert names(alike(pods)) == [["a", "c"], ["b"], ["d"]]


def test_a_host_port_makes_a_difference_and_a_container_port_none() -> None:
    def listening(name: str, port: str) -> Pod:
        made: Pod = read(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
            f"spec: {{containers: [{{name: c, ports: [{{{port}}}]}}]}}\n"
        )
        return made

    pods = [
        listening("a", "containerPort: 1"),
        listening("b", "containerPort: 2"),
        listening("c", "containerPort: 1, hostPort: 1"),
    ]
    assert names(alike(pods)) == [["a", "b"], ["c"]]


def test_labels_count_only_where_a_rule_looks_at_them() -> None:
    plain = [pod_like("a", "role: boss, index: '0'"), pod_like("b", "role: worker, index: '1'")]
    assert names(alike(plain)) == [["a", "b"]]
    assert names(alike(plain, keys=["index"])) == [["a"], ["b"]]
    ruled = [pod_like("a", "role: boss", AWAY), pod_like("b", "role: worker", AWAY)]
    assert names(alike(ruled)) == [["a"], ["b"]]


def test_pods_can_be_kept_apart() -> None:
    pods = [pod_like("a"), pod_like("b"), pod_like("c")]
    assert names(alike(pods, apart=lambda one: one.metadata.name == "b")) == [["a", "c"], ["b"]]


def test_a_set_has_the_labels_that_all_of_its_pods_have() -> None:
    pods = [pod_like("a", "app: x, index: '0'"), pod_like("b", "app: x, index: '1', more: z")]
    made = set_of_pods(pods, "main", 2)
    assert made.template.metadata.labels == {"app": "x"}
    assert (made.name, made.count, made.path) == ("main", 2, "")
    assert set_of_pods(pods[:1], "main", 1).template.metadata.labels == {"app": "x", "index": "0"}


COUNT = "kueue.x-k8s.io/pod-group-total-count"


def pod(
    name: str,
    *,
    group: str = "ring",
    total: str = "3",
    queue: str = "main",
    cpu: str = "1",
    phase: str = "Pending",
    annotations: str = "",
) -> str:
    lines = [f"{COUNT}: '{total}'" if total else "", annotations]
    labels = [
        f"kueue.x-k8s.io/pod-group-name: {group}" if group else "",
        f"kueue.x-k8s.io/queue-name: {queue}" if queue else "",
    ]
    return f"""
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{{", ".join(filter(None, labels))}}}
  annotations: {{{", ".join(filter(None, lines))}}}
spec:
  containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]
status: {{phase: {phase}}}
"""


def group(*pods: str) -> ReadJob:
    return job("---".join(pods))


def test_which_pods_belong_to_which_workload() -> None:
    assert MEMBERS.workload(read(pod("a"))) == "ring"
    assert MEMBERS.workload(read(pod("a", group="", total=""))) == "pod-a"
    assert MEMBERS.workload(read(pod("a", group="", total="", queue=""))) == ""


def test_a_single_pod() -> None:
    made = job(pod("a", group="", total="", cpu="2"))
    assert made.counts == {"main": 1}
    assert made.requests("main") == {"cpu": 2000}
    assert not made.is_finished
    assert job(pod("a", group="", total="", phase="Failed")).is_finished


def test_pods_that_ask_for_the_same_are_one_set() -> None:
    made = group(pod("a"), pod("b", cpu="8"), pod("c"))
    assert made.counts == {"a": 2, "b": 1}
    assert made.requests("b") == {"cpu": 8000}
    assert made.problems == []


def test_a_role_hash_names_the_set() -> None:
    role = "kueue.x-k8s.io/role-hash: worker"
    made = group(*(pod(name, annotations=role, cpu=cpu) for name, cpu in ("a1", "b2", "c3")))
    assert made.counts == {"worker": 3}


def test_a_group_waits_for_its_pods() -> None:
    made = group(pod("a"), pod("b"))
    assert made.counts == {"a": 2}
    assert made.misconfigured == ["2 of the 3 pods of the group exist"]


def test_fast_admission_does_not_wait() -> None:
    fast = "kueue.x-k8s.io/pod-group-fast-admission: 'true'"
    made = group(pod("a", annotations=fast))
    assert made.counts == {"a": 3}
    assert made.misconfigured == []


def test_failed_pods_are_replaced() -> None:
    made = group(pod("a", phase="Failed"), pod("b"), pod("c"), pod("d"))
    assert made.counts == {"b": 3}


def test_succeeded_pods_give_their_quota_back() -> None:
    made = group(pod("a", phase="Succeeded"), pod("b"), pod("c", cpu="2", phase="Succeeded"))
    assert made.reclaimable == (("a", 1), ("c", 1))
    assert not made.is_finished


def test_when_a_group_is_over() -> None:
    done = [pod(name, phase="Succeeded") for name in "abc"]
    assert group(*done).is_finished
    final = "kueue.x-k8s.io/retriable-in-group: 'false'"
    failed = pod("c", phase="Failed")
    assert not group(*done[:2], failed).is_finished
    assert group(*done[:2], pod("c", phase="Failed", annotations=final)).is_finished


def test_pods_of_a_group_must_agree() -> None:
    made = group(pod("a"), pod("b", total="4"), pod("c", queue="other"))
    assert made.pod_sets == ()
    assert made.problems == [
        ("metadata", 'the pods of the group disagree about the total count: "3", "4"'),
        ("metadata", 'the pods of the group disagree about the queue: "main", "other"'),
    ]


def test_a_group_has_no_more_pods_than_it_says() -> None:
    made = group(*(pod(name) for name in "abcd"))
    assert made.problems == [(f"metadata.annotations[{COUNT}]", "is 3; the group has 4 pods")]


def test_the_total_count_is_a_number() -> None:
    wrong = job(pod("a", total="many"))
    assert (f"metadata.annotations[{COUNT}]", '"many" must be a number of pods, at least 1') in (
        wrong.problems
    )
    missing = job(pod("a", total=""))
    assert (
        f"metadata.annotations[{COUNT}]",
        "is required for a pod of a group (ring)",
    ) in missing.problems


def test_paths_of_a_pods_own_faults() -> None:
    made = job(pod("a", group="", total="", cpu="-1"))
    assert made.problems == [
        ("spec.containers[0].resources.requests[cpu]", "is -1; it must not be negative")
    ]
