"""From templates to pod sets."""

from __future__ import annotations

from tests.support.manifests import FakeContext, read
from unisono.engine.model.names import CPU
from unisono.engine.model.node import HostPort, PodRule, PodSelector, SpreadRule
from unisono.engine.model.selection import LabelSelector, Requirement, Toleration
from unisono.engine.model.workload import PodSet, TopologyRequest, WeightedTerm
from unisono.kinds.core.pod_sets import (
    TemplateSet,
    check_template_sets,
    first_priority_class,
    pod_sets,
)
from unisono.kinds.core.schema import PodTemplateSpec
from unisono.kinds.meta import NOTHING
from unisono.kinds.resource_rules import ResourceRules

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: x
  annotations:
    kueue.x-k8s.io/podset-required-topology: rack
    kueue.x-k8s.io/podset-group-name: pair
spec:
  priorityClassName: high
  runtimeClassName: kata
  nodeSelector: {b: "2", a: "1"}
  tolerations: [{key: gpu, operator: Exists}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]
  containers: [{name: c, resources: {requests: {cpu: 1}}}]
"""
RUNTIME = """
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m}}
"""
LIMITS = """
apiVersion: v1
kind: LimitRange
metadata: {name: small, namespace: NAMESPACE}
spec: {limits: [{type: Container, max: {cpu: 500m}}]}
"""


def template() -> PodTemplateSpec:
    pod = read(POD)
    return PodTemplateSpec(metadata=pod.metadata, spec=pod.spec)


def of(count: int, name: str = "main", min_count: int | None = None) -> TemplateSet:
    return TemplateSet(
        name=name, count=count, min_count=min_count, template=template(), path="spec.template"
    )


def test_everything_of_a_template_arrives() -> None:
    context = FakeContext(others=(read(RUNTIME),))
    assert pod_sets([of(4, min_count=2)], context) == (
        PodSet(
            name="main",
            count=4,
            min_count=2,
            requests=((CPU, 1250),),
            node_selector=(("a", "1"), ("b", "2")),
            affinity=((Requirement("zone", "Exists"),),),
            tolerations=(Toleration("gpu", "Exists"),),
            topology=TopologyRequest("required", "rack"),
            group="pair",
        ),
    )
    assert context.notes.faults == []


NEIGHBOURS = """
apiVersion: v1
kind: Pod
metadata: {name: x, labels: {app: x}}
spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, preference: {matchExpressions: [{key: zone, operator: Exists}]}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: rack, labelSelector: {matchLabels: {job-name: j}}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {}, matchLabelKeys: [job-name]}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor}
  containers: [{name: c, ports: [{containerPort: 1, hostPort: 1}]}]
"""


def test_what_placement_needs_besides() -> None:
    pod = read(NEIGHBOURS)
    one = TemplateSet(
        name="main",
        count=2,
        template=PodTemplateSpec(metadata=pod.metadata, spec=pod.spec),
        path="spec.template",
        labels={"job-name": "j"},
    )
    context = FakeContext()
    (made,) = pod_sets([one], context)
    own = LabelSelector((Requirement("job-name", "In", ("j",)),))
    assert made.preferred == (WeightedTerm(7, (Requirement("zone", "Exists"),)),)
    assert made.labels == (("app", "x"), ("job-name", "j"))
    assert made.host_ports == (HostPort(1),)
    assert made.affinity_to == (PodRule(PodSelector(own), "rack"),)
    assert made.anti_affinity == (PodRule(PodSelector(own), "kubernetes.io/hostname"),)
    assert made.spread == (SpreadRule(selector=PodSelector(NOTHING), topology_key="zone"),)
    assert [(one.code, one.path) for one in context.notes.warnings] == [
        ("FieldIgnored", "spec.template.spec.topologySpreadConstraints[0].nodeTaintsPolicy")
    ]


def test_what_a_pod_takes_of_a_node_is_said_where_quota_counts_otherwise() -> None:
    (same,) = pod_sets([of(1)], FakeContext())
    assert same.node_requests is None
    (made,) = pod_sets([of(1)], FakeContext(rules=ResourceRules(exclude_prefixes=("cpu",))))
    assert made.requests == ()
    assert made.node_requests == ((CPU, 1000),)


def test_a_set_scaled_to_nothing_is_left_out() -> None:
    assert [one.name for one in pod_sets([of(0, "a"), of(1, "b")], FakeContext())] == ["b"]


def test_the_limit_ranges_of_the_namespace_count() -> None:
    context = FakeContext(namespace="team", others=(read(LIMITS.replace("NAMESPACE", "team")),))
    pod_sets([of(1)], context)
    assert context.notes.faults == [
        "resources validation failed: pod set main: container c requests 1 cpu; its limit is 500m"
        " cpu; container c asks for 1 cpu; the maximum is 500m cpu (LimitRange small)"
    ]
    elsewhere = FakeContext(namespace="x", others=(read(LIMITS.replace("NAMESPACE", "team")),))
    pod_sets([of(1)], elsewhere)
    assert elsewhere.notes.faults == []


def test_names_are_used_once() -> None:
    context = FakeContext()
    check_template_sets([of(1), of(1)], context.notes)
    (finding,) = context.notes.problems
    assert finding.message == 'the name "main" is already used by spec.template'


def test_the_first_priority_class_counts() -> None:
    assert first_priority_class([of(1)]) == "high"
    assert first_priority_class([]) == ""
