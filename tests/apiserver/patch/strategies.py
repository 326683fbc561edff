"""Hypothesis strategies: any JSON, gadgets that fit their schema, and sets of fields."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.apiserver.patch.gadgets import gadget
from unisono.apiserver.objects import Json

# Few names, so that two draws meet; the dollars are directives of strategic merge.
_NAMES = st.sampled_from(["a", "b", "spec", "set", "ports", "name", "metadata", ".", "f:a", "é<&"])
_DIRECTIVES = st.sampled_from(
    ["$patch", "$retainKeys", "$setElementOrder/set", "$deleteFromPrimitiveList/set", "ports"]
)
_PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.sampled_from(["", "a", "b", "delete", "replace", "merge", "<é>"])
)


def json_values(*, directives: bool = False) -> st.SearchStrategy[Any]:
    """Return any JSON value."""
    names = _NAMES | _DIRECTIVES if directives else _NAMES
    return st.recursive(
        _PLAIN,
        lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=4),
        max_leaves=12,
    )


def json_objects(*, directives: bool = False) -> st.SearchStrategy[Json]:
    """Return any JSON object."""
    names = _NAMES | _DIRECTIVES if directives else _NAMES
    return st.dictionaries(names, json_values(directives=directives), max_size=4)


_DIGIT = st.sampled_from("12")
_PORTS = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 4)},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "x": _DIGIT, "y": _DIGIT},
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)
_PAIR = st.dictionaries(st.sampled_from("pq"), _DIGIT, max_size=2)


def specs() -> st.SearchStrategy[Json]:
    """Return a spec of a gadget that fits its schema.

    No list is empty: an empty one has no owner, so it comes and goes, here and on real servers.
    """
    return st.fixed_dictionaries(
        {},
        optional={
            "text": _DIGIT,
            "number": st.integers(1, 2),
            "list": st.lists(_DIGIT, max_size=2),
            "set": st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True),
            "ports": _PORTS,
            "map": st.dictionaries(st.sampled_from("xyz"), _DIGIT, max_size=3),
            "pairs": st.dictionaries(st.sampled_from("xyz"), _PAIR, max_size=2),
            "whole": _PAIR,
            "open": st.dictionaries(st.sampled_from("uv"), json_values(), max_size=2),
            "nested": st.sampled_from([{}, {"p": "1"}, {"q": {}}, {"q": {"r": "1"}}]),
        },
    )


@st.composite
def gadgets(draw: st.DrawFn) -> Json:
    """Return a gadget that fits its schema."""
    labels = draw(st.dictionaries(st.sampled_from("xyz"), _DIGIT, max_size=2))
    return gadget(draw(specs()), **({"labels": labels} if labels else {}))


_KEYS = st.sampled_from(
    ["f:a", "f:b", "f:.", 'v:"a"', "v:1", 'k:{"name":"a"}', 'k:{"a":1,"b":"x"}', "i:0"]
)


def field_sets() -> st.SearchStrategy[Json]:
    """Return a set of field paths."""
    leaf: st.SearchStrategy[Json] = st.just({})
    nodes = st.recursive(
        leaf,
        lambda below: st.builds(
            lambda tree, is_in: {".": {}, **tree} if is_in and tree else tree,
            st.dictionaries(_KEYS, below, min_size=1, max_size=3),
            st.booleans(),
        ),
        max_leaves=10,
    )
    return st.dictionaries(_KEYS, nodes, max_size=3)
