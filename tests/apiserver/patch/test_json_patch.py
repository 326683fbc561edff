"""JSON patch: the rules of RFC 6902, and what protects a server from it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver.patch.strategies import json_objects, json_values
from tests.support.effort import effort
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.json_patch import MAX_COPIED_BYTES, MAX_OPERATIONS, json_patch


def _add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


# The examples of RFC 6902, appendix A, and the cases around them.
@pytest.mark.parametrize(
    ("target", "operations", "expected"),
    [
        ({"foo": "bar"}, [_add("/baz", "qux")], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["a", "c"]}, [_add("/foo/1", "b")], {"foo": ["a", "b", "c"]}),
        ({"foo": ["a"]}, [_add("/foo/-", ["b"])], {"foo": ["a", ["b"]]}),
        ({"foo": ["a"]}, [_add("/foo/1", "b")], {"foo": ["a", "b"]}),
        ({"foo": None}, [_add("/foo", 1)], {"foo": 1}),
        ({"foo": 1}, [_add("", {"bar": 2})], {"bar": 2}),
        ({"a/b": {"m~n": 1}}, [_add("/a~1b/m~0n", 2)], {"a/b": {"m~n": 2}}),
        ({"~1": 1}, [{"op": "remove", "path": "/~01"}], {}),
        ({"": {"": 1}}, [{"op": "replace", "path": "//", "value": 2}], {"": {"": 2}}),
        ({"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/1"}], {"a": [1, 3]}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 9}], {"a": [9, 2]}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"a": [1, 2, 3]}, [{"op": "move", "from": "/a/0", "path": "/a/2"}], {"a": [2, 3, 1]}),
        (
            {"a": {"b": [1]}},
            [{"op": "copy", "from": "/a", "path": "/c"}, _add("/c/b/-", 2)],
            {"a": {"b": [1]}, "c": {"b": [1, 2]}},
        ),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
        ({"a": None}, [{"op": "test", "path": "/a", "value": None}], {"a": None}),
        (
            {"a": {"x": 1, "y": [1]}},
            [{"op": "test", "path": "/a", "value": {"y": [1], "x": 1}}],
            {"a": {"x": 1, "y": [1]}},
        ),
        ({"a": 1}, [{**_add("/b", 2), "unknown": True}], {"a": 1, "b": 2}),
        ({"a": 1}, [], {"a": 1}),
        # More than the RFC grants, as the real server does.
        ({"a": {}}, [{"op": "replace", "path": "/a/b", "value": 1}], {"a": {"b": 1}}),
        ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
        ({"a": 1}, [{"op": "test", "path": "/b"}], {"a": 1}),
        ({"a": [1, 2]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1]}),
        ({"a": [1, 2]}, [{"op": "replace", "path": "/a/-2", "value": 9}], {"a": [9, 2]}),
        ({"a": [1, 2]}, [_add("/a/-1", 3)], {"a": [1, 2, 3]}),
    ],
)
def test_what_it_does(target: Json, operations: list[Any], expected: Json) -> None:
    assert json_patch(target, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/missing"},
        {"op": "remove", "path": ""},
        {"op": "remove", "path": "/list/2"},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": "/text/deeper"},
        {"op": "replace", "path": "/text/deeper", "value": 1},
        {"op": "replace", "path": "/missing/deeper", "value": 1},
        {"op": "replace", "path": "/list/-", "value": 1},
        _add("/missing/deeper", 1),
        _add("/text/deeper", 1),
        _add("/list/3", 1),
        _add("/list/01", 1),
        _add("/list/-4", 1),
        _add("/list/-0", 1),
        {"op": "remove", "path": "/list/-3"},
        _add("/list/+1", 1),
        _add("/list/1e0", 1),
        _add("/list/٣", 1),
        _add("/list/" + "9" * 5000, 1),
        _add("/list/x", 1),
        {"op": "move", "from": "/missing", "path": "/a"},
        {"op": "move", "from": "/object", "path": "/object/inside"},
        {"op": "copy", "from": "/missing", "path": "/a"},
        {"op": "test", "path": "/text", "value": "other"},
        {"op": "test", "path": "/one", "value": True},
        {"op": "test", "path": "/missing/deeper", "value": None},
        {"op": "test", "path": "/text", "value": None},
        _add("", [1]),
        {"path": "/a", "value": 1},
        {"op": "fly", "path": "/a"},
        {"op": ["add"], "path": "/a", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": 5, "value": 1},
        {"op": "add", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "move", "path": "/a"},
    ],
)
def test_a_patch_that_does_not_fit_is_invalid(operation: Json) -> None:
    target = {"text": "a", "list": [1, 2], "object": {"inside": 1}, "one": 1}
    with pytest.raises(ApiError) as refusal:
        json_patch(target, [operation])
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    "operations",
    [
        {"op": "add"},
        ["add"],
        [5],
        [None],
    ],
)
def test_what_is_no_patch_is_a_bad_request(operations: Any) -> None:
    with pytest.raises(ApiError) as refusal:
        json_patch({"a": 1}, operations)
    assert refusal.value.code == 400


def test_all_or_nothing() -> None:
    target = {"a": {"b": 1}}
    with pytest.raises(ApiError):
        json_patch(target, [_add("/a/c", 2), {"op": "test", "path": "/a/b", "value": 2}])
    assert target == {"a": {"b": 1}}


def test_the_result_shares_nothing_with_the_patch() -> None:
    value = {"inner": [1]}
    made = json_patch({}, [_add("/a", value), _add("/b", value)])
    made["a"]["inner"].append(2)
    assert made["b"] == value == {"inner": [1]}


def test_too_many_operations() -> None:
    most = [_add("/a", 1)] * MAX_OPERATIONS
    assert json_patch({}, most) == {"a": 1}
    with pytest.raises(ApiError) as refusal:
        json_patch({}, [*most, _add("/a", 1)])
    assert refusal.value.code == 413


@pytest.mark.slow
def test_doubling_by_copies_ends_early() -> None:
    doubling = [{"op": "copy", "from": "/list", "path": "/list/-"}] * 60
    with pytest.raises(ApiError) as refusal:
        json_patch({"list": ["x"]}, doubling)
    assert refusal.value.code == 413
    assert str(MAX_COPIED_BYTES) in refusal.value.message


def test_endless_nesting_is_refused() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ApiError) as refusal:
        json_patch({}, [_add("/a", deep)])
    assert refusal.value.code == 400


_PATHS = st.lists(
    st.sampled_from(["a", "b", "spec", "0", "1", "-", "-1", "", "~0", "~1", "01"]), max_size=3
).map(lambda parts: "".join(f"/{part}" for part in parts))
_OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
        "path": _PATHS,
    },
    optional={"from": _PATHS, "value": json_values()},
)


@pytest.mark.slow
@effort(200)
@given(target=json_objects(), operations=st.lists(_OPERATIONS | json_values(), max_size=4))
def test_any_json_is_patched_or_refused(target: Json, operations: list[Any]) -> None:
    before = copied([target, operations])
    with suppress(ApiError):
        assert isinstance(json_patch(target, operations), dict)
    assert [target, operations] == before


@pytest.mark.slow
@effort(150)
@given(target=json_objects(), value=json_values(), path=_PATHS)
def test_what_was_added_can_be_tested_and_taken_away(target: Json, value: Any, path: str) -> None:
    name = path.rpartition("/")[2]
    try:
        added = json_patch(target, [_add(path, value)])
    except ApiError:
        return
    if name not in ("-", "-1"):
        assert json_patch(added, [{"op": "test", "path": path, "value": value}]) == added
    if name in ("0", "1", "-", "-1", ""):
        return  # in a list the others move, and the root stays
    assert json_patch(added, [{"op": "remove", "path": path}]) == json_patch(
        target, [_add(path, 1), {"op": "remove", "path": path}]
    )
