"""scheduling.volcano.sh/v1beta1 PodGroup and the pods that name it."""

from __future__ import annotations

import pytest

from tests.support.manifests import problems, sound
from unisono.engine.model.workload import TopologyRequest, Workload

TIER = "unisono.dev/hypernode-tier-"
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n0}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf}
spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: n0}}}]}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: spine}
spec: {tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: leaf}}}]}
"""


def group(spec: str) -> str:
    return (
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: pg}\n"
        f"spec: {{{spec}}}\n"
    )


def pods(task: str, count: int, *, cpu: int = 1, labels: str = "") -> str:
    return "---\n".join(
        "apiVersion: v1\nkind: Pod\n"
        f"metadata: {{name: {task}-{number}, labels: {{{labels}}}, annotations:"
        f" {{scheduling.k8s.io/group-name: pg, volcano.sh/task-spec: {task}}}}}\n"
        f"spec: {{schedulerName: volcano, containers: [{{name: c, resources: {{requests:"
        f" {{cpu: {cpu}}}}}}}]}}\n"
        for number in range(count)
    )


def workload(spec: str, *texts: str) -> Workload:
    (made,) = sound(CLUSTER, group(spec), *texts).snapshot.waiting
    assert made.key == "default/podgroup-pg"
    return made


def minima(made: Workload) -> dict[str, tuple[int, int | None]]:
    return {one.name: (one.count, one.min_count) for one in made.pod_sets}


def test_scenario_7_the_minima_of_tasks_count_unless_they_exceed_the_gang() -> None:
    tasks = "minTaskMember: {a: 3, b: 3}"
    loose = workload(f"minMember: 4, {tasks}", pods("a", 3), pods("b", 3))
    assert loose.min_total == 4
    # One of each follows from four of three and three.
    assert minima(loose) == {"a": (3, 1), "b": (3, 1)}
    assert loose.misconfigured == ""
    tight = workload(f"minMember: 6, {tasks}", pods("a", 3), pods("b", 3))
    assert (tight.min_total, tight.misconfigured) == (None, "")
    assert minima(tight) == {"a": (3, None), "b": (3, None)}
    uneven = workload(f"minMember: 6, {tasks}", pods("a", 4), pods("b", 2))
    assert uneven.misconfigured == "2 of 3 pods of task b exist"


def test_a_task_may_have_more_pods_than_it_needs() -> None:
    made = workload("minMember: 3, minTaskMember: {a: 1, b: 2}", pods("a", 2), pods("b", 4))
    assert made.min_total == 3
    assert minima(made) == {"a": (2, 1), "b": (4, 2)}


def test_too_few_pods_can_never_start() -> None:
    made = workload("minMember: 4", pods("a", 2))
    assert made.misconfigured == "2 of 4 pods exist"


def test_the_class_of_the_group_gives_the_priority() -> None:
    high = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\n"
    )
    assert workload("minMember: 1, priorityClassName: high", pods("a", 1), high).priority == 7


def test_pods_of_a_group_of_none_start_one_by_one() -> None:
    made = sound(CLUSTER, group("minResources: {cpu: 4}"), pods("a", 2)).snapshot
    assert [one.key for one in made.waiting] == ["default/pod-a-0", "default/pod-a-1"]


def test_the_other_annotation_names_a_group_as_well() -> None:
    other = pods("a", 1).replace("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
    assert workload("minMember: 1", other).pod_sets[0].count == 1


# ---- topology ------------------------------------------------------------------------------------


def test_the_network_topology_is_everybodys() -> None:
    wish = "minMember: 2, networkTopology: {mode: hard, highestTierAllowed: 1}"
    made = workload(wish, pods("a", 1), pods("b", 1))
    assert [(one.topology, one.group) for one in made.pod_sets] == [
        (TopologyRequest("required", TIER + "1"), "podgroup-pg"),
        (TopologyRequest("required", TIER + "1"), "podgroup-pg"),
    ]
    (single,) = workload(wish, pods("a", 2)).pod_sets
    assert (single.topology, single.group) == (TopologyRequest("required", TIER + "1"), "")


def test_scenario_27_hard_without_a_tier() -> None:
    made = sound(CLUSTER, group("minMember: 1, networkTopology: {mode: hard}"), pods("a", 1))
    (waiting,) = made.snapshot.waiting
    assert waiting.pod_sets[0].topology == TopologyRequest("preferred", TIER + "1")
    assert [(one.code, one.path) for one in made.warnings] == [
        ("NetworkTopologyWithoutTier", "spec.networkTopology")
    ]


BLOCKS = (
    "subGroupPolicy: [{name: shards, labelSelector: {matchLabels: {role: w}},"
    " matchLabelKeys: [shard], subGroupSize: 2, minSubGroups: 2,"
    " networkTopology: {mode: hard, highestTierAllowed: 1}}]"
)


def test_sub_groups_are_blocks_of_pods() -> None:
    workers = (pods("w", 6, labels="role: w, shard: x"), pods("boss", 1))
    made = workload(f"minMember: 1, {BLOCKS}", *workers)
    assert minima(made) == {"w": (6, 4), "boss": (1, 0)}
    assert made.min_total == 1
    topologies = {one.name: one.topology for one in made.pod_sets}
    assert topologies == {
        "w": TopologyRequest("preferred", TIER + "1", TIER + "1", 2),
        "boss": None,
    }
    wide = f"minMember: 1, networkTopology: {{mode: hard, highestTierAllowed: 2}}, {BLOCKS}"
    topologies = {one.name: one.topology for one in workload(wide, *workers).pod_sets}
    assert topologies == {
        "w": TopologyRequest("required", TIER + "2", TIER + "1", 2),
        "boss": TopologyRequest("required", TIER + "2"),
    }


def test_blocks_that_are_not_there_can_never_start() -> None:
    made = workload(f"minMember: 1, {BLOCKS}", pods("w", 3, labels="role: w, shard: x"))
    assert made.misconfigured == "3 of 4 pods of sub-group policy shards exist"


def test_pods_that_do_not_say_their_block_are_in_none() -> None:
    made = workload(f"minMember: 1, {BLOCKS}", pods("w", 4, labels="role: w"))
    assert made.misconfigured == "0 of 4 pods of sub-group policy shards exist"


def test_a_block_of_different_pods_is_not_held_together() -> None:
    labels = "role: w, shard: x"
    made = sound(
        CLUSTER,
        group(f"minMember: 1, {BLOCKS}"),
        pods("w", 2, labels=labels),
        pods("v", 2, cpu=2, labels=labels),
    )
    assert [(one.code, one.path) for one in made.warnings] == [
        ("FieldIgnored", "spec.subGroupPolicy[0].networkTopology")
    ]
    assert [one.topology for one in made.snapshot.waiting[0].pod_sets] == [None, None]


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ("minMember: -1", "minMember", "is -1; it must be at least 0"),
        ("minTaskMember: {a: x}", "minTaskMember[a]", 'must be an integer, not the string "x"'),
        ("minResources: {cpu: -1}", "minResources[cpu]", "is -1; it must not be negative"),
        (
            "networkTopology: {highestTierAllowed: 1, highestTierName: rack}",
            "networkTopology.highestTierName",
            "and highestTierAllowed exclude each other",
        ),
        ("networkTopology: {mode: strict}", "networkTopology.mode", 'must be one of "", "hard"'),
        (
            "subGroupPolicy: [{subGroupSize: 0}]",
            "subGroupPolicy[0].subGroupSize",
            "is 0; it must be at least 1",
        ),
        (
            "subGroupPolicy: [{labelSelector: {matchLabels: {-: x}}}]",
            "subGroupPolicy[0].labelSelector.matchLabels[-]",
            '"-" is not a valid key',
        ),
        ("minMembers: 3", "minMembers", 'unknown field; did you mean "minMember"?'),
    ],
)
def test_faults(spec: str, path: str, message: str) -> None:
    ((found, said),) = problems(group(spec))
    assert found == f"spec.{path}"
    assert said.startswith(message)
