"""Kubernetes' own groups of pods, in every version that it had."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, sound
from unisono.engine.model.workload import TopologyRequest, Workload

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n0}\n"


def pod(name: str, spec: str, cpu: int = 1) -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\n"
        f"spec: {{{spec}, containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\n"
    )


def pods(count: int, group: str = "g", name: str = "p", cpu: int = 1) -> str:
    link = f"schedulingGroup: {{podGroupName: {group}}}"
    return "---\n".join(pod(f"{name}{number}", link, cpu) for number in range(count))


def group(policy: str = "gang: {minCount: 4}", more: str = "", version: str = "v1beta1") -> str:
    return (
        f"apiVersion: scheduling.k8s.io/{version}\nkind: PodGroup\nmetadata: {{name: g}}\n"
        f"spec: {{schedulingPolicy: {{{policy}}}{more}}}\n"
    )


def only(*texts: str) -> Workload:
    (made,) = sound(NODE, *texts).snapshot.waiting
    return made


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_scenario_29_a_gang_of_minimum_count(version: str) -> None:
    made = only(group(version=version), pods(6))
    assert made.key == "default/podgroup-g"
    assert made.min_total == 4
    assert [(one.name, one.count, one.min_count) for one in made.pod_sets] == [("main", 6, 4)]


def test_pods_of_a_gang_that_is_not_complete() -> None:
    assert only(group(), pods(3)).misconfigured == "3 of 4 pods exist"
    assert only(pods(3)).misconfigured == 'there is no PodGroup "g"'


@pytest.mark.parametrize(
    ("version", "constraint"),
    [
        ("v1alpha2", "topologyConstraints: [{topologyKey: rack}]"),
        ("v1alpha3", "topology: [{key: rack}]"),
        ("v1beta1", "topology: [{key: rack}]"),
    ],
)
def test_a_topology_key_holds_all_pods_together(version: str, constraint: str) -> None:
    text = group(more=f", schedulingConstraints: {{{constraint}}}", version=version)
    (single,) = only(text, pods(4)).pod_sets
    assert (single.topology, single.group) == (TopologyRequest("required", "rack"), "")
    made = only(text, pods(3), pods(1, name="boss", cpu=2))
    assert [(one.topology, one.group) for one in made.pod_sets] == [
        (TopologyRequest("required", "rack"), "podgroup-g"),
        (TopologyRequest("required", "rack"), "podgroup-g"),
    ]


def test_the_priority_is_the_groups() -> None:
    high = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\n"
    )
    assert only(group(more=", priorityClassName: high"), pods(4), high).priority == 7
    # The API server works the number out; it may know classes that we do not.
    known = group(more=", priorityClassName: high, priority: 50")
    assert only(known, pods(4), high).priority == 50


def test_pods_of_a_basic_group_start_one_by_one() -> None:
    ours = pods(2).replace("spec: {", "spec: {schedulerName: unisono, ")
    made = sound(NODE, group("basic: {}"), ours).snapshot
    assert [one.key for one in made.waiting] == ["default/pod-p0", "default/pod-p1"]
    # Unless they have to be in one place.
    rack = group("basic: {}", ", schedulingConstraints: {topology: [{key: rack}]}")
    together = only(rack, ours)
    assert (together.key, together.min_total) == ("default/podgroup-g", 1)


# ---- v1alpha1 ------------------------------------------------------------------------------------

OLD = """
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: job}
spec:
  controllerRef: {apiGroup: batch, kind: Job, name: job}
  podGroups:
  - {name: workers, policy: {gang: {minCount: 2}}}
  - {name: extras, policy: {basic: {}}}
