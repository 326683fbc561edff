"""CustomResourceDefinitions: how a kind comes into being, and how it goes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.conformance.client import Api, Collection, Manifest, eventually
from tests.conformance.widgets import GROUP, define, definition

_ANYTHING: Manifest = {
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
}


@pytest.fixture
def definitions(api: Api) -> Collection:
    return api.of("apiextensions.k8s.io/v1", "customresourcedefinitions")


def _condition(made: Any, kind: str) -> str | None:
    for each in made["status"].get("conditions") or ():
        if each["type"] == kind:
            return str(each["status"])
    return None


def test_a_definition_is_accepted_and_established(api: Api, definitions: Collection) -> None:
    made = define(api, definition("Lamp", scope="Namespaced", version=_ANYTHING))
    assert _condition(made, "NamesAccepted") == "True"
    assert _condition(made, "Established") == "True"
    assert made["status"]["acceptedNames"] == {
        "kind": "Lamp",
        "listKind": "LampList",
        "plural": "lamps",
        "singular": "lamp",
    }
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["spec"]["conversion"] == {"strategy": "None"}


def test_names_have_defaults(api: Api) -> None:
    manifest = definition("Chair", scope="Cluster", version=_ANYTHING)
    manifest["spec"]["names"] = {"kind": "Chair", "plural": "chairs"}
    names = define(api, manifest)["spec"]["names"]
    assert (names["singular"], names["listKind"]) == ("chair", "ChairList")


def test_a_deleted_definition_takes_its_objects_along(api: Api, definitions: Collection) -> None:
    manifest = definition("Table", scope="Cluster", version=_ANYTHING)
    define(api, manifest)
    tables = api.of(f"{GROUP}/v1", "tables")
    table = {"apiVersion": f"{GROUP}/v1", "kind": "Table", "metadata": {"name": "a"}}
    tables.create(table).ok(201)
    definitions.delete(manifest["metadata"]["name"]).ok()
    eventually(lambda: definitions.read(manifest["metadata"]["name"]).code == 404)
    eventually(lambda: tables.list().code == 404)
    define(api, manifest)
    assert tables.names() == []


def test_several_versions(api: Api) -> None:
    manifest = definition("Clock", scope="Cluster", version=_ANYTHING)
    manifest["spec"]["versions"] = [
        {"name": "v1", "served": True, "storage": True, **_ANYTHING},
        {
            "name": "v1beta1",
            "served": True,
            "storage": False,
            "deprecated": True,
            "deprecationWarning": "use v1",
            **_ANYTHING,
        },
        {"name": "v1alpha1", "served": False, "storage": False, **_ANYTHING},
    ]
    define(api, manifest)
    old, new = api.of(f"{GROUP}/v1beta1", "clocks"), api.of(f"{GROUP}/v1", "clocks")
    clock = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Clock", "metadata": {"name": "a"}, "x": 1}
    answer = old.create(clock)
    assert answer.ok(201)["apiVersion"] == f"{GROUP}/v1beta1"
    assert "use v1" in answer.warnings
    got = new.read("a")
    assert (got.ok()["apiVersion"], got.ok()["x"]) == (f"{GROUP}/v1", 1)
    assert got.warnings == []
    assert api.of(f"{GROUP}/v1alpha1", "clocks").list().code == 404


def test_a_new_schema_counts_at_once(api: Api, definitions: Collection) -> None:
    schema: Manifest = {"type": "object", "properties": {"x": {"type": "integer"}}}
    version = {"schema": {"openAPIV3Schema": schema}}
    manifest = definition("Stove", scope="Cluster", version=version)
    define(api, manifest)
    stoves = api.of(f"{GROUP}/v1", "stoves")
    name = manifest["metadata"]["name"]
    stove = {"apiVersion": f"{GROUP}/v1", "kind": "Stove", "metadata": {"name": "a"}, "y": 2}
    assert "y" not in stoves.create(stove).ok(201)
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/y"
    patch = [{"op": "add", "path": path, "value": {"type": "integer", "default": 7}}]
    definitions.patch(name, patch, kind="application/json-patch+json").ok()
    eventually(lambda: stoves.read("a").ok().get("y") == 7)


def _with(path: str, value: Any) -> Manifest:
    """Return a definition with one member changed."""
    manifest = definition("Wrong", scope="Cluster", version=copy.deepcopy(_ANYTHING))
    *parents, last = path.split(".")
    target: Any = manifest
    for name in parents:
        target = target[int(name) if name.isdigit() else name]
    target[last] = value
    return manifest


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("metadata.name", "other.example.com", "metadata.name"),
        ("spec.scope", "Everywhere", "spec.scope"),
        ("spec.names.plural", "Wrongs", "spec.names.plural"),
        ("spec.names.kind", "", "spec.names.kind"),
        ("spec.versions", [], "spec.versions"),
        ("spec.versions.0.storage", False, "spec.versions"),
        ("spec.versions.0.schema", {}, "spec.versions[0].schema.openAPIV3Schema"),
        (
            "spec.versions.0.schema.openAPIV3Schema",
            {"type": "object", "properties": {"a": {"description": "no type"}}},
            "spec.versions[0].schema.openAPIV3Schema.properties[a].type",
        ),
        (
            "spec.versions.0.schema.openAPIV3Schema",
            {
                "type": "object",
                "properties": {"a": {"type": "integer", "default": "not a number"}},
            },
            "spec.versions[0].schema.openAPIV3Schema.properties[a].default",
        ),
        (
            "spec.versions.0.schema.openAPIV3Schema",
            {
                "type": "object",
                "properties": {
                    "a": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": "self ++ nonsense"}],
                    }
                },
            },
            "spec.versions[0].schema.openAPIV3Schema.properties[a].x-kubernetes-validations[0].rule",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_definition_is_validated(
    definitions: Collection, path: str, value: Any, field: str
) -> None:
    answer = definitions.create(_with(path, value))
    # A real server says spec.validation of a definition with one version.
    named = {name for _, name in answer.causes()}
    fields = {name.replace("spec.validation.", "spec.versions[0].schema.") for name in named}
    assert field in fields, str(answer)


def test_a_protected_group_needs_an_approval(definitions: Collection) -> None:
    manifest = definition("Thing", scope="Cluster", version=_ANYTHING)
    manifest["spec"]["group"] = "thing.k8s.io"
    manifest["metadata"]["name"] = "things.thing.k8s.io"
    answer = definitions.create(manifest)
    assert {field for _, field in answer.causes()} == {
        "metadata.annotations[api-approved.kubernetes.io]"
    }


def test_the_group_and_scope_cannot_change(api: Api, definitions: Collection) -> None:
    manifest = definition("Shelf", scope="Cluster", version=_ANYTHING)
    define(api, manifest)
    answer = definitions.patch(manifest["metadata"]["name"], {"spec": {"scope": "Namespaced"}})
    assert ("FieldValueInvalid", "spec.scope") in answer.causes()
