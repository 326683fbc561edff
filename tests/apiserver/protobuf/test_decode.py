"""Bodies that a real kubectl sent, and bytes that are never sent."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.apiserver.errors import ApiError
from unisono.apiserver.protobuf.decode import MAGIC, decode

BODIES = {
    path.stem: json.loads(path.read_text())
    for path in sorted((Path(__file__).parent / "bodies").glob("*.json"))
}
PRINTED = [name for name, case in BODIES.items() if "printed" in case]

# kubectl prints these even when nothing is in them; the API treats absent and empty alike.
EMPTY = ("loadBalancer", "metadata", "resources", "spec", "status", "strategy")


def _body(name: str) -> bytes:
    return base64.b64decode(BODIES[name]["body"])


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: _without_empty(item) for key, item in value.items() if item is not None}
    return {key: item for key, item in fields.items() if item != {} or key not in EMPTY}


def _message(*fields: tuple[int, bytes]) -> bytes:
    """Write a message whose fields are all bytes."""
    return b"".join(
        _varint(number << 3 | 2) + _varint(len(value)) + value for number, value in fields
    )


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value % 128 | 128]) + _varint(value // 128)


def _envelope(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return MAGIC + _message((1, _message((1, api_version), (2, kind))), (2, raw))


def _refusal(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        decode(body)
    return caught.value


# ---- what kubectl sends --------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRINTED)
def test_a_body_is_what_the_same_command_prints(name: str) -> None:
    assert _without_empty(decode(_body(name))) == _without_empty(BODIES[name]["printed"])


REVIEW = "authorization.k8s.io/v1"

SENT: dict[str, dict[str, Any]] = {
    "can-i": {
        "apiVersion": REVIEW,
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "create",
                "group": "batch",
                "resource": "jobs",
            }
        },
        "status": {"allowed": False},
    },
    "can-i-named": {
        "apiVersion": REVIEW,
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {
                "namespace": "team-a",
                "verb": "get",
                "resource": "pods",
                "subresource": "log",
                "name": "p1",
            }
        },
        "status": {"allowed": False},
    },
    "can-i-path": {
        "apiVersion": REVIEW,
        "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}},
        "status": {"allowed": False},
    },
    "can-i-list": {
        "apiVersion": REVIEW,
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "team-a"},
        "status": {"incomplete": False},
    },
    "drain-delete": {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0},
    "token": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": ["api"], "expirationSeconds": 3600},
        "status": {"token": ""},
    },
    "token-bound": {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p1"}},
        "status": {"token": ""},
    },
    "whoami": {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
}


@pytest.mark.parametrize("name", SENT)
def test_a_body_that_kubectl_does_not_print(name: str) -> None:
    assert decode(_body(name)) == SENT[name]


def test_every_recorded_body_is_looked_at() -> None:
    assert set(BODIES) == set(PRINTED) | set(SENT)


# ---- values --------------------------------------------------------------------------------------


def test_a_time_has_seconds_and_a_micro_time_has_six_digits() -> None:
    when = b"\x08\xe8\x07\x10\x80\xa2\xa9\x07"  # 1000 seconds and 15,356,160 nanoseconds
    lease = _envelope(b"coordination.k8s.io/v1", b"Lease", _message((2, _message((4, when)))))
    assert decode(lease)["spec"] == {"renewTime": "1970-01-01T00:16:40.015356Z"}
    pod = _envelope(b"v1", b"Pod", _message((1, _message((8, when)))))
    assert decode(pod)["metadata"] == {"creationTimestamp": "1970-01-01T00:16:40Z"}


def test_a_time_that_is_not_set_is_absent() -> None:
    pod = _envelope(b"v1", b"Pod", _message((1, _message((1, b"p"), (8, b"")))))
    assert decode(pod)["metadata"] == {"name": "p"}


def test_managed_fields_are_json() -> None:
    entry = _message((1, b"kubectl"), (7, _message((1, b'{"f:spec":{}}'))))
    pod = _envelope(b"v1", b"Pod", _message((1, _message((17, entry)))))
    managed = [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]
    assert decode(pod)["metadata"] == {"managedFields": managed}


def test_numbers_of_a_list_may_stand_together() -> None:
    policy = _message((1, _message((1, b"Ignore"), (2, _message((2, b"In"), (3, b"\x01\x2a"))))))
    body = _envelope(b"batch/v1", b"Job", _message((2, _message((11, policy)))))
    (rule,) = decode(body)["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"] == {"operator": "In", "values": [1, 42]}


def test_a_map_entry_without_value_is_empty() -> None:
    body = _envelope(b"v1", b"ConfigMap", _message((2, _message((1, b"key")))))
    assert decode(body)["data"] == {"key": ""}


def test_what_a_user_carries_besides_is_a_map_of_lists() -> None:
    extra = _message((1, b"scopes"), (2, _message((1, b"a"), (1, b"b"))))
    body = _envelope(
        b"authorization.k8s.io/v1", b"SubjectAccessReview", _message((2, _message((5, extra))))
    )
    assert decode(body)["spec"] == {"extra": {"scopes": ["a", "b"]}}


# ---- refusals ------------------------------------------------------------------------------------


def test_an_unknown_field_is_refused_with_its_place_and_a_way_out() -> None:
    spec = _message((6, _message((2, _message((99, b"new"))))))
    refusal = _refusal(_envelope(b"batch/v1", b"Job", _message((2, spec))))
    assert (refusal.code, refusal.reason) == (415, "UnsupportedMediaType")
    assert "Job: field 99 in spec.template.spec (PodSpec)" in refusal.message
    assert "kubectl apply -f" in refusal.message


def test_an_unknown_kind_is_refused() -> None:
    refusal = _refusal(_envelope(b"example.com/v1", b"Widget", b""))
    assert refusal.code == 415
    assert "example.com/v1 Widget" in refusal.message


def test_another_encoding_is_refused() -> None:
    body = MAGIC + _message((2, b""), (3, b"gzip"))
    assert _refusal(body).code == 415


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"\x0a", "is cut off"),
        (b"\x0a\x05ab", "is cut off"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 64 bits"),
        (b"\x02\x00", "the number 0"),
        (b"\x0b", "unknown wire type 3"),
        (b"\x08\x01", "a number instead of text or a message in metadata"),
        (_message((1, _message((1, b"\xff")))), "not UTF-8 in metadata.name"),
        (_message((1, b"\x3a\x00")), "no number in metadata.generation"),
        (_message((1, _message((17, _message((7, _message((1, b"{")))))))), "JSON in metadata"),
        (_message((1, _message((8, b"\x08" + b"\xff" * 8 + b"\x7f")))), "a time before year 1"),
    ],
)
def test_broken_bytes_are_a_bad_request(raw: bytes, what: str) -> None:
    refusal = _refusal(_envelope(b"v1", b"Pod", raw))
    assert (refusal.code, refusal.reason) == (400, "BadRequest")
    assert what in refusal.message


def test_a_body_without_the_mark_is_a_bad_request() -> None:
    assert _refusal(b'{"kind":"Pod"}').code == 400


# ---- anything ------------------------------------------------------------------------------------


def _survives(body: bytes) -> None:
    code = 200
    try:
        json.dumps(decode(body))
    except ApiError as refusal:
        code = refusal.code
    assert code in (200, 400, 415)


@given(st.binary(max_size=200))
def test_any_envelope_is_an_object_or_a_refusal(tail: bytes) -> None:
    _survives(MAGIC + tail)


KINDS = sorted(
    {
        (case["printed"]["apiVersion"], case["printed"]["kind"])
        for case in (BODIES[name] for name in PRINTED)
    }
)


@given(st.sampled_from(KINDS), st.binary(max_size=100))
def test_any_content_is_an_object_or_a_refusal(kind: tuple[str, str], raw: bytes) -> None:
    _survives(_envelope(kind[0].encode(), kind[1].encode(), raw))


@given(st.sampled_from(sorted(BODIES)), st.data())
def test_a_damaged_body_is_an_object_or_a_refusal(name: str, data: st.DataObject) -> None:
    body = bytearray(_body(name))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(len(MAGIC), len(body) - 1))
        body[at] = data.draw(st.integers(0, 255))
    _survives(bytes(body))


def test_a_body_that_ends_early_is_an_object_or_a_refusal() -> None:
    for name in BODIES:
        body = _body(name)
        for length in range(len(body)):
            _survives(body[:length])


def test_kinds_that_go_clients_write_though_kubectl_does_not() -> None:
    """Typed clients send every kind of Kubernetes' own in this form."""
    overhead = _message((1, _message((1, b"cpu"), (2, _message((1, b"250m"))))))
    runtime_class = _message((1, _message((1, b"kata"))), (2, b"kata-qemu"), (3, overhead))
    assert decode(_envelope(b"node.k8s.io/v1", b"RuntimeClass", runtime_class)) == {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata-qemu",
        "overhead": {"podFixed": {"cpu": "250m"}},
    }
    volume = _message((3, _message((1, b"/data"))))
    source = _message((2, volume), (3, b"ReadWriteOnce"))
    persistent = _message((1, _message((1, b"disk"))), (2, source))
    assert decode(_envelope(b"v1", b"PersistentVolume", persistent))["spec"] == {
        "hostPath": {"path": "/data"},
        "accessModes": ["ReadWriteOnce"],
    }
    opaque = _message((1, b"gpu.example.com"), (2, _message((1, b'{"shared":true}'))))
    config = _message((2, _message((1, _message((1, opaque))))))
    made = _message((1, _message((1, b"gpu"))), (2, config))
    found = decode(_envelope(b"resource.k8s.io/v1", b"DeviceClass", made))
    assert found["spec"]["config"] == [
        {"opaque": {"driver": "gpu.example.com", "parameters": {"shared": True}}}
    ]
