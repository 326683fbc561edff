"""OpenAPI documents as kubectl reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from unisono.apiserver.discovery import openapi
from unisono.kinds.shapes.served import read_served, served_kinds

Json = dict[str, Any]
REFERENCE = "#/components/schemas/"
# A document is read by every `kubectl apply`; the real one of the core group has 1.6 MB.
MOST_BYTES = 250_000


def document(group: str, version: str) -> Json:
    made: Json = json.loads(openapi.document(served_kinds(), group, version))
    return made


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from _references(child)
    elif isinstance(node, list):
        for child in node:
            yield from _references(child)


def test_the_index_lists_every_group_and_version() -> None:
    index = openapi.index(served_kinds())
    assert {"api/v1", "apis/batch/v1", "apis/kueue.x-k8s.io/v1beta1"} <= set(index)
    assert len(set(index.values())) == len(index)


def test_hashes_change_with_what_is_served() -> None:
    entry: Json = {
        "kind": "Thing",
        "plural": "things",
        "singular": "thing",
        "namespaced": True,
        "versions": [{"name": "v1", "schema": {"type": "object", "properties": {}}}],
    }
    before = openapi.index(list(read_served(entry, "example.com")))
    entry["versions"][0]["schema"]["properties"]["spec"] = {"type": "string"}
    after = openapi.index(list(read_served(entry, "example.com")))
    assert before.keys() == after.keys() == {"apis/example.com/v1"}
    assert before != after


@pytest.mark.parametrize("path", openapi.index(served_kinds()))
def test_a_document_is_complete_and_small(path: str) -> None:
    parts = path.split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    made = openapi.document(served_kinds(), group, version)
    assert len(made) < MOST_BYTES
    content = json.loads(made)
    schemas = content["components"]["schemas"]
    for reference in _references(content):
        assert reference.removeprefix(REFERENCE) in schemas
    kinds = {one.kind for one in served_kinds() if (one.group, one.version) == (group, version)}
    named = {
        kind["kind"]
        for schema in schemas.values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }
    assert named == kinds
    assert len(content["paths"]) == len(kinds)


def test_patch_tells_kubectl_what_it_can_do() -> None:
    pods = document("", "v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert pods["x-kubernetes-group-version-kind"]["kind"] == "Pod"
    names = {parameter["name"] for parameter in pods["parameters"]}
    assert {"fieldValidation", "dryRun", "namespace", "name"} <= names
    strategic = "application/strategic-merge-patch+json"
    assert strategic in pods["requestBody"]["content"]
    queues = document("kueue.x-k8s.io", "v1beta2")["paths"]
    queue = queues["/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{name}"]["patch"]
    assert strategic not in queue["requestBody"]["content"]


def test_fields_are_explained() -> None:
    schemas = document("trainer.kubeflow.org", "v1alpha1")["components"]["schemas"]
    spec = schemas["trainer.kubeflow.org.v1alpha1.TrainJob"]["properties"]["spec"]
    overrides = spec["properties"]["podTemplateOverrides"]
    assert overrides["description"]
    inner = overrides["items"]["properties"]["spec"]["properties"]["tolerations"]
    assert inner["description"]


def test_merge_keys_and_amounts_are_published() -> None:
    schemas = document("", "v1")["components"]["schemas"]
    containers = schemas["core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    limits = schemas["core.v1.ResourceRequirements"]["properties"]["limits"]
    reference = {"allOf": [{"$ref": f"{REFERENCE}meta.v1.Quantity"}]}
    assert limits["additionalProperties"] == reference
    assert schemas["meta.v1.Quantity"]["oneOf"] == [{"type": "string"}, {"type": "number"}]


def test_the_old_document_says_nothing_but_its_version() -> None:
    assert bytes.fromhex("0A03322E30") == openapi.V2_STUB
