"""The three patches that do not track owners: JSON patch, merge patch, strategic merge patch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Api
from tests.conformance.objects import config_map, container, deployment, node, pod, service


def test_json_patch_operations(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a", {"one": "1", "two": "2"}, annotations={"p/q": "s"})).ok(201)
    patched = maps.patch(
        "a",
        [
            {"op": "test", "path": "/data/one", "value": "1"},
            {"op": "replace", "path": "/data/one", "value": "eins"},
            {"op": "remove", "path": "/data/two"},
            {"op": "add", "path": "/data/three", "value": "3"},
            {"op": "copy", "from": "/data/three", "path": "/data/four"},
            {"op": "move", "from": "/data/three", "path": "/data/five"},
            {"op": "remove", "path": "/metadata/annotations/p~1q"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["a.b/c"]},
            {"op": "add", "path": "/metadata/finalizers/-", "value": "a.b/e"},
            {"op": "add", "path": "/metadata/finalizers/1", "value": "a.b/d"},
        ],
        kind=JSON_PATCH,
    ).ok()
    assert patched["data"] == {"one": "eins", "four": "3", "five": "3"}
    assert patched["metadata"]["finalizers"] == ["a.b/c", "a.b/d", "a.b/e"]
    assert "annotations" not in patched["metadata"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/k", "value": "other"},
        {"op": "test", "path": "/data/absent", "value": "v"},
        {"op": "remove", "path": "/data/absent"},
        {"op": "add", "path": "/spec/deeper/still", "value": "v"},
    ],
    ids=lambda operation: operation["op"] + operation["path"],
)
def test_a_json_patch_that_does_not_fit_is_invalid(
    api: Api, namespace: str, operation: dict[str, str]
) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a", {"k": "v"})).ok(201)
    before = {"op": "add", "path": "/data/l", "value": "w"}
    maps.patch("a", [before, operation], kind=JSON_PATCH).refused(422, "Invalid")
    assert maps.read("a").ok() == made


def test_json_patch_replace_adds_what_is_absent(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a", {"k": "v"})).ok(201)
    replace = [{"op": "replace", "path": "/data/absent", "value": "v"}]
    assert maps.patch("a", replace, kind=JSON_PATCH).ok()["data"] == {"k": "v", "absent": "v"}


@pytest.mark.parametrize("body", [b"{}", b"[{]", b'{"op":"add"}'])
def test_a_json_patch_that_is_none_is_a_bad_request(api: Api, namespace: str, body: bytes) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    maps.patch("a", body, kind=JSON_PATCH).refused(400, "BadRequest")


def test_merge_patch_sets_and_removes(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a", {"one": "1", "two": "2"}, labels={"x": "1"})).ok(201)
    patched = maps.patch(
        "a", {"metadata": {"labels": None}, "data": {"one": None, "two": "zwei", "three": "3"}}
    ).ok()
    assert patched["data"] == {"two": "zwei", "three": "3"}
    assert "labels" not in patched["metadata"]


def test_merge_patch_replaces_lists(api: Api, namespace: str) -> None:
    services = api.of("v1", "services", namespace)
    services.create(service("a")).ok(201)
    ports = services.patch("a", {"spec": {"ports": [{"port": 81}]}}).ok()["spec"]["ports"]
    assert [port["port"] for port in ports] == [81]


@pytest.mark.parametrize("kind", [MERGE_PATCH, STRATEGIC_PATCH])
def test_a_resource_version_in_a_patch_is_a_condition(api: Api, namespace: str, kind: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    old = maps.create(config_map("a")).ok(201)["metadata"]["resourceVersion"]
    conditional = {"metadata": {"resourceVersion": old}, "data": {"k": "v"}}
    maps.patch("a", conditional, kind=kind).ok()
    conditional["data"] = {"k": "w"}
    maps.patch("a", conditional, kind=kind).refused(409, "Conflict")


def test_patching_what_does_not_exist_is_not_found(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    for kind in (MERGE_PATCH, STRATEGIC_PATCH):
        maps.patch("absent", {"data": {}}, kind=kind).refused(404, "NotFound")
    maps.patch("absent", [], kind=JSON_PATCH).refused(404, "NotFound")


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/cbor-patch"])
def test_other_patch_types_are_unsupported(api: Api, namespace: str, kind: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    maps.patch("a", {"data": {"k": "v"}}, kind=kind).refused(415, "UnsupportedMediaType")


def test_force_is_only_for_apply(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    answer = maps.patch("a", {"data": {"k": "v"}}, force=True)
    assert answer.causes() == {("FieldValueForbidden", "force")}


def test_a_patch_cannot_rename(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    maps.patch("a", {"metadata": {"name": "b"}}).refused(400, "BadRequest")


def test_patched_objects_are_validated(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    answer = maps.patch("a", {"metadata": {"labels": {"x": "a b"}}})
    assert answer.causes() == {("FieldValueInvalid", "metadata.labels")}
    assert maps.patch("a", {"data": ["no", "map"]}).code in {400, 422}


class TestStrategicMerge:
    """Lists with a merge key are merged; others are replaced."""

    def _patched(self, api: Api, namespace: str, before: Any, patch: Any) -> Any:
        pods = api.of("v1", "pods", namespace)
        pods.create(before).ok(201)
        return pods.patch("a", patch, kind=STRATEGIC_PATCH, dryRun="All").ok()

    def test_containers_are_merged_by_name(self, api: Api, namespace: str) -> None:
        before = pod("a", {"containers": [container("one"), container("two")]})
        patch = {"spec": {"containers": [{"name": "two", "image": "other"}]}}
        containers = self._patched(api, namespace, before, patch)["spec"]["containers"]
        assert [(each["name"], each["image"]) for each in containers] == [
            ("one", "busybox:1.36"),
            ("two", "other"),
        ]

    def test_finalizers_are_a_set(self, api: Api, namespace: str) -> None:
        before = pod("a", finalizers=["a.b/c"])
        patch = {"metadata": {"finalizers": ["a.b/d", "a.b/c"]}}
        patched = self._patched(api, namespace, before, patch)
        assert sorted(patched["metadata"]["finalizers"]) == ["a.b/c", "a.b/d"]

    def test_elements_of_a_set_are_removed_by_a_directive(self, api: Api, namespace: str) -> None:
        before = pod("a", finalizers=["a.b/c", "a.b/d"])
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}
        patched = self._patched(api, namespace, before, patch)
        assert patched["metadata"]["finalizers"] == ["a.b/d"]

    def test_tolerations_are_replaced(self, api: Api, namespace: str) -> None:
        pods = api.of("v1", "pods", namespace)
        before = [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}]
        made = pods.create(pod("a", {"tolerations": before})).ok(201)["spec"]["tolerations"]
        longer = [*made, {"key": "y", "operator": "Exists", "effect": "NoSchedule"}]
        patch = {"spec": {"tolerations": longer}}
        patched = pods.patch("a", patch, kind=STRATEGIC_PATCH).ok()
        assert patched["spec"]["tolerations"] == longer

    def test_null_removes_a_member(self, api: Api, namespace: str) -> None:
        before = pod("a", labels={"x": "1", "y": "2"})
        patched = self._patched(api, namespace, before, {"metadata": {"labels": {"x": None}}})
        assert patched["metadata"]["labels"] == {"y": "2"}

    def test_a_map_is_replaced_by_a_directive(self, api: Api, namespace: str) -> None:
        before = pod("a", labels={"x": "1", "y": "2"})
        patch = {"metadata": {"labels": {"$patch": "replace", "z": "3"}}}
        assert self._patched(api, namespace, before, patch)["metadata"]["labels"] == {"z": "3"}

    def test_a_map_is_emptied_by_a_directive(self, api: Api, namespace: str) -> None:
        before = pod("a", labels={"x": "1", "y": "2"})
        patch = {"metadata": {"labels": {"$patch": "delete"}}}
        assert "labels" not in self._patched(api, namespace, before, patch)["metadata"]


_TAINTS = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]


def _conditions(thing: Any) -> list[tuple[str, str]]:
    return [(each["type"], each["status"]) for each in thing["status"]["conditions"]]


def test_conditions_are_merged_by_type(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a")).ok(201)

    def patch(**status: Any) -> Any:
        return pods.patch("a", {"status": status}, kind=STRATEGIC_PATCH, sub="status").ok()

    patch(conditions=[{"type": "Ready", "status": "True"}])
    assert _conditions(patch(conditions=[{"type": "Initialized", "status": "True"}])) == [
        ("Initialized", "True"),
        ("Ready", "True"),
    ]
    assert _conditions(patch(conditions=[{"type": "Ready", "status": "False"}])) == [
        ("Initialized", "True"),
        ("Ready", "False"),
    ]
    gone = patch(conditions=[{"type": "Initialized", "$patch": "delete"}])
    assert _conditions(gone) == [("Ready", "False")]
    ordered = patch(
        **{
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "ContainersReady"}],
            "conditions": [{"type": "ContainersReady", "status": "False"}],
        }
    )
    assert _conditions(ordered) == [("Ready", "False"), ("ContainersReady", "False")]
    replaced = patch(conditions=[{"type": "Initialized", "status": "True"}, {"$patch": "replace"}])
    assert _conditions(replaced) == [("Initialized", "True")]


def test_taints_of_a_node_are_replaced(api: Api) -> None:
    nodes = api.of("v1", "nodes")
    made = nodes.create(
        {**node(""), "metadata": {"generateName": "n-"}, "spec": {"taints": _TAINTS}}
    )
    name = made.ok(201)["metadata"]["name"]
    one = {"spec": {"taints": [{"key": "c", "effect": "NoSchedule"}]}}
    patched = nodes.patch(name, one, kind=STRATEGIC_PATCH).ok()
    assert [taint["key"] for taint in patched["spec"]["taints"]] == ["c"]
    nodes.patch(name, {"spec": {"unschedulable": True}}, kind=STRATEGIC_PATCH).ok()
    uncordoned = nodes.patch(name, {"spec": {"unschedulable": None}}, kind=STRATEGIC_PATCH).ok()
    assert "unschedulable" not in uncordoned["spec"]


def test_ports_of_a_service_are_merged_by_port(api: Api, namespace: str) -> None:
    services = api.of("v1", "services", namespace)
    services.create(service("a")).ok(201)
    more = {"spec": {"ports": [{"port": 80, "name": "web"}, {"port": 81, "name": "more"}]}}
    ports = services.patch("a", more, kind=STRATEGIC_PATCH).ok()["spec"]["ports"]
    assert sorted((port["port"], port["name"]) for port in ports) == [(80, "web"), (81, "more")]
    less = {"spec": {"ports": [{"port": 81, "$patch": "delete"}]}}
    ports = services.patch("a", less, kind=STRATEGIC_PATCH).ok()["spec"]["ports"]
    assert [port["port"] for port in ports] == [80]


def test_retain_keys_drops_the_others(api: Api, namespace: str) -> None:
    deployments = api.of("apps/v1", "deployments", namespace)
    made = deployment("a")
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    made["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    deployments.create(made).ok(201)
    volume = {"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/"}}
    patch = {
        "spec": {
            "strategy": {"$retainKeys": ["type"], "type": "Recreate"},
            "template": {"spec": {"volumes": [volume]}},
        }
    }
    patched = deployments.patch("a", patch, kind=STRATEGIC_PATCH).ok()["spec"]
    assert patched["strategy"] == {"type": "Recreate"}
    assert patched["template"]["spec"]["volumes"] == [
        {"name": "v", "hostPath": {"path": "/", "type": ""}}
    ]


def test_an_unknown_directive_is_refused(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a", labels={"x": "1"})).ok(201)
    patch = {"metadata": {"labels": {"$patch": "sometimes"}}}
    answer = maps.patch("a", patch, kind=STRATEGIC_PATCH)
    assert answer.code in {400, 422, 500}, str(answer)  # the real server blames itself
