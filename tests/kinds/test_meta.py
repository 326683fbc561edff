"""Names, labels and what else metadata may hold."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.kinds.decode import decode
from unisono.kinds.meta import (
    ObjectMeta,
    check_metadata,
    wrong_with_dns_label,
    wrong_with_label_key,
    wrong_with_label_value,
    wrong_with_subdomain,
)


def faults(raw: dict[str, Any], *, namespaced: bool = True) -> list[tuple[str, str]]:
    metadata, problems = decode(ObjectMeta, raw)
    assert metadata is not None, problems
    found = check_metadata(metadata, namespaced=namespaced)
    return [(problem.path, problem.message) for problem in found]


def test_everything_that_an_api_server_writes_is_accepted() -> None:
    raw = {
        "name": "a",
        "generateName": "a-",
        "namespace": "team-a",
        "labels": {"app.kubernetes.io/name": "x", "empty": ""},
        "annotations": {"Any.Case/Works": "and any text at all\n" * 100},
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "deletionTimestamp": "2026-01-31T12:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "uid": "u",
        "ownerReferences": [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "j",
                "uid": "u",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        "resourceVersion": "1",
        "generation": 2,
        "managedFields": [{"manager": "kubectl"}],
        "selfLink": "/x",
    }
    assert faults(raw) == []


def test_a_name_is_needed_or_the_beginning_of_one() -> None:
    assert faults({}) == [("metadata.name", "is required")]
    assert faults({"generateName": "a-"}) == []


def test_an_over_long_name_is_named_with_its_length() -> None:
    assert faults({"name": "a" * 253}) == []
    assert faults({"name": "a" * 254}) == [
        ("metadata.name", "has 254 characters; a name has at most 253")
    ]
    assert faults({"name": "a", "namespace": "n" * 64}) == [
        ("metadata.namespace", "has 64 characters; a name here has at most 63")
    ]


def test_a_stray_namespace_on_a_cluster_wide_object_is_no_fault() -> None:
    assert faults({"name": "a", "namespace": "b"}, namespaced=False) == []


def test_bad_labels_and_annotations_are_found_by_key() -> None:
    raw = {"name": "a", "labels": {"-bad": "x", "ok": "not ok"}, "annotations": {"a b": "x"}}
    assert [path for path, _ in faults(raw)] == [
        "metadata.labels[-bad]",
        "metadata.labels[ok]",
        "metadata.annotations[a b]",
    ]


def test_annotations_have_a_total_size() -> None:
    ((path, message),) = faults({"name": "a", "annotations": {"k": "x" * 262144}})
    assert path == "metadata.annotations"
    assert "262145 bytes" in message


@pytest.mark.parametrize("name", ["a", "a-b.c-d", "0", "a.b", "x" * 253])
def test_subdomains(name: str) -> None:
    assert wrong_with_subdomain(name) == ""


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "-a", "a-", ".a", "a..b", "a.", "ä", "a\n", "a b"]
)
def test_what_is_no_subdomain(name: str) -> None:
    assert "not a valid name" in wrong_with_subdomain(name)


@pytest.mark.parametrize("name", ["", "a.b", "A", "-a", "a-", "a\n"])
def test_what_is_no_dns_label(name: str) -> None:
    assert "not a valid name" in wrong_with_dns_label(name)


@pytest.mark.parametrize("key", ["a", "A_b.c-d", "a.b/c", "nvidia.com/gpu", "x" * 63])
def test_label_keys(key: str) -> None:
    assert wrong_with_label_key(key) == ""


@pytest.mark.parametrize("key", ["", "/a", "a/", "a/b/c", "A.b/c", "-a", "x" * 64, "a\n", "ä"])
def test_what_is_no_label_key(key: str) -> None:
    assert wrong_with_label_key(key) != ""


@pytest.mark.parametrize("value", ["", "a", "A_b.c-d", "1", "x" * 63])
def test_label_values(value: str) -> None:
    assert wrong_with_label_value(value) == ""


@pytest.mark.parametrize("value", ["-a", "a-", "a b", "x" * 64, "a/b", "a\n"])
def test_what_is_no_label_value(value: str) -> None:
    assert wrong_with_label_value(value) != ""
