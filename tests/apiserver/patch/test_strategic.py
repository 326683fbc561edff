"""Strategic merge patch: directives, merge keys, and the order of merged lists."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.patch.strategies import json_objects
from tests.support.effort import effort
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.json_patch import merge_patch
from unisono.apiserver.patch.strategic import strategic_merge
from unisono.kinds.shapes.shape import Shape

_TEXT = {"type": "string"}
_BY_NAME = {
    "type": "array",
    "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "name",
    "items": {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "args": {"type": "array", "items": _TEXT},
            "ports": {
                "type": "array",
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "port",
                "items": {"type": "object"},
            },
        },
    },
}
SHAPE = Shape(
    {
        "type": "object",
        "properties": {
            "items": _BY_NAME,
            "set": {"type": "array", "items": _TEXT, "x-kubernetes-patch-strategy": "merge"},
            "list": {"type": "array", "items": _TEXT},
            "keyless": {"type": "array", "x-kubernetes-patch-strategy": "merge"},
            "replaced": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
            "object": {"type": "object"},
        },
    },
    lambda name: {},
)


def named(*names: str, **more: Any) -> list[Json]:
    """Make items with these names."""
    return [{"name": name, **more} for name in names]


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        # Objects.
        ({"object": {"a": 1}}, {"object": {"b": 2}}, {"object": {"a": 1, "b": 2}}),
        ({"object": {"a": 1}}, {"object": {"a": None, "c": None}}, {"object": {}}),
        ({"object": {"a": 1}}, {"object": {"$patch": "replace", "b": 2}}, {"object": {"b": 2}}),
        ({"object": {"a": 1}}, {"object": {"$patch": "delete"}}, {"object": {}}),
        ({}, {"object": {"$patch": "delete", "a": 1}}, {}),
        (
            {"object": {"a": 1}},
            {"object": {"$patch": "merge", "b": 2}},
            {"object": {"a": 1, "b": 2}},
        ),
        ({"replaced": {"a": 1}}, {"replaced": {"b": 2}}, {"replaced": {"b": 2}}),
        ({"object": 5}, {"object": {"a": None, "b": 1}}, {"object": {"b": 1}}),
        ({"unknown": {"a": [1]}}, {"unknown": {"a": [2]}}, {"unknown": {"a": [2]}}),
        (
            {"object": {"a": 1, "b": 2, "c": 3}},
            {"object": {"$retainKeys": ["a", "d"], "d": 4, "b": None}},
            {"object": {"a": 1, "d": 4}},
        ),
        # Lists of plain values.
        ({"list": ["a"]}, {"list": ["b"]}, {"list": ["b"]}),
        ({"set": ["a", "b"]}, {"set": ["b", "c"]}, {"set": ["a", "b", "c"]}),
        ({"set": ["a", "b"]}, {"set": ["c"]}, {"set": ["c", "a", "b"]}),
        ({}, {"set": ["b", "a"]}, {"set": ["b", "a"]}),
        (
            {"set": ["a", "b", "a"]},
            {"$deleteFromPrimitiveList/set": ["a", "z"]},
            {"set": ["b"]},
        ),
        ({}, {"$deleteFromPrimitiveList/set": ["a"]}, {}),
        (
            {"set": ["a", "b"]},
            {"$deleteFromPrimitiveList/set": ["a", "d"], "set": ["c", "d"]},
            {"set": ["c", "b"]},
        ),
        (
            {"set": ["a", "b", "c"]},
            {"$setElementOrder/set": ["c", "a"]},
            {"set": ["b", "c", "a"]},
        ),
        # Lists of objects.
        (
            {"items": [*named("a", "b", v=1)]},
            {"items": [{"name": "b", "v": 2, "w": None}]},
            {"items": [{"name": "a", "v": 1}, {"name": "b", "v": 2}]},
        ),
        ({"items": named("a", "b")}, {"items": named("c")}, {"items": named("c", "a", "b")}),
        (
            {"items": named("a", "b", "c")},
            {"items": [{"name": "b", "$patch": "delete"}]},
            {"items": named("a", "c")},
        ),
        (
            {"items": named("a", "b")},
            {"items": [{"$patch": "replace"}, *named("d", "c")]},
            {"items": named("d", "c")},
        ),
        ({"items": named("a")}, {"items": [{"$patch": "replace"}]}, {"items": []}),
        (
            {"items": named("a", "b", "c", "d")},
            {"$setElementOrder/items": named("d", "b")},
            {"items": named("a", "c", "d", "b")},
        ),
        (
            {"items": named("a", "b")},
            {"items": named("c"), "$setElementOrder/items": named("a", "c")},
            {"items": named("a", "c", "b")},
        ),
        (
            {"items": [{"name": "a", "ports": [{"port": 1}, {"port": 2}], "args": ["x"]}]},
            {"items": [{"name": "a", "ports": [{"port": 2, "v": 1}], "args": ["y"]}]},
            {"items": [{"name": "a", "ports": [{"port": 1}, {"port": 2, "v": 1}], "args": ["y"]}]},
        ),
        ({"items": None}, {"items": named("a")}, {"items": named("a")}),
        # New values lose their directives and nulls: there is nothing to direct.
        (
            {},
            {"items": [{"name": "a", "b": None, "ports": [{"port": 1, "$patch": "delete"}]}]},
            {"items": [{"name": "a", "ports": []}]},
        ),
        (
            {},
            {"object": {"$retainKeys": ["a"], "a": {"$setElementOrder/x": []}}},
            {"object": {"a": {}}},
        ),
    ],
)
def test_what_it_does(target: Json, patch: Json, expected: Json) -> None:
    before = copied(target), copied(patch)
    assert strategic_merge(target, patch, SHAPE) == expected
    assert (target, patch) == before


def test_metadata_is_known_for_every_kind() -> None:
    target = {"metadata": {"finalizers": ["a/b"], "ownerReferences": [{"uid": "1", "name": "x"}]}}
    patch = {"metadata": {"finalizers": ["c/d"], "ownerReferences": [{"uid": "1", "kind": "K"}]}}
    assert strategic_merge(target, patch, Shape({}, lambda name: {})) == {
        "metadata": {
            "finalizers": ["c/d", "a/b"],
            "ownerReferences": [{"uid": "1", "name": "x", "kind": "K"}],
        }
    }


@pytest.mark.parametrize(
    ("patch", "code"),
    [
        ({"object": {"$retainKeys": ["a"], "b": 1}}, 400),
        ({"object": {"$retainKeys": "a"}}, 400),
        ({"object": {"$retainKeys": [["a"]]}}, 400),
        ({"$setElementOrder/items": "a"}, 400),
        ({"$deleteFromPrimitiveList/set": {"a": 1}}, 400),
        ({"items": named("b", "a"), "$setElementOrder/items": named("a", "b")}, 400),
        ({"items": named("b"), "$setElementOrder/items": named("a")}, 400),
        ({"object": {"$patch": "fly"}}, 422),
        ({"object": {"$patch": ["delete"]}}, 422),
        ({"items": [{"v": 1}]}, 422),
        ({"items": [{"$patch": "delete"}]}, 422),
        ({"items": [["a"]]}, 422),
        ({"items": ["a"]}, 422),
        ({"set": [{"name": "a"}]}, 422),
        ({"keyless": [{"name": "a"}]}, 422),
    ],
)
def test_what_is_refused(patch: Json, code: int) -> None:
    target = {"object": {"a": 1}, "items": named("a"), "set": ["a"], "keyless": [{"name": "b"}]}
    with pytest.raises(ApiError) as refusal:
        strategic_merge(target, patch, SHAPE)
    assert refusal.value.code == code


@pytest.mark.slow
@effort(100)
@given(target=json_objects(), patch=json_objects())
def test_without_directives_and_schema_it_is_a_merge_patch(target: Json, patch: Json) -> None:
    shape = Shape({"type": "object"}, lambda name: {})
    ours = strategic_merge(target, {"a": patch}, shape)
    theirs = merge_patch(target, {"a": patch})
    assert ours == {**theirs, "a": _without_nulls_in_lists(ours["a"], theirs["a"])}


def _without_nulls_in_lists(ours: Any, theirs: Any) -> Any:
    """A merge patch keeps nulls below lists; a strategic one has nothing to keep them for."""
    return ours if _bare(ours) == _bare(theirs) else theirs


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bare(below) for name, below in value.items() if below is not None}
    return [_bare(item) for item in value] if isinstance(value, list) else value


_ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abcd")}, optional={"v": st.integers(0, 2)}),
    max_size=4,
    unique_by=lambda item: item["name"],
)


@pytest.mark.slow
@effort(100)
@given(target=_ITEMS, patch=_ITEMS)
def test_items_merge_by_key(target: list[Json], patch: list[Json]) -> None:
    merged = strategic_merge({"items": target}, {"items": patch}, SHAPE)["items"]
    oracle = {item["name"]: dict(item) for item in target}
    for item in patch:
        oracle.setdefault(item["name"], {}).update(item)
    assert {item["name"]: item for item in merged} == oracle
    assert len(merged) == len(oracle)
    names = [item["name"] for item in merged]
    wanted = [item["name"] for item in patch]
    others = [item["name"] for item in target if item["name"] not in wanted]
    assert [name for name in names if name in wanted] == wanted
    assert [name for name in names if name in others] == others


@pytest.mark.slow
@effort(150)
@given(target=json_objects(directives=True), patch=json_objects(directives=True))
def test_any_json_merges_or_is_refused(target: Json, patch: Json) -> None:
    before = copied(target), copied(patch)
    for shape in (SHAPE, Shape({}, lambda name: {})):
        with suppress(ApiError):
            strategic_merge({"items": [], **target}, patch, shape)
    assert (target, patch) == before
