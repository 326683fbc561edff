"""Sets of field paths: they are sets, and FieldsV1 is only their spelling."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.apiserver.patch.gadgets import GADGET
from tests.apiserver.patch.strategies import field_sets, json_values
from tests.support.effort import effort
from unisono.apiserver.objects import copied
from unisono.apiserver.patch.field_set import (
    Tree,
    collapsed,
    difference,
    holds,
    intersection,
    paths_of,
    read_fields,
    union,
    with_parents,
)
from unisono.apiserver.patch.merge_schema import merge_schema_of


def _members(tree: Tree, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """List the paths of a set, the plainest way."""
    found = set()
    for key, node in tree.items():
        if key != ".":
            path = (*prefix, key)
            if not node or "." in node:
                found.add(path)
            found |= _members(node, path)
    return found


def _tree(members: set[tuple[str, ...]]) -> Tree:
    """Spell a set, the plainest way."""
    tree: Tree = {}
    for path in members:
        here = tree
        for key in path:
            here = here.setdefault(key, {})
        here["."] = {}
    return _tidy(tree)


def _tidy(tree: Tree) -> Tree:
    tidy = {key: _tidy(node) for key, node in tree.items()}
    return {} if tidy == {".": {}} else tidy


@pytest.mark.slow
@effort(120)
@given(left=field_sets(), right=field_sets())
def test_they_are_sets(left: Tree, right: Tree) -> None:
    before = copied(left), copied(right)
    ours, theirs = _members(left), _members(right)
    assert union(left, right) == _tree(ours | theirs)
    assert difference(left, right) == _tree(ours - theirs)
    assert intersection(left, right) == _tree(ours & theirs)
    assert difference(left, left) == {}
    assert union(left, left) == intersection(left, left) == left
    assert (left, right) == before


@pytest.mark.slow
@effort(120)
@given(tree=field_sets())
def test_reading_what_was_written(tree: Tree) -> None:
    assert read_fields(copied(tree)) == tree
    assert len(list(paths_of(tree))) == len(_members(tree))


@pytest.mark.slow
@effort(120)
@given(raw=json_values())
def test_reading_anything(raw: Any) -> None:
    try:
        tree = read_fields(raw)
    except ValueError:
        return
    assert read_fields(tree) == tree == _tree(_members(tree))


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (None, {}),
        ({".": {}}, {}),
        ({"f:a": None}, {"f:a": {}}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": {".": {}, "f:b": {}}}, {"f:a": {".": {}, "f:b": {}}}),
        ({'k:{ "b": 1, "a": "x" }': {}}, {'k:{"a":"x","b":1}': {}}),
        ({'v: "a<b"': {}}, {'v:"a\\u003cb"': {}}),
        ({"v:1.0": {}}, {"v:1": {}}),
        ({"i:07": {}}, {"i:7": {}}),
        ({"x:future": {}, "f:a": {}}, {"f:a": {}}),
    ],
)
def test_other_spellings_are_understood(raw: Any, read: Tree) -> None:
    assert read_fields(raw) == read


@pytest.mark.parametrize(
    "raw", ["text", [], 5, {"f:a": 1}, {"k:[]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}]
)
def test_nonsense_is_refused(raw: Any) -> None:
    with pytest.raises(ValueError, match="fieldsV1"):
        read_fields(raw)


def test_paths_read_as_messages_write_them() -> None:
    tree: Tree = {
        "f:metadata": {"f:labels": {"f:a.b/c": {}}},
        "f:spec": {
            ".": {},
            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:name": {}},
            'v:"x"': {},
            "i:3": {},
        },
    }
    assert list(paths_of(tree)) == [
        ".metadata.labels.a.b/c",
        ".spec",
        ".spec[3]",
        '.spec[containerPort=80,protocol="TCP"]',
        '.spec[containerPort=80,protocol="TCP"].name',
        '.spec[="x"]',
    ]


def test_a_declared_field_is_there_with_what_is_below_it() -> None:
    tree: Tree = {"f:spec": {"f:pairs": {"f:x": {"f:p": {}}}, "f:open": {"f:u": {"f:v": {}}}}}
    assert with_parents(tree, merge_schema_of(GADGET)) == {
        "f:spec": {
            ".": {},
            "f:pairs": {".": {}, "f:x": {"f:p": {}}},
            "f:open": {".": {}, "f:u": {"f:v": {}}},
        }
    }


def test_an_owner_of_a_part_owns_the_whole_once_it_is_atomic() -> None:
    tree: Tree = {"f:spec": {"f:whole": {"f:p": {}}, "f:map": {"f:x": {}}, "f:list": {'v:"a"': {}}}}
    assert collapsed(tree, merge_schema_of(GADGET)) == {
        "f:spec": {"f:whole": {}, "f:map": {"f:x": {}}, "f:list": {}}
    }


def test_holding() -> None:
    assert holds({})
    assert holds({".": {}, "f:a": {}})
    assert not holds({"f:a": {}})
    assert not holds(None)
