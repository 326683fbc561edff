"""ConfigMaps and Secrets."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.apiserver.surroundings import created, refusals
from unisono.apiserver.errors import ApiError

Json = dict[str, Any]


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
