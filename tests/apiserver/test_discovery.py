"""Both forms of discovery, with kinds made by hand and with all that there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.manifests import kind
from unisono.apiserver import discovery
from unisono.apiserver.discovery import (
    aggregated,
    api_group,
    asked_version,
    content_type,
    core_versions,
    etag,
    group_list,
    resource_list,
    verbs_of,
)
from unisono.apiserver.objects import Json
from unisono.kinds.shapes.served import Served, read_served, served_kinds

POD = kind(
    "", "v1", "Pod", short=("po",), categories=("all",), subresources=("status", "log", "eviction")
)
NAMESPACE = kind("", "v1", "Namespace", namespaced=False, subresources=("status", "finalize"))
DEPLOYMENT = kind("apps", "v1", "Deployment", subresources=("scale", "status"))
JOB = kind("batch", "v1", "Job", categories=("all", "unisono"))
BUDGET = kind("policy", "v1", "PodDisruptionBudget")
QUEUES = tuple(
    kind("kueue.x-k8s.io", version, "LocalQueue", short=("lq",))
    for version in ("v1beta1", "v1beta2", "v1alpha1")
)
WIDGET = kind("widgets.example.com", "v1", "Widget")
ANIMAL = kind("animals.example.com", "v1", "Cat")
SERVED = (WIDGET, *QUEUES, POD, ANIMAL, BUDGET, JOB, DEPLOYMENT, NAMESPACE)

FULL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def _named(answer: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [resource for resource in answer["resources"] if resource["name"] == name]
    return dict(found)


# ---- order ---------------------------------------------------------------------------------------


def test_groups_come_in_their_documented_order_and_others_after_them() -> None:
    names = [group["name"] for group in group_list(SERVED)["groups"]]
    ours = ["apps", "batch", "policy", "kueue.x-k8s.io"]
    assert names == [*ours, "animals.example.com", "widgets.example.com"]
    answer = aggregated(SERVED, core=False, version="v2")
    assert [item["metadata"]["name"] for item in answer["items"]] == names


def test_the_version_to_prefer_comes_first() -> None:
    group = api_group(SERVED, "kueue.x-k8s.io")
    assert [version["version"] for version in group["versions"]] == [
        "v1beta2",
        "v1beta1",
        "v1alpha1",
    ]
    assert group["preferredVersion"] == {
        "groupVersion": "kueue.x-k8s.io/v1beta2",
        "version": "v1beta2",
    }


def test_versions_sort_by_stability_and_then_by_number() -> None:
    versions = ("v1alpha1", "v2beta1", "v10", "v1beta2", "v2", "latest", "v1beta11")
    served = [kind("g.example.com", version, "Thing") for version in versions]
    found = [version["version"] for version in api_group(served, "g.example.com")["versions"]]
    assert found == ["v10", "v2", "v2beta1", "v1beta11", "v1beta2", "v1alpha1", "latest"]


# ---- the legacy form -----------------------------------------------------------------------------


def test_core_has_its_own_list_of_versions() -> None:
    answer = core_versions(SERVED)
    assert (answer["kind"], answer["versions"]) == ("APIVersions", ["v1"])
    assert "" not in [group["name"] for group in group_list(SERVED)["groups"]]


def test_a_group_in_the_list_is_the_group_by_itself_without_a_head() -> None:
    (batch,) = [group for group in group_list(SERVED)["groups"] if group["name"] == "batch"]
    alone = api_group(SERVED, "batch")
    assert (alone["kind"], alone["apiVersion"]) == ("APIGroup", "v1")
    assert {"kind": "APIGroup", "apiVersion": "v1", **batch} == alone


def test_a_resource_says_how_to_name_it_and_what_it_can() -> None:
    answer = resource_list(SERVED, "", "v1")
    assert (answer["kind"], answer["groupVersion"]) == ("APIResourceList", "v1")
    assert _named(answer, "pods") == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": FULL,
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert resource_list(SERVED, "batch", "v1")["groupVersion"] == "batch/v1"


def test_drain_finds_eviction_in_the_group_it_wants() -> None:
    eviction = _named(resource_list(SERVED, "", "v1"), "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == (
        "policy",
        "v1",
        "Eviction",
    )
    assert eviction["verbs"] == ["create"]


def test_other_parts_of_a_kind() -> None:
    core = resource_list(SERVED, "", "v1")
    assert _named(core, "pods/log")["verbs"] == ["get"]
    assert _named(core, "pods/status")["kind"] == "Pod"
    assert "group" not in _named(core, "pods/status")
    assert _named(core, "namespaces/finalize")["verbs"] == ["update"]
    scale = _named(resource_list(SERVED, "apps", "v1"), "deployments/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")
    assert scale["verbs"] == ["get", "patch", "update"]


def test_an_unknown_version_has_no_resources() -> None:
    assert resource_list(SERVED, "batch", "v9")["resources"] == []


def test_a_word_means_what_the_documents_say() -> None:
    groups = group_list(served_kinds())["groups"]
    names = [group["name"] for group in groups]
    for first, later in (
        ("batch", "batch.volcano.sh"),  # jobs
        ("scheduling.volcano.sh", "scheduling.x-k8s.io"),  # podgroups
        ("kueue.x-k8s.io", "scheduling.k8s.io"),  # workloads
    ):
        assert names.index(first) < names.index(later)


# ---- what kinds can do ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "name", "verbs"),
    [
        ("authorization.k8s.io", "SelfSubjectAccessReview", ("create",)),
        ("authentication.k8s.io", "TokenReview", ("create",)),
        ("metrics.k8s.io", "PodMetrics", ("get", "list")),
        ("", "Binding", ("create",)),
    ],
)
def test_some_kinds_can_do_less(group: str, name: str, verbs: tuple[str, ...]) -> None:
    assert verbs_of(kind(group, "v1", name)) == verbs


def test_namespaces_are_not_deleted_by_the_dozen() -> None:
    assert "deletecollection" not in verbs_of(NAMESPACE)
    assert set(FULL) - set(verbs_of(NAMESPACE)) == {"deletecollection"}


# ---- the aggregated form -------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_core_is_one_group_without_a_name(version: str) -> None:
    answer = aggregated(SERVED, core=True, version=version)
    assert answer["kind"] == "APIGroupDiscoveryList"
    assert answer["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    (core,) = answer["items"]
    assert core["metadata"].get("name", "") == ""
    assert [entry["version"] for entry in core["versions"]] == ["v1"]


def test_a_resource_in_the_aggregated_form() -> None:
    (core,) = aggregated(SERVED, core=True, version="v2")["items"]
    (v1,) = core["versions"]
    assert v1["freshness"] == "Current"
    pod, namespace = v1["resources"]
    assert namespace["scope"] == "Cluster"
    assert pod == {
        "resource": "pods",
        "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
        "scope": "Namespaced",
        "singularResource": "pod",
        "verbs": FULL,
        "shortNames": ["po"],
        "categories": ["all"],
        "subresources": [
            {
                "subresource": "eviction",
                "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
                "verbs": ["create"],
            },
            {
                "subresource": "log",
                "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
                "verbs": ["get"],
            },
            {
                "subresource": "status",
                "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


@pytest.mark.parametrize("served", [SERVED, served_kinds()], ids=["some", "all"])
def test_both_forms_tell_the_same(served: tuple[Served, ...]) -> None:
    items = [
        *aggregated(served, core=True, version="v2")["items"],
        *aggregated(served, core=False, version="v2")["items"],
    ]
    for item in items:
        group = item["metadata"].get("name", "")
        for entry in item["versions"]:
            legacy = resource_list(served, group, entry["version"])
            nested = [
                name
                for resource in entry["resources"]
                for name in (
                    resource["resource"],
                    *(
                        f"{resource['resource']}/{part['subresource']}"
                        for part in resource.get("subresources", ())
                    ),
                )
            ]
            assert [resource["name"] for resource in legacy["resources"]] == nested
            assert len(nested) == len(set(nested))


# ---- what a client asks for ----------------------------------------------------------------------

NEW = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OLD = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{NEW},{OLD},application/json", "v2"),
        (f"{OLD},application/json", "v2beta1"),
        ("application/json", ""),
        ("application/json, */*", ""),
        ("*/*", ""),
        ("", ""),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", ""),
        ("application/json;v=v9;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList", ""),
        ("application/vnd.kubernetes.protobuf," + NEW, "v2"),
        ("application/json; v=v2; as=APIGroupDiscoveryList; g=apidiscovery.k8s.io", "v2"),
    ],
)
def test_the_form_follows_the_accept_header(accept: str, version: str) -> None:
    assert asked_version(accept) == version


def test_the_content_type_says_what_is_inside() -> None:
    assert content_type("v2") == NEW
    assert asked_version(content_type("v2beta1")) == "v2beta1"


def test_a_tag_is_quoted_and_changes_with_the_body() -> None:
    tag = etag(b"a")
    assert tag[0] == tag[-1] == '"'
    assert len(tag) == 130
    assert tag == tag.upper()
    assert etag(b"b") != tag


# ---- OpenAPI -------------------------------------------------------------------------------------

REFERENCE = "#/components/schemas/"
# A document is read by every `kubectl apply`; the real one of the core group has 1.6 MB.
MOST_BYTES = 250_000


def document(group: str, version: str) -> Json:
    made: Json = json.loads(discovery.openapi_document(served_kinds(), group, version))
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
    index = discovery.openapi_index(served_kinds())
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
    before = discovery.openapi_index(list(read_served(entry, "example.com")))
    entry["versions"][0]["schema"]["properties"]["spec"] = {"type": "string"}
    after = discovery.openapi_index(list(read_served(entry, "example.com")))
    assert before.keys() == after.keys() == {"apis/example.com/v1"}
    assert before != after


@pytest.mark.parametrize("path", discovery.openapi_index(served_kinds()))
def test_a_document_is_complete_and_small(path: str) -> None:
    parts = path.split("/")
    group, version = ("", parts[1]) if parts[0] == "api" else (parts[1], parts[2])
    made = discovery.openapi_document(served_kinds(), group, version)
    assert len(made) < MOST_BYTES
    content = json.loads(made)
    schemas = content["components"]["schemas"]
    for reference in _references(content):
        assert reference.removeprefix(REFERENCE) in schemas
    members = [one for one in served_kinds() if (one.group, one.version) == (group, version)]
    kinds = {one.kind for one in members}
    named = {
        kind["kind"]
        for schema in schemas.values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    }
    assert named == kinds
    assert len(content["paths"]) == len({one.plural for one in members})


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
    assert bytes.fromhex("0A03322E30") == discovery.V2_STUB
