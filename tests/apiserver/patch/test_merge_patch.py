"""JSON merge patch: the table of RFC 7386, and an oracle that is the RFC's own pseudocode."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.apiserver.patch.strategies import json_objects
from tests.support.effort import effort
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.json_patch import merge_patch


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": [1]}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
        ({}, {"a": [None, {"b": None}]}, {"a": [None, {"b": None}]}),
    ],
)
def test_the_table(target: Json, patch: Json, expected: Json) -> None:
    assert merge_patch(target, patch) == expected


def _oracle(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _oracle(result.get(name), value)
    return result


@pytest.mark.slow
@effort(120)
@given(target=json_objects(), patch=json_objects())
def test_as_the_rfc_says(target: Json, patch: Json) -> None:
    before = copied(target), copied(patch)
    result = merge_patch(target, patch)
    assert result == _oracle(target, patch)
    assert merge_patch(result, patch) == result
    assert (target, patch) == before


@pytest.mark.parametrize("patch", [None, [], "text", 5])
def test_what_is_no_object_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        merge_patch({"a": 1}, patch)
    assert refusal.value.code == 400


def test_endless_nesting_is_refused() -> None:
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(ApiError) as refusal:
        merge_patch({}, deep)
    assert refusal.value.code == 400
