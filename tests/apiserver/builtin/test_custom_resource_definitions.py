"""CustomResourceDefinitions."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import created, refusals
from unisono.apiserver.objects import Json

KEY = "apiextensions.k8s.io/customresourcedefinitions"
SCHEMA = "spec.versions[0].schema.openAPIV3Schema"


def crd(
    schema: Json | None = None,
    *,
    name: str = "foos.ex.io",
    version: Json | None = None,
    **spec: Any,
) -> Json:
    first = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"} if schema is None else schema},
        **(version or {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "foos", "kind": "Foo"},
            "versions": [first],
            **spec,
        },
    }


def with_fields(**properties: Json) -> Json:
    return crd({"type": "object", "properties": properties})


def test_a_kind_is_established_at_once() -> None:
    made = created(KEY, crd())
    names = {"plural": "foos", "kind": "Foo", "singular": "foo", "listKind": "FooList"}
    assert made["spec"]["names"] == names
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["status"]["acceptedNames"] == names
    assert made["status"]["storedVersions"] == ["v1"]
    holding = {one["type"]: one["status"] for one in made["status"]["conditions"]}
    assert holding == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_versions_that_were_stored_once_are_remembered() -> None:
    old = created(KEY, crd())
    new = deepcopy(old)
    second = {**deepcopy(new["spec"]["versions"][0]), "name": "v2"}
    new["spec"]["versions"][0]["storage"] = False
    new["spec"]["versions"].append(second)
    assert refusals(KEY, new, old) == []
    assert new["status"]["storedVersions"] == ["v1", "v2"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (crd(name="foo.ex.io"), [("Invalid", "metadata.name")]),
        (crd(version={"schema": None}), [("Required", SCHEMA)]),
        (crd(version={"storage": False}), [("Invalid", "spec.versions")]),
        (crd(versions=[]), [("Invalid", "spec.versions")]),
        (crd(version={"name": "1"}), [("Invalid", "spec.versions[0].name")]),
        (crd(name="foos.ex", group="ex"), [("Invalid", "spec.group")]),
        (crd(scope="X"), [("NotSupported", "spec.scope")]),
        (
            crd(name="foos.a.k8s.io", group="a.k8s.io"),
            [("Required", "metadata.annotations[api-approved.kubernetes.io]")],
        ),
        (crd(name="foos.a.x-k8s.io", group="a.x-k8s.io"), []),
        (crd(preserveUnknownFields=True), [("Invalid", "spec.preserveUnknownFields")]),
        (crd(conversion={"strategy": "Webhook"}), [("Forbidden", "spec.conversion.strategy")]),
        (
            crd(version={"additionalPrinterColumns": [{"name": "", "type": "foo"}]}),
            [
                ("Required", "spec.versions[0].additionalPrinterColumns[0].name"),
                ("Required", "spec.versions[0].additionalPrinterColumns[0].jsonPath"),
                ("NotSupported", "spec.versions[0].additionalPrinterColumns[0].type"),
            ],
        ),
        (
            crd(version={"subresources": {"scale": {"specReplicasPath": ".x"}}}),
            [
                ("Invalid", "spec.versions[0].subresources.scale.specReplicasPath"),
                ("Required", "spec.versions[0].subresources.scale.statusReplicasPath"),
            ],
        ),
        (
            crd(names={"plural": "FOO", "kind": "Foo_", "listKind": "Foo_", "shortNames": ["A B"]}),
            [
                ("Invalid", "spec.names.plural"),
                ("Invalid", "spec.names.singular"),
                ("Invalid", "spec.names.kind"),
                ("Invalid", "spec.names.listKind"),
                ("Invalid", "spec.names.shortNames[0]"),
                ("Invalid", "spec.names.listKind"),
                ("Invalid", "metadata.name"),
            ],
        ),
    ],
)
def test_a_definition(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals(KEY, made) == expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (with_fields(spec={"type": "object", "properties": {"a": {"type": "string"}}}), []),
        (with_fields(a={"x-kubernetes-int-or-string": True}), []),
        (with_fields(a={"x-kubernetes-preserve-unknown-fields": True}), []),
        (with_fields(a={}), [("Required", f"{SCHEMA}.properties[a].type")]),
        (with_fields(a={"type": "array"}), [("Required", f"{SCHEMA}.properties[a].items")]),
        (with_fields(a={"type": "foo"}), [("NotSupported", f"{SCHEMA}.properties[a].type")]),
        (
            with_fields(a={"type": "object", "$ref": "#/x"}),
            [("Forbidden", f"{SCHEMA}.properties[a].$ref")],
        ),
        (
            with_fields(
                a={
                    "type": "object",
                    "properties": {"x": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            ),
            [("Forbidden", f"{SCHEMA}.properties[a].additionalProperties")],
        ),
        (
            with_fields(
                a={"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}
            ),
            [("Required", f"{SCHEMA}.properties[a].x-kubernetes-list-map-keys")],
        ),
        (
            with_fields(metadata={"type": "object", "maxProperties": 3}),
            [("Forbidden", f"{SCHEMA}.properties[metadata]")],
        ),
    ],
)
def test_a_schema(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals(KEY, made) == expected


def test_a_schema_may_not_go_on_for_ever() -> None:
    schema: Json = {"type": "object"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    assert len(refusals(KEY, crd(schema))) == 1


def test_upstream_definitions_of_what_we_implement_may_have_their_webhook() -> None:
    made = crd(name="workloads.kueue.x-k8s.io", conversion={"strategy": "Webhook"})
    made["spec"].update(group="kueue.x-k8s.io", names={"plural": "workloads", "kind": "Workload"})
    assert refusals(KEY, made) == []


def test_where_objects_are_stored_stays() -> None:
    old = created(KEY, crd())
    new = deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Bar"
    assert refusals(KEY, new, old) == [("Invalid", "spec.scope"), ("Invalid", "spec.names.kind")]
