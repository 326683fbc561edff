"""What Kubernetes refuses in a pod."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.kinds.core.schema import PodSpec, PodTemplateSpec
from unisono.kinds.core.validate import check_pod_spec, check_pod_template
from unisono.kinds.decode import decode

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERMS = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"


def faults(raw: dict[str, Any]) -> list[tuple[str, str]]:
    spec, problems = decode(PodSpec, raw)
    assert spec is not None, problems
    return [(one.path, one.message) for one in check_pod_spec(spec, "spec")]


def one_container(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c"}]} | more


def clause(**raw: Any) -> dict[str, Any]:
    affinity = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k"} | raw]}]}}
    return one_container(affinity={"nodeAffinity": affinity})


def test_a_plain_pod_is_accepted() -> None:
    assert faults(one_container()) == []


def test_a_pod_has_containers_with_names_of_their_own() -> None:
    assert faults({}) == [("spec.containers", "is required: a pod needs at least one container")]
    twice = {"containers": [{"name": "c"}, {"name": "c"}]}
    assert faults(twice) == [("spec.containers[1].name", '"c" is used twice')]


def test_amounts_are_not_negative() -> None:
    raw = one_container(
        initContainers=[{"name": "i", "resources": {"requests": {"cpu": "-1"}}}],
        overhead={"memory": "-1Gi"},
        resources={"limits": {"cpu": -2}},
    )
    assert faults(raw) == [
        (
            "spec.initContainers[0].resources.requests[cpu]",
            "is -1; it must not be negative",
        ),
        ("spec.resources.limits[cpu]", "is -2; it must not be negative"),
        ("spec.overhead[memory]", "is -1Gi; it must not be negative"),
    ]


def test_only_some_resources_can_be_set_for_a_whole_pod() -> None:
    raw = one_container(resources={"requests": {"hugepages-2Mi": "2Mi", "nvidia.com/gpu": 1}})
    ((path, message),) = faults(raw)
    assert path == "spec.resources.requests[nvidia.com/gpu]"
    assert message == "only cpu, memory and hugepages can be set for a whole pod"


def test_tolerations_make_sense() -> None:
    raw = one_container(tolerations=[{"value": "x"}, {"operator": "Exists", "value": "x"}])
    assert faults(raw) == [
        ("spec.tolerations[0].operator", "must be Exists when key is empty"),
        ("spec.tolerations[1].value", "must be empty when operator is Exists"),
    ]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"operator": "In"}, "In needs at least one value"),
        ({"operator": "Exists", "values": ["a"]}, "must be empty for Exists"),
        ({"operator": "Gt", "values": ["1", "2"]}, "Gt needs exactly one value"),
    ],
)
def test_affinity_clauses_make_sense(raw: dict[str, Any], message: str) -> None:
    assert faults(clause(**raw)) == [(f"{TERMS}[0].matchExpressions[0].values", message)]


def test_right_affinity_clauses_are_accepted() -> None:
    assert faults(clause(operator="Lt", values=["5"])) == []
    assert faults(clause(operator="DoesNotExist")) == []


def test_required_affinity_has_terms() -> None:
    raw = one_container(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}})
    assert faults(raw) == [(TERMS, "is required: there must be at least one term")]


def test_only_a_nodes_name_can_be_matched_as_a_field() -> None:
    fields = [
        {"key": "spec.x", "operator": "In", "values": ["a"]},
        {"key": "metadata.name", "operator": "Exists"},
        {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
    ]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    assert faults(one_container(affinity={"nodeAffinity": {REQUIRED: terms}})) == [
        (f"{TERMS}[0].matchFields[0].key", "only metadata.name can be matched"),
        (f"{TERMS}[0].matchFields[1].operator", "must be In or NotIn"),
        (f"{TERMS}[0].matchFields[2].values", "needs exactly one value"),
    ]


def test_a_template_is_checked_with_its_annotations() -> None:
    raw = {
        "metadata": {"annotations": {"kueue.x-k8s.io/podset-unconstrained-topology": "yes"}},
        "spec": one_container(),
    }
    template, problems = decode(PodTemplateSpec, raw)
    assert template is not None, problems
    (fault,) = check_pod_template(template, "spec.template")
    assert fault.path.startswith("spec.template.metadata.annotations[")


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pods_near(kind: str = "podAffinity", **term: Any) -> dict[str, Any]:
    return one_container(affinity={kind: {REQUIRED: [{"topologyKey": "rack"} | term]}})


def test_preferred_node_affinity_is_checked_like_required() -> None:
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "In"}]}}
    raw = one_container(affinity={"nodeAffinity": {PREFERRED: [term]}})
    at = f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].values"
    assert faults(raw) == [(at, "In needs at least one value")]


def test_a_weight_is_at_most_a_hundred() -> None:
    raw = {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101}]}}}
    _, problems = decode(PodSpec, raw)
    assert [one.path for one in problems] == [f"affinity.nodeAffinity.{PREFERRED}[0].weight"]


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    ("term", "path", "message"),
    [
        ({"topologyKey": ""}, "topologyKey", "must be the key of a node label"),
        (
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "labelSelector.matchExpressions[0].values",
            "In needs at least one value",
        ),
        (
            {"namespaceSelector": {"matchLabels": {"a": "-"}}},
            "namespaceSelector.matchLabels[a]",
            '"-" is not a valid label value',
        ),
        ({"matchLabelKeys": ["a"]}, "matchLabelKeys", "needs a labelSelector beside it"),
        ({"mismatchLabelKeys": ["a"]}, "mismatchLabelKeys", "needs a labelSelector beside it"),
        (
            {"labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
            "mismatchLabelKeys",
            '"a" stands in matchLabelKeys as well; no pod can match',
        ),
    ],
)
def test_terms_about_pods(kind: str, term: dict[str, Any], path: str, message: str) -> None:
    ((found, said),) = faults(pods_near(kind, **term))
    assert found == f"spec.affinity.{kind}.{REQUIRED}[0].{path}"
    assert said.startswith(message)
    liked = {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "rack"} | term}]}
    ((found, _),) = faults(one_container(affinity={kind: liked}))
    assert found == f"spec.affinity.{kind}.{PREFERRED}[0].podAffinityTerm.{path}"


@pytest.mark.parametrize(
    ("constraint", "path", "message"),
    [
        ({"topologyKey": "a b"}, "[0].topologyKey", "must be the key of a node label"),
        ({"matchLabelKeys": ["a"]}, "[0].matchLabelKeys", "needs a labelSelector beside it"),
        (
            {"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"},
            "[0].minDomains",
            "needs whenUnsatisfiable: DoNotSchedule",
        ),
        (
            {"labelSelector": {"matchLabels": {"-": "a"}}},
            "[0].labelSelector.matchLabels[-]",
            '"-" is not a valid key',
        ),
    ],
)
def test_spread_constraints(constraint: dict[str, Any], path: str, message: str) -> None:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ((found, said),) = faults(one_container(topologySpreadConstraints=[base | constraint]))
    assert found == f"spec.topologySpreadConstraints{path}"
    assert said.startswith(message)
    ((found, _),) = faults(one_container(topologySpreadConstraints=[base, base]))
    assert found == "spec.topologySpreadConstraints[1].topologyKey"


def test_on_the_hosts_network_a_port_is_the_hosts() -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}]
    raw = {"hostNetwork": True, "containers": [{"name": "c", "ports": ports}]}
    assert faults(raw) == [
        (
            "spec.containers[0].ports[0].hostPort",
            "is 8080; with hostNetwork it must be the containerPort, 80",
        )
    ]
    assert faults(raw | {"hostNetwork": False}) == []
