"""Whole sets of manifests: the ones users have, and the ones that are wrong."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.manifests import NOW, lines, sound, world
from unisono.engine.model.snapshot import Namespace, Snapshot
from unisono.kinds.snapshot.build import read_world

POOLED = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: flavor-gpu-nvidia
spec:
  nodeSelector:
    nodeType: "nvidia"
  tolerations:
  - key: "nvidia.com/gpu"
    operator: "Exists"
    effect: "NoSchedule"
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: flavor-gpu-nvidia-efa
spec:
  nodeSelector:
    nodeType: "nvidia-efa"
  tolerations:
  - key: "nvidia.com/gpu"
    operator: "Exists"
    effect: "NoSchedule"
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: cluster-queue-gpu
spec:
  resourceGroups:
  - flavors:
    - flavor-gpu-nvidia
    - flavor-gpu-nvidia-efa
    resources:
    - name: "nvidia.com/gpu"
      nominalQuota: 100
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata:
  name: default-queue
  namespace: default
spec:
  clusterQueue: cluster-queue-gpu
"""

METERED = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: a100-40gb
spec:
  nodeLabels:
    nvidia.com/gpu.product: "NVIDIA-A100-SXM4-40GB"
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: t4
spec:
  nodeLabels:
    nvidia.com/gpu.product: "Tesla-T4"
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: ml-cluster-queue
spec:
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  resourceGroups:
    - coveredResources: ["cpu", "memory", "nvidia.com/gpu"]
      flavors:
        - name: a100-40gb
          resources:
            - name: "nvidia.com/gpu"
              nominalQuota: 16
              borrowingLimit: 4
            - name: "cpu"
              nominalQuota: 128
            - name: "memory"
              nominalQuota: 512Gi
        - name: t4
          resources:
            - name: "nvidia.com/gpu"
              nominalQuota: 32
  preemption:
    reclaimWithinCohort: Any
    withinClusterQueue: LowerPriority
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata:
  name: ml-team-queue
  namespace: ml-training
spec:
  clusterQueue: ml-cluster-queue
