"""Create: what the server adds, what it refuses, and how it names things."""

from __future__ import annotations

import re

import pytest

from tests.conformance.client import Api, changed
from tests.conformance.objects import config_map, job, node, pod

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def test_the_server_gives_identity_and_version(api: Api, namespace: str) -> None:
    made = api.of("v1", "configmaps", namespace).create(config_map("a", {"k": "v"})).ok(201)

    assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"k": "v"})
    metadata = made["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("a", namespace)
    assert _UID.fullmatch(metadata["uid"])
    assert _TIME.fullmatch(metadata["creationTimestamp"])
    assert int(metadata["resourceVersion"]) > 0
    assert "selfLink" not in metadata


def test_what_was_created_can_be_read(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a", {"k": "v"}, labels={"x": "1"})).ok(201)
    assert maps.read("a").ok() == made


def test_identity_in_the_body_is_ignored(api: Api, namespace: str) -> None:
    wish = config_map(
        "a",
        uid="12345678-1234-4234-8234-123456789012",
        creationTimestamp="2001-01-01T00:00:00Z",
        deletionTimestamp="2001-01-01T00:00:00Z",
        deletionGracePeriodSeconds=7,
        selfLink="/somewhere",
    )
    metadata = api.of("v1", "configmaps", namespace).create(wish).ok(201)["metadata"]
    assert metadata["uid"] != "12345678-1234-4234-8234-123456789012"
    assert not metadata["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in metadata
    assert "deletionGracePeriodSeconds" not in metadata


def test_resource_versions_grow_over_all_kinds(api: Api, namespace: str) -> None:
    one = api.of("v1", "configmaps", namespace).create(config_map("a")).ok(201)
    two = api.of("v1", "pods", namespace).create(pod("a")).ok(201)
    three = api.of("batch/v1", "jobs", namespace).create(job("a")).ok(201)
    versions = [int(each["metadata"]["resourceVersion"]) for each in (one, two, three)]
    assert versions == sorted(set(versions))


def test_generate_name_appends_five_characters(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}}
    made = [maps.create(manifest).ok(201)["metadata"] for _ in range(5)]
    names = {metadata["name"] for metadata in made}
    assert len(names) == 5
    assert all(re.fullmatch(r"run-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)
    assert {metadata["generateName"] for metadata in made} == {"run-"}


def test_generate_name_is_cut_so_that_the_name_has_63_characters(api: Api, namespace: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"generateName": "x" * 80},
    }
    made = api.of("v1", "configmaps", namespace).create(manifest).ok(201)
    assert re.fullmatch(r"x{58}[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])


def test_a_name_wins_over_generate_name(api: Api, namespace: str) -> None:
    made = api.of("v1", "configmaps", namespace).create(config_map("a", generateName="run-"))
    assert made.ok(201)["metadata"]["name"] == "a"


def test_a_name_is_required(api: Api, namespace: str) -> None:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    answer = api.of("v1", "configmaps", namespace).create(nameless)
    assert answer.causes() == {("FieldValueRequired", "metadata.name")}
    assert answer.json()["details"]["kind"] == "ConfigMap"


def test_the_same_name_again_is_refused(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    jobs.create(job("a")).ok(201)
    status = jobs.create(job("a")).refused(409, "AlreadyExists")
    assert status["details"] == {"name": "a", "group": "batch", "kind": "jobs"}
    assert status["message"] == 'jobs.batch "a" already exists'


def test_a_resource_version_in_the_body_is_refused(api: Api, namespace: str) -> None:
    answer = api.of("v1", "configmaps", namespace).create(config_map("a", resourceVersion="7"))
    assert answer.code >= 400
    assert "resourceVersion should not be set" in answer.json()["message"]


def test_an_unknown_namespace_is_not_found(api: Api) -> None:
    status = api.of("v1", "configmaps", "nowhere").create(config_map("a")).refused(404, "NotFound")
    assert status["details"] == {"name": "nowhere", "kind": "namespaces"}
    assert status["message"] == 'namespaces "nowhere" not found'


def test_another_namespace_than_the_path_says_is_refused(api: Api, namespace: str) -> None:
    manifest = config_map("a", namespace="default")
    api.of("v1", "configmaps", namespace).create(manifest).refused(400, "BadRequest")


def test_another_kind_than_the_path_says_is_refused(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(changed(config_map("a"), kind="Secret")).refused(400, "BadRequest")
    maps.create(changed(config_map("a"), apiVersion="v2")).refused(400, "BadRequest")


def test_a_namespace_is_needed_for_a_namespaced_kind(api: Api) -> None:
    answer = api.of("v1", "configmaps").create(config_map("a"))
    assert answer.code in {400, 404, 405}, str(answer)


def test_a_namespace_in_the_body_does_not_matter_for_a_cluster_kind(api: Api) -> None:
    made = api.of("v1", "nodes").create(node("lost", namespace="default")).ok(201)
    assert "namespace" not in made["metadata"]


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "a" * 254, "a/b", "a b"])
def test_names_are_dns_subdomains(api: Api, namespace: str, name: str) -> None:
    answer = api.of("v1", "configmaps", namespace).create(config_map(name))
    assert ("FieldValueInvalid", "metadata.name") in answer.causes()


@pytest.mark.parametrize("name", ["a.b", "a" * 64, "Upper"])
def test_names_of_namespaces_are_dns_labels(api: Api, name: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert ("FieldValueInvalid", "metadata.name") in api.of("v1", "namespaces").create(
        manifest
    ).causes()


@pytest.mark.parametrize(
    "labels",
    [{"x": "a b"}, {"x": "v" * 64}, {"bad key": "1"}, {"/x": "1"}, {"a/b/c": "1"}, {"x": "-a"}],
)
def test_labels_are_checked(api: Api, namespace: str, labels: dict[str, str]) -> None:
    answer = api.of("v1", "configmaps", namespace).create(config_map("a", labels=labels))
    assert answer.causes() == {("FieldValueInvalid", "metadata.labels")}


def test_annotations_have_a_total_size(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("fits", annotations={"a/b": "x" * 262_100})).ok(201)
    answer = maps.create(config_map("big", annotations={"a/b": "x" * 262_144}))
    assert answer.causes() == {("FieldValueTooLong", "metadata.annotations")}


def test_only_one_owner_may_be_the_controller(api: Api, namespace: str) -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
        for name in ("a", "b")
    ]
    answer = api.of("v1", "configmaps", namespace).create(config_map("c", ownerReferences=owners))
    assert answer.causes() == {("FieldValueInvalid", "metadata.ownerReferences")}


def test_bodies_may_be_yaml(api: Api, namespace: str) -> None:
    answer = api.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/configmaps",
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: 'yes'\n",
        headers={"Content-Type": "application/yaml"},
    )
    assert answer.ok(201)["data"] == {"k": "yes"}
