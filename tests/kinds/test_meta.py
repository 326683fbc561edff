"""Metadata with its names and labels, label selectors, and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.engine.model.selection import selects
from unisono.kinds.decode import decode
from unisono.kinds.meta import (
    Condition,
    LabelSelector,
    ObjectMeta,
    check_metadata,
    check_selector,
    condition,
    is_selected,
    selector_of,
    wrong_with_dns_label,
    wrong_with_label_key,
    wrong_with_label_value,
    wrong_with_subdomain,
)
from unisono.kinds.scalar import Timestamp


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


def selector(raw: dict[str, Any]) -> LabelSelector:
    made, problems = decode(LabelSelector, raw)
    assert made is not None, problems
    return made


@pytest.mark.parametrize(
    ("raw", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"team": "a"}}, True),
        ({"matchLabels": {"team": "b"}}, False),
        ({"matchLabels": {"team": "a", "env": "x"}}, False),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}, True),
    ],
)
def test_selectors_match_as_in_kubernetes(raw: dict[str, Any], matches: bool) -> None:
    made = selector(raw)
    assert list(check_selector(made, "s")) == []
    assert selects(selector_of(made), {"team": "a"}) is matches


def test_faults_have_paths() -> None:
    made = selector(
        {
            "matchLabels": {"bad key": "x"},
            "matchExpressions": [
                {"key": "-", "operator": "In"},
                {"key": "k", "operator": "Exists", "values": ["v"]},
                {"key": "k", "operator": "In", "values": ["ok", "not ok"]},
            ],
        }
    )
    assert [problem.path for problem in check_selector(made, "spec.namespaceSelector")] == [
        "spec.namespaceSelector.matchLabels[bad key]",
        "spec.namespaceSelector.matchExpressions[0].key",
        "spec.namespaceSelector.matchExpressions[0].values",
        "spec.namespaceSelector.matchExpressions[1].values",
        "spec.namespaceSelector.matchExpressions[2].values[1]",
    ]


def test_a_condition_is_found_by_its_type() -> None:
    ready = Condition(
        type="Ready",
        status="True",
        last_transition_time=Timestamp.from_raw("1970-01-01T00:00:05Z"),
    )
    gone = Condition(type="Gone", status="Unknown")
    assert condition([ready, gone], "Ready") is ready
    assert condition([ready, gone], "Other") is None
    assert ready.is_true
    assert ready.since == 5000
    assert not gone.is_true
    assert gone.since is None


def test_the_last_of_several_counts() -> None:
    first, second = Condition(type="A", status="True"), Condition(type="A", status="False")
    assert condition([first, second], "A") is second


def test_labels_are_selected() -> None:
    assert is_selected({}, {})
    assert is_selected({"matchLabels": {"a": "b"}}, {"a": "b"})
    assert not is_selected({"matchLabels": {"a": "b"}}, {"a": "c"})
