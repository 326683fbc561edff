"""ResourceFlavor, Topology, AdmissionCheck, WorkloadPriorityClass."""

from __future__ import annotations

import pytest

from tests.support.manifests import only, problems, warnings
from unisono.engine.model.queue import Flavor
from unisono.engine.model.selection import Taint, Toleration
from unisono.kinds.kueue.flavors import check_of, flavor_of


def flavor(spec: str, version: str = "v1beta2") -> str:
    return (
        f"apiVersion: kueue.x-k8s.io/{version}\nkind: ResourceFlavor\n"
        f"metadata: {{name: f}}\nspec: {spec}\n"
    )


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_flavor_becomes_an_engine_flavor(version: str) -> None:
    made = flavor_of(
        only(
            flavor(
                "{nodeLabels: {b: x, a: w}, topologyName: t,"
                " nodeTaints: [{key: gpu, value: only, effect: NoSchedule}],"
                " tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]}",
                version,
            )
        )
    )
    assert made == Flavor(
        name=made.name,
        node_labels=(("a", "w"), ("b", "x")),
        node_taints=(Taint("gpu", "only", "NoSchedule"),),
        tolerations=(Toleration("gpu", "Exists", "", "NoSchedule"),),
        topology="t",
    )
    assert made.name == "f"


def test_an_empty_flavor_is_fine() -> None:
    assert problems(flavor("{}")) == warnings(flavor("{}")) == []
    assert problems(flavor("")) == []


def test_node_selector_is_an_alias_of_node_labels() -> None:
    text = flavor("{nodeSelector: {nodeType: nvidia}}")
    assert problems(text) == []
    assert warnings(text) == [("NodeSelectorAlias", "spec.nodeSelector")]
    assert flavor_of(only(text)).node_labels == (("nodeType", "nvidia"),)


def test_the_alias_may_stand_beside_the_same_labels_but_not_beside_others() -> None:
    assert problems(flavor("{nodeSelector: {a: b}, nodeLabels: {a: b}}")) == []
    ((path, message),) = problems(flavor("{nodeSelector: {a: b}, nodeLabels: {a: c}}"))
    assert path == "spec.nodeSelector"
    assert "contradicts nodeLabels" in message


def test_strict_mode_does_not_know_the_alias() -> None:
    assert problems(flavor("{nodeSelector: {a: b}}"), strict=True) == [
        ("spec.nodeSelector", 'unknown field; did you mean "nodeLabels"?')
    ]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("{nodeLabels: {" + ", ".join(f"k{n}: v" for n in range(9)) + "}}", "spec.nodeLabels"),
        ("{nodeLabels: {'bad key': v}}", "spec.nodeLabels[bad key]"),
        ("{nodeSelector: {k: 'bad value'}}", "spec.nodeSelector[k]"),
        (
            "{nodeTaints: [" + "{key: k, effect: NoSchedule}, " * 9 + "]}",
            "spec.nodeTaints",
        ),
        ("{nodeTaints: [{key: k, effect: Never}]}", "spec.nodeTaints[0].effect"),
        ("{nodeTaints: [{key: 'a b', effect: NoSchedule}]}", "spec.nodeTaints[0].key"),
        ("{tolerations: [" + "{operator: Exists}, " * 9 + "]}", "spec.tolerations"),
        ("{tolerations: [{key: '', value: x}]}", "spec.tolerations[0].operator"),
        ("{tolerations: [{key: k, operator: Exists, value: x}]}", "spec.tolerations[0].value"),
        ("{topologyName: t}", "spec.topologyName"),
        ("{nodeLabel: {a: b}}", "spec.nodeLabel"),
        ("[]", "spec"),
    ],
)
def test_what_is_refused(spec: str, path: str) -> None:
    assert [found for found, _ in problems(flavor(spec))] == [path]


def topology(*levels: str) -> str:
    listed = ", ".join(f"{{nodeLabel: {level}}}" for level in levels)
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\n"
        f"metadata: {{name: t}}\nspec: {{levels: [{listed}]}}\n"
    )


def test_levels_of_a_topology() -> None:
    assert problems(topology("block", "rack", "kubernetes.io/hostname")) == []
    assert problems(topology()) == [("spec.levels", "has 0 items; at least 1 are needed")]
    assert problems(topology(*(f"l{n}" for n in range(17)))) == [
        ("spec.levels", "has 17 items; at most 16 are allowed")
    ]
    assert problems(topology("kubernetes.io/hostname", "rack")) == [
        ("spec.levels[0].nodeLabel", "kubernetes.io/hostname can only be the last level")
    ]
    assert problems(topology("rack", "rack")) == [
        ("spec.levels[1].nodeLabel", '"rack" stands twice')
    ]
    assert [path for path, _ in problems(topology("'a b'"))] == ["spec.levels[0].nodeLabel"]


def admission_check(status: str) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: AdmissionCheck\nmetadata: {name: c}\n"
        "spec: {controllerName: x.dev/y, retryDelayMinutes: 5,"
        " parameters: {apiGroup: g, kind: k, name: other}}\n"
        f"status: {status}\n"
    )


@pytest.mark.parametrize(
    ("status", "active"),
    [
        ("{}", True),
        ("{conditions: [{type: Active, status: 'True'}], newer: 1}", True),
        ("{conditions: [{type: Active, status: 'False'}]}", False),
        ("{conditions: [{type: Other, status: 'False'}]}", True),
    ],
)
def test_a_check_is_active_unless_its_controller_denies_it(status: str, active: bool) -> None:
    made = check_of(only(admission_check(status)))
    assert made.name == "c"
    assert made.active is active


def test_a_field_that_went_with_v1beta1() -> None:
    text = admission_check("{}")
    assert problems(text) == []
    assert [path for path, _ in problems(text.replace("v1beta1", "v1beta2"))] == [
        "spec.retryDelayMinutes"
    ]


def priority_class(value: str) -> str:
    return (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: WorkloadPriorityClass\n"
        f"metadata: {{name: p}}\n{value}\ndescription: d\n"
    )


def test_priority_values_are_32_bits() -> None:
    assert only(priority_class("value: -2147483648")).value == -(2**31)
    assert problems(priority_class("value: 2147483648")) == [
        ("value", "is 2147483648; it must be at most 2147483647")
    ]
    assert problems(priority_class("")) == [("value", "is required")]