"""


def member(name: str, part: str, key: str = "") -> str:
    replica = f", podGroupReplicaKey: '{key}'" if key else ""
    return pod(
        name,
        f"schedulerName: unisono, workloadRef: {{name: job, podGroup: {part}{replica}}}",
    )


def test_every_replica_of_a_group_is_a_gang() -> None:
    made = sound(
        NODE,
        OLD,
        *(member(f"a{number}", "workers", "0") for number in range(2)),
        *(member(f"b{number}", "workers", "1") for number in range(3)),
        member("c", "workers"),
        member("d", "extras"),
        member("e", "nope"),
    ).snapshot
    assert {one.key: (one.min_total, one.misconfigured) for one in made.waiting} == {
        "default/workload-job-workers-0": (None, ""),
        "default/workload-job-workers-1": (2, ""),
        "default/workload-job-workers": (None, "1 of 2 pods exist"),
        "default/pod-d": (None, ""),
        "default/workload-job-nope": (None, 'Workload "job" has no pod group "nope"'),
    }
    assert len({one.uid for one in made.waiting}) == 5


def test_it_is_not_taken_for_a_workload_of_kueue() -> None:
    made = sound(NODE, OLD)
    assert made.snapshot.waiting == ()
    assert made.warnings == ()


def test_later_versions_hold_templates() -> None:
    for version in ("v1alpha2", "v1alpha3", "v1beta1"):
        text = (
            f"apiVersion: scheduling.k8s.io/{version}\nkind: Workload\nmetadata: {{name: w}}\n"
            "spec: {podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 2}},"
            " disruptionMode: {all: {}}, priorityClassName: high}]}\n"
        )
        assert problems(text) == []


# ---- composite groups ----------------------------------------------------------------------------


def composite(name: str = "all", least: int = 2, parent: str = "", policy: str = "") -> str:
    above = f", parentCompositePodGroupName: {parent}" if parent else ""
    chosen = policy or f"gang: {{minGroupCount: {least}}}"
    return (
        "apiVersion: scheduling.k8s.io/v1alpha3\nkind: CompositePodGroup\n"
        f"metadata: {{name: {name}}}\n"
        f"spec: {{schedulingPolicy: {{{chosen}}}, workloadRef: {{workloadName: w,"
        f" templateName: t}}, priority: 9{above}}}\n"
    )


def part(name: str, least: int, parent: str = "all") -> str:
    more = f", parentCompositePodGroupName: {parent}"
    text = group(f"gang: {{minCount: {least}}}", more, "v1alpha3")
    return text.replace("name: g}", f"name: {name}}}")


PREFILL = (part("prefill", 2), pods(2, "prefill", "x"))
DECODE = (part("decode", 1), pods(3, "decode", "y", 2))


def test_groups_under_a_composite_group_start_together() -> None:
    made = only(composite(), *PREFILL, *DECODE)
    assert made.key == "default/compositepodgroup-all"
    assert {one.name: (one.count, one.min_count) for one in made.pod_sets} == {
        "x0": (2, None),
        "y0": (3, 1),
    }
    assert (made.min_total, made.priority) == (3, 9)


def test_a_composite_group_may_be_below_another() -> None:
    inner = composite("inner", 1, "all")
    made = only(
        composite(least=2), inner, *PREFILL, part("decode", 1, "inner"), pods(3, "decode", "y")
    )
    assert made.key == "default/compositepodgroup-all"
    assert sum(one.count for one in made.pod_sets) == 5


def test_a_composite_group_that_is_not_complete() -> None:
    assert only(composite(least=2), *PREFILL).misconfigured == "1 of 2 pod groups exist"
    loose = sound(NODE, composite(least=1), *PREFILL, *DECODE)
    assert [(one.code, one.path) for one in loose.warnings] == [
        ("FieldIgnored", "spec.schedulingPolicy.gang.minGroupCount")
    ]


def test_a_basic_composite_group_holds_nothing_together() -> None:
    made = sound(NODE, composite(policy="basic: {}"), *PREFILL, *DECODE).snapshot
    assert [one.key for one in made.waiting] == [
        "default/podgroup-prefill",
        "default/podgroup-decode",
    ]


def test_composite_groups_in_a_circle_end_somewhere() -> None:
    made = sound(NODE, composite("all", 1, "b"), composite("b", 1, "all"), *PREFILL).snapshot
    assert len(made.waiting) == 1


# ---- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (group(""), "spec.schedulingPolicy", "needs exactly one of basic and gang"),
        (
            group("gang: {minCount: 1}, basic: {}"),
            "spec.schedulingPolicy",
            "needs exactly one of basic and gang",
        ),
        (group("gang: {}"), "spec.schedulingPolicy.gang.minCount", "is required"),
        (
            group("gang: {minCount: 0}"),
            "spec.schedulingPolicy.gang.minCount",
            "is 0; it must be at least 1",
        ),
        (
            group(more=", schedulingConstraints: {topology: [{key: a}, {key: b}]}"),
            "spec.schedulingConstraints.topology",
            "has 2 items; at most 1 are allowed",
        ),
        (
            group(more=", schedulingConstraints: {topology: [{}]}"),
            "spec.schedulingConstraints.topology[0].key",
            "must be the key of a node label",
        ),
        (OLD.replace("minCount: 2", ""), "spec.podGroups[0].policy.gang.minCount", "is required"),
        (OLD.replace("extras", "workers"), "spec.podGroups[1].name", '"workers" is used twice'),
        (
            OLD + "  podGroupTemplates: [{name: a, schedulingPolicy: {basic: {}}}]\n",
            "spec.podGroupTemplates",
            "and podGroups exclude each other",
        ),
        (
            composite(policy="gang: {minCount: 1}"),
            "spec.schedulingPolicy.gang.minGroupCount",
            "is required",
        ),
        (
            group(version="v1alpha1"),
            "apiVersion",
            "PodGroup is not known in scheduling.k8s.io/v1alpha1; known are",
        ),
    ],
)
def test_faults(text: str, path: str, message: str) -> None:
    ((found, said),) = problems(text)
    assert found == path
    assert said.startswith(message)