"""

STRICT = "apiVersion: unisono.dev/v1\nkind: Policy\ncompat: {strict: true}\n"


def test_scenario_75_the_pooled_manifest_is_accepted() -> None:
    made = sound(POOLED)
    assert [(one.document, one.code, one.path) for one in made.warnings] == [
        (1, "NodeSelectorAlias", "spec.nodeSelector"),
        (2, "NodeSelectorAlias", "spec.nodeSelector"),
        (3, "PooledGroup", "spec.resourceGroups[0].resources"),
        (3, "MissingNamespaceSelector", "spec.namespaceSelector"),
    ]
    (queue,) = made.snapshot.queues
    (group,) = queue.groups
    assert group.pool is not None
    assert [(quota.resource, quota.nominal) for quota in group.pool] == [("nvidia.com/gpu", 100)]
    assert made.snapshot.flavors[0].node_labels == (("nodeType", "nvidia"),)


def test_scenario_77_the_metered_manifest_is_accepted_with_three_warnings() -> None:
    made = sound(METERED)
    assert sorted(one.code for one in made.warnings) == [
        "LimitWithoutCohort",
        "ResourceOrder",
        "UnmeteredResource",
    ]
    (group,) = made.snapshot.queues[0].groups
    assert [len(flavor.resources) for flavor in group.flavors] == [3, 1]


def test_strict_mode_refuses_both_as_kueue_does() -> None:
    assert [problem.path for problem in world(POOLED, STRICT).problems] == [
        "spec.nodeSelector",
        "spec.nodeSelector",
        "spec.resourceGroups[0].resources",
    ]
    assert len(world(METERED, STRICT).problems) == 3


def test_the_policy_may_stand_anywhere() -> None:
    for texts in ((STRICT, POOLED), (POOLED, STRICT), (POOLED + "---\n" + STRICT,)):
        assert len(world(*texts).problems) == 3


def test_there_is_one_policy() -> None:
    made = world(STRICT, STRICT)
    assert lines(made.problems) == [
        "2.yaml: document 1: kind: there is already a Policy in document 1 of 1.yaml"
    ]
    configuration = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    assert world(STRICT, configuration + "fairSharing: {}\n").problems == ()


def test_namespaces_exist_where_objects_are() -> None:
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: given, labels: {team: a}}\n"
    found = sound(METERED, POOLED.split("---")[3], POOLED.split("---")[2], space)
    label = "kubernetes.io/metadata.name"
    assert found.snapshot.namespaces == (
        Namespace("default", ((label, "default"),)),
        Namespace("given", ((label, "given"), ("team", "a"))),
        Namespace("ml-training", ((label, "ml-training"),)),
    )


def test_everything_else_is_taken_over() -> None:
    found = sound(
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: c}\n",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: t}\n"
        "spec: {levels: [{nodeLabel: rack}]}\n",
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: AdmissionCheck\nmetadata: {name: a}\n"
        "spec: {controllerName: x}\n",
        "apiVersion: unisono.dev/v1\nkind: Policy\nfairSharing: {}\n",
    ).snapshot
    assert [one.name for one in found.cohorts] == ["c"]
    assert [topology.name for topology in found.topologies] == ["t"]
    assert [one.name for one in found.checks] == ["a"]
    assert found.policy.fair_sharing is not None
    assert found.now == NOW


def node(name: str, *, gpus: int = 0, zone: str = "a") -> str:
    devices = f", nvidia.com/gpu: {gpus}" if gpus else ""
    return (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name},"
        f" labels: {{topology.kubernetes.io/zone: {zone}}}}}\n"
        f"status: {{allocatable: {{cpu: 8{devices}}}}}\n"
    )


def test_scenario_6_a_master_without_gpus_and_four_workers() -> None:
    task = (
        "{name: %s, replicas: %d, template: {spec: {restartPolicy: Never, containers: [{name: c,"
        " resources: {limits: {%s}}}]}}}"
    )
    horovod = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: horovod}\n"
        f"spec: {{minAvailable: 5, tasks: [{task % ('master', 1, '')},"
        f" {task % ('worker', 4, 'nvidia.com/gpu: 1')}]}}\n"
    )
    found = sound(node("m"), node("g", gpus=4), horovod).snapshot
    (made,) = found.waiting
    assert made.min_total is None
    assert [(one.name, one.count, one.min_count, one.requests) for one in made.pod_sets] == [
        ("master", 1, None, ()),
        ("worker", 4, None, (("nvidia.com/gpu", 1),)),
    ]
    assert [dict(one.allocatable) for one in found.nodes] == [
        {"cpu": 8000},
        {"cpu": 8000, "nvidia.com/gpu": 4},
    ]


def test_scenario_25_a_zone_is_pinned_by_hand() -> None:
    zones = {"n0": "2a", "n1": "2a", "n2": "2c", "n3": "2c"}
    job = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\n"
        "metadata: {name: t, labels: {kueue.x-k8s.io/queue-name: default-queue}}\n"
        "spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 3, resourcesPerNode:"
        " {limits: {nvidia.com/gpu: 8}}}, podTemplateOverrides: [{targetJobs: [{name: node}],"
        " spec: {nodeSelector: {topology.kubernetes.io/zone: 2a}}}]}\n"
    )
    nodes = [node(name, gpus=8, zone=zone) for name, zone in zones.items()]
    found = sound(POOLED, job, *nodes).snapshot
    (made,) = found.waiting
    (pods,) = made.pod_sets
    assert (pods.count, pods.node_selector) == (3, (("topology.kubernetes.io/zone", "2a"),))
    assert [dict(one.labels)["topology.kubernetes.io/zone"] for one in found.nodes] == [
        *zones.values()
    ]


def test_nothing_is_an_empty_world() -> None:
    made = read_world([], now=NOW)
    assert made.snapshot == Snapshot(now=NOW)
    assert not made.problems
    assert not made.warnings
    assert not made.unmanaged


def test_a_world_is_a_value_that_can_be_written_down() -> None:
    made = sound(POOLED, METERED)
    text = msgspec.json.encode(made.snapshot)
    assert msgspec.json.decode(text, type=Snapshot) == made.snapshot
    assert sound(POOLED, METERED) == made


# ---- bad input: one clear line per problem -------------------------------------------------------

QUEUE = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: q}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            METERED.replace("queueingStrategy", "queuingStrategy"),
            "1.yaml: document 3: spec.queuingStrategy: unknown field;"
            ' did you mean "queueingStrategy"?',
        ),
        (
            METERED.replace("nominalQuota: 128", "nominalQuota: [128]"),
            "1.yaml: document 3: spec.resourceGroups[0].flavors[0].resources[1].nominalQuota:"
            " must be a quantity such as 4, 500m or 64Gi, not a list",
        ),
        (
            METERED.replace("nominalQuota: 32", "nominalQuota: -32"),
            "1.yaml: document 3: spec.resourceGroups[0].flavors[1].resources[0].nominalQuota:"
            " is -32; it cannot be negative",
        ),
        (
            QUEUE.replace("name: q", f"name: {'q' * 300}") + "spec: {namespaceSelector: {}}\n",
            "1.yaml: document 1: metadata.name: has 300 characters; a name has at most 253",
        ),
        (
            QUEUE + "spec: {namespaceSelector: {}, stopPolicy: Maybe}\n",
            '1.yaml: document 1: spec.stopPolicy: must be one of "Hold", "HoldAndDrain", "None",'
            ' not the string "Maybe"',
        ),
        (
            QUEUE + "spec: {namespaceSelector: {}}\nspec: {}\n",
            '1.yaml: document 1: line 5, column 1: key "spec" stands twice in the same mapping',
        ),
    ],
)
def test_one_problem_one_line(text: str, expected: str) -> None:
    assert lines(world(text).problems) == [expected]


def test_large_files_and_bad_bytes() -> None:
    files = [("big.yaml", b"x" * (50 * 2**20)), ("bad.yaml", b"kind: \xff"), ("ok.yaml", b"")]
    assert lines(read_world(files, now=NOW).problems) == [
        "big.yaml: is larger than 16 MiB, the most that is read; split it",
        "bad.yaml: is not UTF-8 text: byte 0xff at offset 6",
    ]


def test_problems_of_all_files_are_found_at_once_in_order() -> None:
    made = world(
        QUEUE + "spec: {nope: 1}\n",
        "kind: Pod\n",
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: P}}\n",
    )
    assert [(one.file, one.path) for one in made.problems] == [
        ("1.yaml", "spec.nope"),
        ("2.yaml", "apiVersion"),
        ("3.yaml", "items[0].metadata.name"),
        ("3.yaml", "items[0].spec.containers"),
    ]


def test_findings_of_one_file_that_is_given_twice_stay_in_order() -> None:
    bad = ("f.yaml", (QUEUE + "spec: {nope: 1}\n").encode())
    assert len(read_world([bad, bad], now=NOW).problems) == 2


@settings(max_examples=60)
@given(st.data())
def test_no_damage_to_a_manifest_makes_it_raise(data: st.DataObject) -> None:
    text = (POOLED + "---" + METERED).encode()
    start = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 30))
    junk = data.draw(
        st.binary(max_size=10) | st.sampled_from([b"&a", b"*a", b"<<", b"[", b"{", b"-"])
    )
    for finding in read_world(
        [("f", text[:start] + junk + text[start + length :])], now=NOW
    ).problems:
        assert "\n" not in finding.line()
