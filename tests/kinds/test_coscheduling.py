"""scheduling.x-k8s.io/v1alpha1 PodGroup and the pods with its label."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, sound, world

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n"


def group(spec: str = "minMember: 4", namespace: str = "default") -> str:
    return (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n"
        f"metadata: {{name: train, namespace: {namespace}}}\nspec: {{{spec}}}\n"
    )


def pods(
    count: int, namespace: str = "default", *, name: str = "w", cpu: int = 1, meta: str = ""
) -> str:
    return "---\n".join(
        "apiVersion: v1\nkind: Pod\n"
        f"metadata: {{name: {name}{number}, namespace: {namespace},"
        f" labels: {{scheduling.x-k8s.io/pod-group: train}}{meta}}}\n"
        f"spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n"
        for number in range(count)
    )


def test_pods_with_the_label_are_one_gang() -> None:
    (made,) = sound(NODE, group(), pods(4)).snapshot.waiting
    assert made.key == "default/podgroup-train"
    assert [(one.name, one.count, one.min_count) for one in made.pod_sets] == [("main", 4, None)]
    assert (made.min_total, made.misconfigured) == (None, "")


def test_a_gang_may_have_more_pods_than_it_needs() -> None:
    (made,) = sound(NODE, group(), pods(6)).snapshot.waiting
    assert [(one.count, one.min_count) for one in made.pod_sets] == [(6, 4)]
    assert made.min_total == 4


def test_pods_of_two_templates_are_two_sets() -> None:
    (made,) = sound(NODE, group(), pods(1, name="boss", cpu=2), pods(4)).snapshot.waiting
    assert {one.name: (one.count, one.min_count) for one in made.pod_sets} == {
        "boss0": (1, 0),
        "w0": (4, 3),
    }
    assert made.min_total == 4


def test_scenario_28_a_group_is_known_in_its_own_namespace_only() -> None:
    made = sound(NODE, *(text for ns in ("a", "b") for text in (group(namespace=ns), pods(2, ns))))
    assert {one.key: one.misconfigured for one in made.snapshot.waiting} == {
        "a/podgroup-train": "2 of 4 pods exist",
        "b/podgroup-train": "2 of 4 pods exist",
    }


def test_pods_whose_group_is_missing_wait_for_it() -> None:
    (made,) = sound(NODE, pods(2)).snapshot.waiting
    assert made.misconfigured == 'there is no PodGroup "train"'
    assert made.key == "default/podgroup-train"
    assert sum(one.count for one in made.pod_sets) == 2


def test_a_group_without_pods_is_no_workload() -> None:
    made = sound(NODE, group())
    assert made.snapshot.waiting == ()
    assert made.unmanaged == ()


def test_failed_and_leaving_pods_are_gone_and_done_ones_have_done_their_part() -> None:
    def ended(name: str, phase: str) -> str:
        return pods(1, name=name) + f"status: {{phase: {phase}}}\n"

    leaving = pods(1, name="l", meta=", deletionTimestamp: '2026-01-01T00:00:00Z'")
    texts = (pods(3), ended("f", "Failed"), ended("s", "Succeeded"), leaving)
    (made,) = sound(NODE, group(), *texts).snapshot.waiting
    assert made.misconfigured == ""
    assert [(one.count, one.min_count) for one in made.pod_sets] == [(4, None)]
    assert made.reclaimable == (("main", 1),)
    over = sound(NODE, group("minMember: 1"), ended("f", "Failed"), ended("s", "Succeeded"))
    assert over.snapshot.waiting == ()


def test_the_queue_label_may_be_on_the_group_or_on_its_pods() -> None:
    queues = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: q}\n"
        "spec: {namespaceSelector: {}}\n---\n"
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq}\n"
        "spec: {clusterQueue: q}\n"
    )
    label = "kueue.x-k8s.io/queue-name: lq"
    on_group = group().replace("namespace: default", f"namespace: default, labels: {{{label}}}")
    on_pods = pods(4).replace("labels: {", f"labels: {{{label}, ")
    for texts in ((on_group, pods(4)), (group(), on_pods)):
        (made,) = sound(queues, *texts).snapshot.waiting
        assert (made.key, made.queue) == ("default/podgroup-train", "default/lq")
    missing = world(queues, on_group.replace(": lq", ": gone"), pods(4))
    assert [(one.file, one.path) for one in missing.warnings] == [
        ("2.yaml", "metadata.labels[kueue.x-k8s.io/queue-name]")
    ]


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ("", "minMember", "is required"),
        ("minMember: 0", "minMember", "is 0; it must be at least 1"),
        (
            "minMember: 1, minResources: {cpu: -1}",
            "minResources[cpu]",
            "is -1; it must not be negative",
        ),
        (
            "minMember: 1, scheduleTimeoutSeconds: 1m",
            "scheduleTimeoutSeconds",
            'must be an integer, not the string "1m"',
        ),
    ],
)
def test_faults(spec: str, path: str, message: str) -> None:
    assert problems(group(spec)) == [(f"spec.{path}", message)]


def test_what_a_cluster_wrote_is_accepted() -> None:
    status = (
        "status: {phase: Running, running: 4, occupiedBy: x, scheduleStartTime: null, new: 1}\n"
    )
    text = group("minMember: 4, minResources: {cpu: 4}, scheduleTimeoutSeconds: 10") + status
    assert problems(text) == []
