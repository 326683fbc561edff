"""Namespaces, nodes, limit ranges, priority and runtime classes as documents."""

from __future__ import annotations

from tests.support.manifests import check, read

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: gpu-1
  labels: {topology.kubernetes.io/zone: a}
spec:
  podCIDR: 10.0.0.0/24
  podCIDRs: [10.0.0.0/24]
  providerID: aws:///a/i-1
  unschedulable: true
  taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule, timeAdded: null}]
status:
  addresses: [{type: InternalIP, address: 10.0.0.1}]
  allocatable: {cpu: 191500m, memory: 1500Gi, nvidia.com/gpu: "8", pods: "110"}
  capacity: {cpu: 192, memory: 1536Gi, nvidia.com/gpu: "8", pods: "110"}
  conditions:
  - type: Ready
    status: "True"
    lastHeartbeatTime: "2026-01-01T00:00:00Z"
    lastTransitionTime: "2026-01-01T00:00:00Z"
    reason: KubeletReady
    message: ok
  daemonEndpoints: {kubeletEndpoint: {Port: 10250}}
  features: {supplementalGroupsPolicy: true}
  images: [{names: [a], sizeBytes: 1}]
  nodeInfo: {architecture: amd64}
  runtimeHandlers: []
  volumesAttached: []
  volumesInUse: []
"""


def test_a_node_as_kubectl_prints_it() -> None:
    node = read(NODE)
    assert node.status.allocatable["cpu"].milli == 191_500
    assert node.spec.taints[0].effect == "NoSchedule"
    assert node.status.conditions[0].is_true
    assert check(NODE) == []


def test_faults_of_a_node() -> None:
    text = NODE.replace("191500m", "-1").replace("taints: [", "taints: [{key: a, effect: Never}, ")
    assert check(text) == [
        (
            "spec.taints[0].effect",
            'must be one of "NoExecute", "NoSchedule", "PreferNoSchedule", not the string "Never"',
        )
    ]
    assert check(NODE.replace("191500m", "-1")) == [
        ("status.allocatable[cpu]", "is -1; it must not be negative")
    ]
    taint = "{key: nvidia.com/gpu, effect: NoSchedule}"
    assert check(NODE.replace("taints: [", f"taints: [{taint}, ")) == [
        ("spec.taints[1]", "nvidia.com/gpu:NoSchedule is there twice")
    ]


def test_a_namespace() -> None:
    text = """
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {team: a}}
spec: {finalizers: [kubernetes]}
status: {phase: Active}
"""
    assert read(text).metadata.labels == {"team": "a"}


def test_a_priority_class() -> None:
    text = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
globalDefault: true
description: for what cannot wait
preemptionPolicy: PreemptLowerPriority
"""
    assert read(text).global_default is True
    assert check(text.replace("1000", "3000000000")) == [
        ("value", "is 3000000000; it must be at most 2147483647")
    ]
    assert check(text.replace("value: 1000", "")) == [("value", "is required")]


def test_a_runtime_class() -> None:
    text = """
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m}}
scheduling: {nodeSelector: {runtime: kata}, tolerations: [{operator: Exists}]}
"""
    assert read(text).overhead.pod_fixed["cpu"].milli == 250
