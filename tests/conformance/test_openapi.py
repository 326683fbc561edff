"""OpenAPI: enough to validate and to explain every kind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import Api, eventually
from tests.conformance.widgets import GROUP


def _document(api: Api, name: str) -> Any:
    index = api.get("/openapi/v3").ok()
    return api.get(index["paths"][name]["serverRelativeURL"]).ok()


def _schema_of(document: Any, kind: dict[str, str]) -> Any:
    (found,) = [
        schema
        for schema in document["components"]["schemas"].values()
        if kind in schema.get("x-kubernetes-group-version-kind", ())
    ]
    return found


def _resolved(document: Any, schema: Any) -> Any:
    """Return a schema with its reference followed, be it bare or the only part of `allOf`."""
    reference = schema.get("$ref") or (schema.get("allOf") or [{}])[0].get("$ref")
    if reference is None:
        return schema
    return document["components"]["schemas"][reference.rpartition("/")[2]]


def test_the_index_names_every_group_and_version(api: Api) -> None:
    index = api.get("/openapi/v3").ok()
    assert {"api/v1", "apis/batch/v1", "apis/apps/v1", "apis/policy/v1"} <= set(index["paths"])
    for name, entry in index["paths"].items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{name}?hash=")


def test_a_document_can_be_kept_for_ever(api: Api) -> None:
    index = api.get("/openapi/v3").ok()
    answer = api.get(index["paths"]["apis/batch/v1"]["serverRelativeURL"])
    assert answer.ok()["openapi"].startswith("3.0")
    assert {"public", "immutable"} <= set(answer.headers["Cache-Control"].split(", "))
    assert answer.headers["Expires"]
    tag = answer.headers["ETag"]
    again = api.get("/openapi/v3/apis/batch/v1", headers={"If-None-Match": tag})
    assert (again.code, again.body) == (304, b"")


def test_a_document_without_its_hash(api: Api) -> None:
    assert api.get("/openapi/v3/apis/batch/v1").ok()["openapi"].startswith("3.0")
    assert api.get("/openapi/v3/apis/no.such.group/v1").code == 404


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        (
            "api/v1",
            "/api/v1/namespaces/{namespace}/pods/{name}",
            {"group": "", "version": "v1", "kind": "Pod"},
        ),
        ("api/v1", "/api/v1/nodes/{name}", {"group": "", "version": "v1", "kind": "Node"}),
        (
            "apis/batch/v1",
            "/apis/batch/v1/namespaces/{namespace}/jobs/{name}",
            {"group": "batch", "version": "v1", "kind": "Job"},
        ),
    ],
    ids=["pods", "nodes", "jobs"],
)
def test_the_patch_of_a_kind_tells_that_fields_are_validated(
    api: Api, name: str, path: str, kind: dict[str, str]
) -> None:
    document = _document(api, name)
    patch = document["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == kind
    queries = {each["name"] for each in patch["parameters"] if each["in"] == "query"}
    assert {"dryRun", "fieldValidation"} <= queries
    schema = _schema_of(document, kind)
    assert schema["type"] == "object"
    assert {"apiVersion", "kind", "metadata", "spec", "status"} <= set(schema["properties"])


def test_fields_can_be_explained(api: Api) -> None:
    document = _document(api, "apis/batch/v1")
    kind = {"group": "batch", "version": "v1", "kind": "Job"}
    spec = _resolved(document, _schema_of(document, kind)["properties"]["spec"])
    assert spec["required"] == ["template"]
    limit = spec["properties"]["backoffLimit"]
    assert (limit["type"], limit["format"]) == ("integer", "int32")
    assert limit["description"]
    template = _resolved(document, spec["properties"]["template"])
    pod = _resolved(document, template["properties"]["spec"])
    containers = pod["properties"]["containers"]
    assert containers["type"] == "array"
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    container = _resolved(document, containers["items"])
    assert container["properties"]["command"]["items"]["type"] == "string"


def test_custom_kinds_are_published(api: Api, custom_kinds: None) -> None:
    name = f"apis/{GROUP}/v1"
    eventually(lambda: name in api.get("/openapi/v3").ok()["paths"])
    document = _document(api, name)
    kind = {"group": GROUP, "version": "v1", "kind": "Widget"}
    schema = _schema_of(document, kind)
    assert schema["description"] == "Widget has everything a schema can have."
    spec = _resolved(document, schema["properties"]["spec"])
    assert spec["required"] == ["size"]
    assert spec["properties"]["colour"]["enum"] == ["red", "green", "blue"]
    path = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}"
    assert document["paths"][path]["patch"]["x-kubernetes-group-version-kind"] == kind


def test_the_old_document_for_old_clients(api: Api) -> None:
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = api.get("/openapi/v2", headers={"Accept": accept})
    assert answer.code == 200
    assert answer.headers["Content-Type"] == accept.replace("@", ".")
    assert answer.body.startswith(b"\x0a\x03" + b"2.0")
