"""Refusals: every one is a Status with code, reason and details."""

from __future__ import annotations

import pytest

from tests.conformance.client import Api
from tests.conformance.objects import config_map, job, pod


def test_an_object_that_is_not_there(api: Api, namespace: str) -> None:
    status = api.of("v1", "pods", namespace).read("absent").refused(404, "NotFound")
    assert status["message"] == 'pods "absent" not found'
    assert status["details"] == {"name": "absent", "kind": "pods"}
    status = api.of("batch/v1", "jobs", namespace).delete("absent").refused(404, "NotFound")
    assert status["message"] == 'jobs.batch "absent" not found'
    assert status["details"] == {"name": "absent", "group": "batch", "kind": "jobs"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/rockets",
        "/apis/batch/v1/rockets",
        "/api/v1/namespaces/default/rockets/a",
        "/api/v1/namespaces/default/pods/a/rockets",
        "/api/v1/pods/a/b/c/d",
        "/api/v2/pods",
        "/apis/batch/v9/jobs",
    ],
)
def test_a_kind_that_is_not_there(api: Api, path: str) -> None:
    status = api.get(path).refused(404, "NotFound")
    assert status["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize(
    "path", ["/nowhere", "/apis/no.such.group", "/apis/no.such.group/v1/things"]
)
def test_a_path_that_is_not_there(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_every_mistake_is_told_at_once(api: Api, namespace: str) -> None:
    wrong = job(
        "a",
        {
            "backoffLimit": -1,
            "completionMode": "Sometimes",
            "template": {"spec": {"restartPolicy": "Always", "containers": []}},
        },
        labels={"x": "a b"},
    )
    answer = api.of("batch/v1", "jobs", namespace).create(wrong)
    assert answer.causes() >= {
        ("FieldValueInvalid", "metadata.labels"),
        ("FieldValueInvalid", "spec.backoffLimit"),
        ("FieldValueNotSupported", "spec.completionMode"),
        ("FieldValueRequired", "spec.template.spec.containers"),
        ("FieldValueRequired", "spec.template.spec.restartPolicy"),
    }
    details = answer.json()["details"]
    assert (details["name"], details["group"], details["kind"]) == ("a", "batch", "Job")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"text"', b"{} {}", b'{"kind": 7}', b"\xff\xfe"], ids=repr
)
def test_a_body_that_cannot_be_read(api: Api, namespace: str, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    answer = api.request("POST", path, body, headers=headers)
    assert answer.code in {400, 422}, str(answer)
    assert answer.json()["kind"] == "Status"


def test_an_unknown_content_type(api: Api, namespace: str) -> None:
    headers = {"Content-Type": "text/csv"}
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    answer = api.request("POST", path, config_map("a"), headers=headers)
    answer.refused(415, "UnsupportedMediaType")


def test_json_is_what_a_body_without_a_type_is(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.request("POST", path, config_map("a"), headers={"Content-Type": None}).ok(201)


@pytest.mark.parametrize("accept", ["text/html", "image/png", "application/json;as=Poem;v=v1"])
def test_an_accept_that_cannot_be_met(api: Api, namespace: str, accept: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    api.get(path, headers={"Accept": accept}).refused(406, "NotAcceptable")


@pytest.mark.parametrize(
    "accept",
    [None, "*/*", "text/html, application/json;q=0.5", "application/json; charset=utf-8"],
)
def test_an_accept_that_json_meets(api: Api, namespace: str, accept: str | None) -> None:
    answer = api.get(f"/api/v1/namespaces/{namespace}/configmaps", headers={"Accept": accept})
    assert answer.ok()["kind"] == "ConfigMapList"
    assert answer.headers["Content-Type"].startswith("application/json")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/namespaces/default/configmaps/a"),
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/namespaces/default/pods/a/status"),
        ("GET", "/api/v1/namespaces/default/bindings"),
        ("GET", "/api/v1/namespaces/default/pods/a/eviction"),
    ],
)
def test_a_method_that_a_path_does_not_have(api: Api, method: str, path: str) -> None:
    body = config_map("a") if method != "GET" else None
    api.request(method, path, body).refused(405, "MethodNotAllowed")


def test_a_body_that_is_too_big(api: Api, namespace: str) -> None:
    big = config_map("a", {"k": "x" * 3_200_000})
    answer = api.of("v1", "configmaps", namespace).create(big)
    answer.refused(413, "RequestEntityTooLarge")


def test_data_that_is_too_big(api: Api, namespace: str) -> None:
    answer = api.of("v1", "configmaps", namespace).create(config_map("a", {"k": "x" * 1_100_000}))
    assert ("FieldValueTooLong", "") in {(reason, "") for reason, _ in answer.causes()}


def test_readable_json_on_request(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    assert b'\n  "kind"' not in maps.read("a").body
    assert b'\n  "kind"' in maps.read("a", pretty="true").body
    assert b'\n  "kind"' in api.get(maps.at("a"), headers={"User-Agent": "curl/8"}).body


def test_unknown_query_parameters_are_ignored(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    assert pods.create(pod("a"), colour="red").ok(201)
    assert pods.names(colour="red") == ["a"]


def test_there_is_no_head(api: Api, namespace: str) -> None:
    maps = api.of("v1", "configmaps", namespace)
    maps.create(config_map("a")).ok(201)
    answer = api.request("HEAD", maps.at("a"))
    assert (answer.code, answer.body) == (405, b"")
