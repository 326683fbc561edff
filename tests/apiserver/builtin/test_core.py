"""Nodes and namespaces, config maps and secrets."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import created, refusals
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def node(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **fields}


def test_a_new_node_is_tainted_as_not_ready() -> None:
    other = {"key": "a", "effect": "NoExecute"}
    made = created("/nodes", node(spec={"taints": [other]}))
    assert made["spec"]["taints"] == [other, NOT_READY]
    assert created("/nodes", node(spec={"taints": [NOT_READY]}))["spec"]["taints"] == [NOT_READY]


def test_a_node_gives_what_it_has() -> None:
    made = created("/nodes", node(status={"capacity": {"cpu": "4"}}))
    assert made["status"]["allocatable"] == {"cpu": "4"}
    assert made["status"]["nodeInfo"]["kubeletVersion"] == ""


def test_what_a_node_cannot_be() -> None:
    assert refusals("/nodes", node(status={"capacity": {"cpu": "-4"}})) == [
        ("Invalid", "status.allocatable[cpu]"),
        ("Invalid", "status.capacity[cpu]"),
    ]
    taint = {"key": "b", "effect": "NoSchedule"}
    assert refusals("/nodes", node(spec={"taints": [taint, taint]})) == [
        ("Duplicate", "spec.taints[1]")
    ]


def test_a_node_keeps_its_machine() -> None:
    old = created("/nodes", node(spec={"providerID": "a"}))
    new = deepcopy(old)
    new["spec"]["unschedulable"] = True
    assert refusals("/nodes", new, old) == []
    new["spec"]["providerID"] = "b"
    assert refusals("/nodes", new, old) == [("Forbidden", "spec.providerID")]


def namespace(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}, **fields}


def test_a_namespace_has_its_name_as_label_and_is_active() -> None:
    made = created("/namespaces", namespace(status={"phase": "Terminating"}))
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "t"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}


def test_finalizers_of_a_namespace_stay() -> None:
    old = created("/namespaces", namespace(spec={"finalizers": ["a.b/c"]}))
    assert old["spec"]["finalizers"] == ["a.b/c", "kubernetes"]
    new = deepcopy(old)
    new["spec"]["finalizers"] = []
    assert refusals("/namespaces", new, old) == []
    assert new["spec"]["finalizers"] == ["a.b/c", "kubernetes"]


# ---- config maps and secrets ---------------------------------------------------------------------


def config(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, **fields}


def secret(**fields: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **fields}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (config(data={"a.b_c-1": "x"}, binaryData={"k": "eA=="}), []),
        (config(data={"a b": "x"}), [("Invalid", "data[a b]")]),
        (config(data={"..x": "y"}), [("Invalid", "data[..x]")]),
        (config(data={"k": "v"}, binaryData={"k": "eA=="}), [("Invalid", "data[k]")]),
        (config(data={"a": "x" * (2**20 + 1)}), [("TooLong", "")]),
    ],
)
def test_a_config_map(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals("/configmaps", made) == expected


def test_texts_of_a_secret_become_bytes() -> None:
    made = created("/secrets", secret(stringData={"a": "b"}, data={"a": "eA==", "c": "eA=="}))
    assert made["data"] == {"a": "Yg==", "c": "eA=="}
    assert "stringData" not in made
    assert made["type"] == "Opaque"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            secret(type="kubernetes.io/tls"),
            [("Required", "data[tls.crt]"), ("Required", "data[tls.key]")],
        ),
        (
            secret(type="kubernetes.io/basic-auth"),
            [("Required", "data[username]"), ("Required", "data[password]")],
        ),
        (secret(type="kubernetes.io/basic-auth", data={"password": "eA=="}), []),
        (
            secret(type="kubernetes.io/service-account-token"),
            [("Required", "metadata.annotations[kubernetes.io/service-account.name]")],
        ),
        (secret(type="my/own"), []),
    ],
)
def test_a_secret(made: Json, expected: list[tuple[str, str]]) -> None:
    assert refusals("/secrets", made) == expected


def test_bytes_that_are_none_are_a_bad_request() -> None:
    with pytest.raises(ApiError) as refused:
        refusals("/secrets", secret(data={"a": "%%%"}))
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"data": {"a": "c"}}, [("Forbidden", "data")]),
        ({"immutable": False}, [("Forbidden", "immutable")]),
        ({"metadata": {"name": "c", "labels": {"a": "b"}}}, []),
    ],
)
def test_what_is_frozen_stays(change: Json, expected: list[tuple[str, str]]) -> None:
    old = created("/configmaps", config(data={"a": "b"}, immutable=True))
    assert refusals("/configmaps", {**deepcopy(old), **change}, old) == expected


def test_the_type_of_a_secret_stays() -> None:
    old = created("/secrets", secret(data={"a": "eA=="}))
    new = {**deepcopy(old), "type": "x/y"}
    assert refusals("/secrets", new, old) == [("Invalid", "type")]
