"""Bodies in protobuf, which newer command lines send for built-in kinds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.client import Answer, Api
from tests.conformance.objects import pod
from tests.conformance.protobuf import CONTENT_TYPE, entry, envelope, message


def _post(api: Api, path: str, body: bytes, **query: Any) -> Answer:
    return api.request("POST", path, body, query=query, headers={"Content-Type": CONTENT_TYPE})


def _metadata(name: str, **labels: str) -> bytes:
    # Go writes members that are not pointers even when they are empty.
    empty = [(number, "") for number in (2, 3, 4, 5, 6)]
    entries = [(11, entry(key, value)) for key, value in labels.items()]
    return message((1, name), *empty, (7, 0), (8, b""), *entries)


def test_a_namespace(api: Api, namespace: str) -> None:
    name = f"{namespace}-two"
    raw = message((1, _metadata(name)), (2, b""), (3, message((1, ""))))
    made = _post(api, "/api/v1/namespaces", envelope("v1", "Namespace", raw)).ok(201)
    assert made["metadata"]["name"] == name
    assert made["spec"] == {"finalizers": ["kubernetes"]}


def test_a_config_map(api: Api, namespace: str) -> None:
    data = [(2, entry("empty", "")), (2, entry("k", "v")), (3, entry("b", b"\x00\x01"))]
    raw = message((1, _metadata("a", x="1")), *data, (4, False))
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    made = _post(api, path, envelope("v1", "ConfigMap", raw)).ok(201)
    assert made["data"] == {"empty": "", "k": "v"}
    assert made["binaryData"] == {"b": "AAE="}
    assert made["immutable"] is False
    assert made["metadata"]["labels"] == {"x": "1"}


def test_a_secret(api: Api, namespace: str) -> None:
    raw = message((1, _metadata("a")), (2, entry("k", b"v")), (3, "Opaque"))
    path = f"/api/v1/namespaces/{namespace}/secrets"
    made = _post(api, path, envelope("v1", "Secret", raw)).ok(201)
    assert (made["data"], made["type"]) == ({"k": "dg=="}, "Opaque")


def test_a_job(api: Api, namespace: str) -> None:
    limits = message((1, entry("nvidia.com/gpu", message((1, "2")))))
    variable = message((1, "EMPTY"), (2, ""))
    container = message(
        (1, "main"),
        (2, "busybox"),
        (3, "sleep"),
        (3, "1"),
        (5, ""),
        (7, variable),
        (8, limits),
        (13, ""),
        (14, ""),
        (16, False),
        (18, False),
    )
    volume = message((1, "scratch"), (2, message((2, message((1, ""))))))
    toleration = message((1, "gpu"), (2, "Exists"), (3, ""), (4, "NoExecute"), (5, -1))
    spec_of_pod = message(
        (1, volume),
        (2, container),
        (3, "Never"),
        (6, ""),
        (11, False),
        (22, toleration),
    )
    template = message((1, _metadata("")), (2, spec_of_pod))
    spec = message((2, 3), (6, template), (7, 0), (10, True))
    raw = message((1, _metadata("a")), (2, spec), (3, message((4, 0))))
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    made = _post(api, path, envelope("batch/v1", "Job", raw), fieldManager="me").ok(201)
    assert made["spec"]["completions"] == 3
    assert made["spec"]["backoffLimit"] == 0
    assert made["spec"]["suspend"] is True
    assert made["spec"]["parallelism"] == 1
    got = made["spec"]["template"]["spec"]
    assert got["containers"] == [
        {
            "name": "main",
            "image": "busybox",
            "command": ["sleep", "1"],
            "env": [{"name": "EMPTY"}],
            "resources": {"limits": {"nvidia.com/gpu": "2"}},
            "imagePullPolicy": "Always",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ]
    assert got["volumes"] == [{"name": "scratch", "emptyDir": {}}]
    assert got["tolerations"] == [
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1}
    ]
    assert got["restartPolicy"] == "Never"
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["me"]


def test_may_i(api: Api) -> None:
    attributes = message(
        (1, "default"), (2, "create"), (3, "batch"), (4, ""), (5, "jobs"), (6, ""), (7, "")
    )
    raw = message((1, _metadata("")), (2, message((1, attributes))), (3, message((1, False))))
    version = "authorization.k8s.io/v1"
    body = envelope(version, "SelfSubjectAccessReview", raw)
    made = _post(api, f"/apis/{version}/selfsubjectaccessreviews", body).ok(201)
    assert made["status"]["allowed"] is True
    assert made["spec"]["resourceAttributes"] == {
        "namespace": "default",
        "verb": "create",
        "group": "batch",
        "resource": "jobs",
    }


def test_self_subject_review(api: Api) -> None:
    version = "authentication.k8s.io/v1"
    body = envelope(version, "SelfSubjectReview", message((1, _metadata("")), (2, b"")))
    made = _post(api, f"/apis/{version}/selfsubjectreviews", body).ok(201)
    assert made["status"]["userInfo"]["username"]


def test_options_of_a_deletion(api: Api, namespace: str) -> None:
    pods = api.of("v1", "pods", namespace)
    pods.create(pod("a", {"nodeName": "n1"})).ok(201)
    body = envelope("v1", "DeleteOptions", message((1, 0), (4, "Background")))
    answer = api.request("DELETE", pods.at("a"), body, headers={"Content-Type": CONTENT_TYPE})
    assert answer.ok()["kind"] == "Pod"
    pods.read("a").refused(404, "NotFound")


@pytest.mark.parametrize(
    "body",
    [b"", b"k8s\x00", b"k8s\x00\xff\xff", b'{"kind":"ConfigMap"}', b"k9s\x00\x0a\x00"],
    ids=repr,
)
def test_what_is_not_protobuf_is_refused(api: Api, namespace: str, body: bytes) -> None:
    answer = _post(api, f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert 400 <= answer.code < 500, str(answer)


def test_another_kind_than_the_path_says_is_refused(api: Api, namespace: str) -> None:
    body = envelope("v1", "Secret", message((1, _metadata("a"))))
    answer = _post(api, f"/api/v1/namespaces/{namespace}/configmaps", body)
    answer.refused(400, "BadRequest")
