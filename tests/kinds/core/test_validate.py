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
