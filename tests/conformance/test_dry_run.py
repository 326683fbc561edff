"""A dry run does everything but store."""

from __future__ import annotations

from tests.conformance.client import Api
from tests.conformance.objects import config_map, job


def test_create(api: Api, namespace: str) -> None:
    jobs = api.of("batch/v1", "jobs", namespace)
    made = jobs.create(job("a"), dryRun="All").ok(201)
    assert made["spec"]["backoffLimit"] == 6
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    jobs.read("a").refused(404, "NotFound")


def test_create_what_exists_is_refused(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    maps.create(config_map("a"), dryRun="All").refused(409, "AlreadyExists")


def test_generate_name(api: Api, namespace: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}}
    maps = api.of("v1", "configmaps", namespace)
    assert maps.create(manifest, dryRun="All").ok(201)["metadata"]["name"].startswith("run-")
    assert maps.names() == []


def test_replace_and_patch(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a", {"k": "1"})).ok(201)
    assert maps.replace(config_map("a", {"k": "2"}), dryRun="All").ok()["data"] == {"k": "2"}
    assert maps.patch("a", {"data": {"k": "3"}}, dryRun="All").ok()["data"] == {"k": "3"}
    assert maps.read("a").ok() == made


def test_a_dry_run_is_validated(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    assert maps.create(config_map("Bad"), dryRun="All").code == 422
    old = maps.create(config_map("a")).ok(201)
    maps.replace(config_map("a", {"k": "v"})).ok()
    maps.replace({**old, "data": {"k": "w"}}, dryRun="All").refused(409, "Conflict")


def test_delete(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    made = maps.create(config_map("a")).ok(201)
    maps.delete("a", dryRun="All").ok()
    maps.delete("a", {"dryRun": ["All"]}).ok()
    maps.delete_all(dryRun="All").ok()
    assert maps.read("a").ok() == made


def test_any_other_value_is_invalid(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    answer = maps.create(config_map("a"), dryRun="Some")
    assert answer.causes() == {("FieldValueNotSupported", "dryRun")}
    maps.read("a").refused(404, "NotFound")
