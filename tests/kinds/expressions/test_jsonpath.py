"""Paths of printer columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.kinds.expressions.jsonpath import compile_path, plain_names

TREE: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"example.com/team": "blue", "kueue.x-k8s.io/q": "main"}},
    "spec": {
        "count": 3,
        "words": ["x", "y", "z"],
        "items": [
            {"name": "one", "size": 1, "ok": True},
            {"name": "two", "size": 2, "ok": False},
            {"size": 3},
        ],
        "nothing": None,
    },
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "Good"},
            {"type": "Odd", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["a"]),
        ("metadata.name", ["a"]),
        ("$.metadata.name", ["a"]),
        ("{.metadata.name}", ["a"]),
        (".spec.count", [3]),
        (".spec.nothing", [None]),
        (".spec.absent", []),
        (".spec.absent.deeper", []),
        (".spec.count.deeper", []),
        (".metadata.labels['example.com/team']", ["blue"]),
        ('.metadata.labels["kueue.x-k8s.io/q"]', ["main"]),
        (r".metadata.labels.kueue\.x-k8s\.io/q", ["main"]),
        (".spec.words[0]", ["x"]),
        (".spec.words[-1]", ["z"]),
        (".spec.words[3]", []),
        (".spec.words[1:]", ["y", "z"]),
        (".spec.words[*]", ["x", "y", "z"]),
        (".spec.items[*].name", ["one", "two"]),
        (".metadata.labels.*", ["blue", "main"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Ready')].reason", ["Good"]),
        ('.status.conditions[?(@.type=="Missing")].status', []),
        ('.status.conditions[?(@.type!="Ready")].type', ["Odd"]),
        (".spec.items[?(@.size>1)].size", [2, 3]),
        (".spec.items[?(@.size<=1)].name", ["one"]),
        (".spec.items[?(@.ok==true)].name", ["one"]),
        (".spec.items[?(@.ok==1)].name", []),
        (".spec.items[?(@.name)].size", [1, 2]),
        (".spec.items[?(@['name']=='two')].size", [2]),
        ('.spec.items[?(@.size>"1")].size', []),
        (".", [TREE]),
    ],
)
def test_what_a_path_finds(path: str, found: list[Any]) -> None:
    assert compile_path(path)(TREE) == found


@pytest.mark.parametrize(
    "path", [".spec[", ".spec..name", ".spec[?(@.a==b)]", ".spec[a]", ".spec items", ".a['b"]
)
def test_a_path_that_cannot_be_read_says_so(path: str) -> None:
    with pytest.raises(ValueError, match=r"cannot read|neither a number"):
        compile_path(path)


def test_a_path_that_is_never_closed_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="cannot read"):
        compile_path(".a[?(@" + "'b'" * 2000)


def test_plain_names_are_found_without_steps() -> None:
    assert plain_names(".spec['a.b'].c") == ("spec", "a.b", "c")
    assert plain_names(".spec.words[0]") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "type"]), inner, max_size=3)
    ),
)
STEPS = st.sampled_from(
    [".a", ".b", "['a']", "[0]", "[-1]", "[*]", ".*", "[?(@.type=='x')]", "[?(@.a>1)]", "[0:1]"]
)


@given(JSON, st.lists(STEPS, max_size=4))
def test_nothing_fails_when_a_path_is_used(value: Any, steps: list[str]) -> None:
    compile_path("".join(steps))(value)


@given(st.text(max_size=12))
def test_any_text_is_a_path_or_an_error(text: str) -> None:
    try:
        find = compile_path(text)
    except ValueError:
        return
    find(TREE)
