"""Server-side apply: the owners of a field, conflicts, and what is removed without an owner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import APPLY_PATCH, Api, Collection, Manifest
from tests.conformance.objects import config_map, container, deployment, pod, service


def owners(thing: Manifest) -> dict[tuple[str, str], Any]:
    """Return the fields of every (manager, operation)."""
    return {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in thing["metadata"].get("managedFields", [])
    }


@pytest.fixture
def maps(api: Api, namespace: str) -> Collection:
    return api.of("v1", "configmaps", namespace)


def test_the_first_apply_creates(maps: Collection) -> None:
    made = maps.apply(config_map("a", {"k": "v"}, labels={"x": "1"})).ok(201)
    assert made["data"] == {"k": "v"}
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("tester", "Apply", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}, "f:metadata": {"f:labels": {"f:x": {}}}}


def test_the_same_again_changes_nothing(maps: Collection) -> None:
    made = maps.apply(config_map("a", {"k": "v"})).ok(201)
    assert maps.apply(config_map("a", {"k": "v"})).ok() == made


def test_bodies_may_be_yaml(api: Api, maps: Collection) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    v\n"
    made = maps.patch("a", text, kind=APPLY_PATCH, fieldManager="tester").ok(201)
    assert made["data"] == {"k": "v\n"}


def test_conflict_force_and_removal(maps: Collection) -> None:
    maps.apply(config_map("a", labels={"x": "1"}), manager="A").ok(201)

    answer = maps.apply(config_map("a", labels={"x": "2"}), manager="B")
    assert answer.causes(409, "Conflict") == {("FieldManagerConflict", ".metadata.labels.x")}
    assert '"A"' in answer.json()["details"]["causes"][0]["message"]

    forced = maps.apply(config_map("a", labels={"x": "2"}), manager="B", force=True).ok()
    assert forced["metadata"]["labels"] == {"x": "2"}
    assert owners(forced) == {("B", "Apply"): {"f:metadata": {"f:labels": {"f:x": {}}}}}

    bare = maps.apply(config_map("a"), manager="B").ok()
    assert "labels" not in bare["metadata"]
    assert owners(bare) == {}


def test_every_conflict_is_reported(maps: Collection) -> None:
    maps.apply(config_map("a", {"j": "1", "k": "1"}, labels={"x": "1"}), manager="A").ok(201)
    answer = maps.apply(config_map("a", {"j": "2", "k": "2"}, labels={"x": "1"}), manager="B")
    assert answer.causes(409, "Conflict") == {
        ("FieldManagerConflict", ".data.j"),
        ("FieldManagerConflict", ".data.k"),
    }


def test_the_same_value_can_have_two_owners(maps: Collection) -> None:
    maps.apply(config_map("a", {"k": "v"}), manager="A").ok(201)
    shared = maps.apply(config_map("a", {"k": "v"}), manager="B").ok()
    assert owners(shared) == {
        ("A", "Apply"): {"f:data": {"f:k": {}}},
        ("B", "Apply"): {"f:data": {"f:k": {}}},
    }
    left = maps.apply(config_map("a"), manager="A").ok()
    assert left["data"] == {"k": "v"}
    assert owners(left) == {("B", "Apply"): {"f:data": {"f:k": {}}}}


def test_conflict_with_a_manager_that_updated_the_field(maps: Collection) -> None:
    maps.apply(config_map("a", labels={"x": "1"}), manager="A").ok(201)
    label = {"metadata": {"labels": {"x": "2"}}}
    labelled = maps.patch("a", label, fieldManager="labeller").ok()
    assert owners(labelled) == {
        ("labeller", "Update"): {"f:metadata": {"f:labels": {"f:x": {}}}},
    }
    answer = maps.apply(config_map("a", labels={"x": "1"}), manager="A")
    answer.refused(409, "Conflict")
    assert '"labeller"' in answer.json()["message"]

    maps.patch("a", {"metadata": {"labels": {"x": None}}}, fieldManager="labeller").ok()
    again = maps.apply(config_map("a", labels={"x": "1"}), manager="A").ok()
    assert owners(again) == {("A", "Apply"): {"f:metadata": {"f:labels": {"f:x": {}}}}}


def test_what_an_update_leaves_alone_keeps_its_owner(maps: Collection) -> None:
    made = maps.apply(config_map("a", {"j": "1", "k": "1"}), manager="A").ok(201)
    made["data"]["k"] = "2"
    replaced = maps.replace(made, fieldManager="editor").ok()
    assert owners(replaced) == {
        ("A", "Apply"): {"f:data": {"f:j": {}}},
        ("editor", "Update"): {"f:data": {"f:k": {}}},
    }


def test_what_others_added_survives_an_apply(maps: Collection) -> None:
    maps.apply(config_map("a", {"k": "v"})).ok(201)
    maps.patch("a", {"data": {"l": "w"}}, fieldManager="editor").ok()
    assert maps.apply(config_map("a", {"k": "w"})).ok()["data"] == {"k": "w", "l": "w"}
    assert maps.apply(config_map("a")).ok()["data"] == {"l": "w"}


def test_apply_after_a_create_shares_what_is_equal(maps: Collection) -> None:
    maps.create(config_map("a", {"k": "v", "l": "w"}), fieldManager="creator").ok(201)
    applied = maps.apply(config_map("a", {"k": "v"})).ok()
    assert owners(applied) == {
        ("creator", "Update"): {"f:data": {".": {}, "f:k": {}, "f:l": {}}},
        ("tester", "Apply"): {"f:data": {"f:k": {}}},
    }
    answer = maps.apply(config_map("a", {"k": "other"}))
    assert answer.causes(409, "Conflict") == {("FieldManagerConflict", ".data.k")}


def test_ports_are_owned_by_port_and_protocol(api: Api, namespace: str) -> None:
    deployments = api.of("apps/v1", "deployments", namespace)

    def applied(*ports: Manifest) -> Any:
        manifest = deployment("a")
        manifest["spec"]["template"]["spec"]["containers"] = [container(ports=list(ports))]
        answer = deployments.apply(manifest)
        return answer.ok(answer.code if answer.code == 201 else 200)

    def fields(thing: Any) -> Any:
        spec = owners(thing)["tester", "Apply"]["f:spec"]["f:template"]["f:spec"]
        return spec["f:containers"]['k:{"name":"main"}']["f:ports"]

    one = applied({"containerPort": 80})
    assert fields(one) == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
    }
    two = applied({"containerPort": 80}, {"containerPort": 80, "protocol": "UDP", "name": "dns"})
    assert set(fields(two)) == {
        'k:{"containerPort":80,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"UDP"}',
    }
    last = applied({"containerPort": 80, "protocol": "UDP"})
    ports = last["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "protocol": "UDP"}]


def test_containers_of_two_appliers_stand_side_by_side(api: Api, namespace: str) -> None:
    deployments = api.of("apps/v1", "deployments", namespace)
    first, second = deployment("a"), deployment("a")
    second["spec"]["template"]["spec"]["containers"] = [container("side")]
    deployments.apply(first, manager="A").ok(201)
    both = deployments.apply(second, manager="B").ok()
    names = [each["name"] for each in both["spec"]["template"]["spec"]["containers"]]
    assert names == ["main", "side"]
    second["spec"]["template"]["spec"]["containers"] = [container("main")]
    alone = deployments.apply(second, manager="B").ok()
    names = [each["name"] for each in alone["spec"]["template"]["spec"]["containers"]]
    assert names == ["main"]


def test_an_atomic_list_has_one_owner(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    tolerations = [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    made = pods.apply(
        pod("a", {"containers": [container(command=["sleep", "1"])], "tolerations": tolerations})
    ).ok(201)
    spec = owners(made)["tester", "Apply"]["f:spec"]
    assert spec["f:tolerations"] == {}
    assert spec["f:containers"]['k:{"name":"main"}']["f:command"] == {}


def test_an_atomic_map_has_one_owner(api: Api, namespace: str) -> None:
    services = api.of("v1", "services", namespace)
    made = services.apply(service("a")).ok(201)
    spec = owners(made)["tester", "Apply"]["f:spec"]
    assert spec["f:selector"] == {}
    assert spec["f:ports"] == {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}


def test_finalizers_are_a_set_of_owned_values(maps: Collection) -> None:
    maps.apply(config_map("a", finalizers=["a.b/c"]), manager="A").ok(201)
    both = maps.apply(config_map("a", finalizers=["a.b/d"]), manager="B").ok()
    assert sorted(both["metadata"]["finalizers"]) == ["a.b/c", "a.b/d"]
    assert owners(both)["B", "Apply"] == {"f:metadata": {"f:finalizers": {'v:"a.b/d"': {}}}}
    less = maps.apply(config_map("a"), manager="A").ok()
    assert less["metadata"]["finalizers"] == ["a.b/d"]


def test_defaults_are_not_owned_by_the_applier(api: Api, namespace: str) -> None:
    made = api.of("v1", "pods", namespace).apply(pod("a")).ok(201)
    assert owners(made)["tester", "Apply"] == {
        "f:spec": {
            "f:containers": {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}},
        }
    }
    assert made["spec"]["restartPolicy"] == "Always"


def test_the_manager_is_required(maps: Collection) -> None:
    answer = maps.apply(config_map("a"), manager=None)
    assert answer.causes() == {("FieldValueRequired", "fieldManager")}


@pytest.mark.parametrize("manager", ["m" * 129, "a\x07b"])
def test_the_manager_must_be_short_and_printable(maps: Collection, manager: str) -> None:
    answer = maps.apply(config_map("a"), manager=manager)
    assert {field for _, field in answer.causes()} == {"fieldManager"}


def test_managed_fields_cannot_be_applied(maps: Collection) -> None:
    entry = {"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    answer = maps.apply(config_map("a", managedFields=[entry]))
    answer.refused(400, "BadRequest")


def test_the_kind_must_be_that_of_the_path(maps: Collection) -> None:
    maps.apply({**config_map("a"), "kind": "Secret"}).refused(400, "BadRequest")
    maps.apply({"metadata": {"name": "a"}, "data": {}}).refused(400, "BadRequest")


def test_a_resource_version_is_a_condition(maps: Collection) -> None:
    old = maps.apply(config_map("a", {"k": "1"})).ok(201)["metadata"]["resourceVersion"]
    maps.apply(config_map("a", {"k": "2"}, resourceVersion=old)).ok()
    maps.apply(config_map("a", {"k": "3"}, resourceVersion=old)).refused(409, "Conflict")


def test_a_uid_says_that_it_must_exist(maps: Collection) -> None:
    uid = "12345678-1234-4234-8234-123456789012"
    maps.apply(config_map("a", uid=uid)).refused(409, "Conflict")
    maps.apply(config_map("a")).ok(201)
    answer = maps.apply(config_map("a", {"k": "v"}, uid=uid))
    assert answer.causes() == {("FieldValueInvalid", "metadata.uid")}


def test_duplicate_keys_of_a_list_are_refused(api: Api, namespace: str) -> None:
    twice = pod("a", {"containers": [container(), container()]})
    answer = api.of("v1", "pods", namespace).apply(twice)
    assert answer.code in {400, 422, 500}, str(answer)
    assert "main" in answer.json()["message"]


def test_the_name_in_the_body_must_be_that_of_the_path(maps: Collection) -> None:
    answer = maps.patch("a", config_map("b"), kind=APPLY_PATCH, fieldManager="tester")
    answer.refused(400, "BadRequest")


def test_apply_in_an_unknown_namespace_is_not_found(api: Api) -> None:
    api.of("v1", "configmaps", "nowhere").apply(config_map("a")).refused(404, "NotFound")


def test_a_dry_run_applies_nothing(maps: Collection) -> None:
    assert maps.apply(config_map("a", {"k": "v"}), dryRun="All").ok(201)["data"] == {"k": "v"}
    maps.read("a").refused(404, "NotFound")


def test_null_is_a_value_that_is_claimed(maps: Collection) -> None:
    maps.apply(config_map("a", {"k": "v"}), manager="A").ok(201)
    nothing = {**config_map("a"), "data": {"k": None}}
    answer = maps.apply(nothing, manager="B")
    assert answer.causes(409, "Conflict") == {("FieldManagerConflict", ".data.k")}
