"""Discovery: which groups, versions, kinds and subresources there are, in both forms."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import Api
from tests.conformance.widgets import GROUP

_V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_V2BETA1 = _V2.replace("v=v2", "v=v2beta1")
_AGGREGATED = f"{_V2},{_V2BETA1},application/json"

_VERBS = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


def _aggregated(api: Api, path: str, accept: str = _AGGREGATED) -> Any:
    return api.get(path, headers={"Accept": accept}, timeout="32s").ok()


def _resources(items: list[Any], group: str, version: str = "v1") -> dict[str, Any]:
    (item,) = [each for each in items if each["metadata"].get("name", "") == group]
    (found,) = [each for each in item["versions"] if each["version"] == version]
    assert found["freshness"] == "Current"
    return {each["resource"]: each for each in found["resources"]}


class TestAggregated:
    """Everything in two answers."""

    @pytest.mark.parametrize("path", ["/api", "/apis"])
    def test_headers_and_kind(self, api: Api, path: str) -> None:
        answer = api.get(path, headers={"Accept": _AGGREGATED})
        got = answer.ok()
        assert (got["kind"], got["apiVersion"]) == (
            "APIGroupDiscoveryList",
            "apidiscovery.k8s.io/v2",
        )
        assert answer.headers["Content-Type"] == _V2
        assert "Accept" in answer.headers["Vary"]
        assert answer.headers["ETag"]

    @pytest.mark.parametrize("path", ["/api", "/apis"])
    def test_what_is_known_is_not_sent_again(self, api: Api, path: str) -> None:
        tag = api.get(path, headers={"Accept": _AGGREGATED}).headers["ETag"]
        again = api.get(path, headers={"Accept": _AGGREGATED, "If-None-Match": tag})
        assert (again.code, again.body) == (304, b"")
        other = api.get(path, headers={"Accept": _AGGREGATED, "If-None-Match": '"other"'})
        assert other.code == 200

    def test_core_kinds(self, api: Api) -> None:
        resources = _resources(_aggregated(api, "/api")["items"], "")
        pods = resources["pods"]
        assert pods["responseKind"]["kind"] == "Pod"
        assert pods["scope"] == "Namespaced"
        assert pods["singularResource"] == "pod"
        assert pods["shortNames"] == ["po"]
        assert pods["categories"] == ["all"]
        assert set(pods["verbs"]) == _VERBS
        subresources = {each["subresource"]: each for each in pods["subresources"]}
        assert {"status", "log", "binding", "eviction"} <= set(subresources)
        assert set(subresources["status"]["verbs"]) == {"get", "patch", "update"}
        assert subresources["eviction"]["responseKind"] == {
            "group": "policy",
            "version": "v1",
            "kind": "Eviction",
        }
        assert resources["nodes"]["scope"] == "Cluster"
        assert resources["nodes"]["shortNames"] == ["no"]
        assert resources["namespaces"]["shortNames"] == ["ns"]
        assert resources["configmaps"]["shortNames"] == ["cm"]
        assert "subresources" not in resources["configmaps"]

    def test_kinds_of_groups(self, api: Api) -> None:
        items = _aggregated(api, "/apis")["items"]
        batch = _resources(items, "batch")
        assert {"jobs", "cronjobs"} <= set(batch)
        assert batch["cronjobs"]["shortNames"] == ["cj"]
        assert batch["jobs"]["categories"][:1] == ["all"]
        deployments = _resources(items, "apps")["deployments"]
        assert {each["subresource"] for each in deployments["subresources"]} == {"scale", "status"}
        assert _resources(items, "policy")["poddisruptionbudgets"]["shortNames"] == ["pdb"]
        assert _resources(items, "scheduling.k8s.io")["priorityclasses"]["shortNames"] == ["pc"]
        assert "leases" in _resources(items, "coordination.k8s.io")
        reviews = _resources(items, "authorization.k8s.io")["selfsubjectaccessreviews"]
        assert reviews["verbs"] == ["create"]

    def test_the_older_form(self, api: Api) -> None:
        answer = api.get("/apis", headers={"Accept": f"{_V2BETA1},application/json"})
        if answer.headers["Content-Type"] == "application/json":
            assert answer.ok()["kind"] == "APIGroupList"  # servers may have dropped it
        else:
            assert answer.ok()["apiVersion"] == "apidiscovery.k8s.io/v2beta1"

    def test_custom_kinds(self, api: Api, custom_kinds: None) -> None:
        resources = _resources(_aggregated(api, "/apis")["items"], GROUP)
        widgets = resources["widgets"]
        assert widgets["responseKind"]["kind"] == "Widget"
        assert (widgets["shortNames"], widgets["categories"]) == (["wg"], ["toys"])
        assert {each["subresource"] for each in widgets["subresources"]} == {"scale", "status"}
        assert set(widgets["verbs"]) == _VERBS
        assert resources["gadgets"]["scope"] == "Cluster"


class TestLegacy:
    """One answer for each group and version."""

    def test_the_versions_of_the_core(self, api: Api) -> None:
        got = api.get("/api").ok()
        assert (got["kind"], got["versions"]) == ("APIVersions", ["v1"])

    def test_the_groups(self, api: Api, custom_kinds: None) -> None:
        got = api.get("/apis").ok()
        assert (got["kind"], got["apiVersion"]) == ("APIGroupList", "v1")
        groups = {each["name"]: each for each in got["groups"]}
        assert {"apps", "batch", "policy", "coordination.k8s.io", GROUP} <= set(groups)
        assert groups["batch"]["preferredVersion"] == {"groupVersion": "batch/v1", "version": "v1"}
        assert groups["batch"]["versions"] == [{"groupVersion": "batch/v1", "version": "v1"}]

    def test_one_group(self, api: Api) -> None:
        got = api.get("/apis/batch").ok()
        assert (got["kind"], got["apiVersion"], got["name"]) == ("APIGroup", "v1", "batch")

    def test_the_core_resources(self, api: Api) -> None:
        got = api.get("/api/v1").ok()
        assert (got["kind"], got["groupVersion"]) == ("APIResourceList", "v1")
        resources = {each["name"]: each for each in got["resources"]}
        pods = resources["pods"]
        assert (pods["kind"], pods["namespaced"], pods["singularName"]) == ("Pod", True, "pod")
        assert set(pods["verbs"]) == _VERBS
        assert resources["nodes"]["namespaced"] is False
        eviction = resources["pods/eviction"]
        assert (eviction["group"], eviction["version"], eviction["kind"]) == (
            "policy",
            "v1",
            "Eviction",
        )
        assert {"pods/status", "pods/log", "pods/binding", "nodes/status"} <= set(resources)

    def test_the_resources_of_a_group(self, api: Api) -> None:
        got = api.get("/apis/apps/v1").ok()
        assert got["groupVersion"] == "apps/v1"
        resources = {each["name"]: each for each in got["resources"]}
        scale = resources["deployments/scale"]
        assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")

    def test_the_resources_of_a_custom_group(self, api: Api, custom_kinds: None) -> None:
        got = api.get(f"/apis/{GROUP}/v1").ok()
        names = {each["name"] for each in got["resources"]}
        assert {"widgets", "widgets/status", "widgets/scale", "gadgets"} <= names

    @pytest.mark.parametrize("path", ["/apis/no.such.group", "/apis/batch/v9", "/api/v9"])
    def test_what_is_not_there(self, api: Api, path: str) -> None:
        assert api.get(path).code == 404


def test_the_version(api: Api) -> None:
    got = api.get("/version").ok()
    assert got["major"] == "1"
    assert got["gitVersion"].startswith(f"v1.{got['minor'].rstrip('+')}.")
    assert {"gitCommit", "platform"} <= set(got)
