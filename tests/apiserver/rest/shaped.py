"""Objects of any shape, for properties: valid as far as types and enumerations go."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from unisono.kinds.shapes.served import Served
from unisono.kinds.shapes.shape import Shape

_DEPTH = 7
_TEXT = st.sampled_from(["", "a", "b-1", "team-a", "2026-01-01T00:00:00Z"])
# Pod templates are the same in all versions; walking into them would only take time.
_LEFT_OUT = frozenset({"template", "managedFields", "apiVersion", "kind", "metadata"})


def objects_of(served: Served) -> st.SearchStrategy[dict[str, Any]]:
    """Generate objects of a kind in one version."""
    head = {
        "apiVersion": st.just(served.api_version),
        "kind": st.just(served.kind),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("x")},
            optional={"annotations": st.just({"a": "b"}), "labels": st.just({})},
        ),
    }
    body = {
        name: _values(shape, _DEPTH)
        for name in served.shape.names
        if name not in _LEFT_OUT and (shape := served.shape.field(name)) is not None
    }
    return st.fixed_dictionaries(head, optional=body)


def _values(shape: Shape, depth: int) -> st.SearchStrategy[Any]:
    allowed = shape.raw.get("enum")
    if allowed:
        return st.sampled_from(list(allowed))
    if depth == 0:
        return st.just({} if shape.type == "object" else [] if shape.type == "array" else "x")
    match shape.type:
        case "object" if shape.names:
            fields = {
                name: _values(field, depth - 1)
                for name in shape.names
                if name not in _LEFT_OUT and (field := shape.field(name)) is not None
            }
            return st.fixed_dictionaries({}, optional=fields)
        case "object":
            return st.dictionaries(_TEXT, _TEXT, max_size=2)
        case "array":
            items = shape.items
            return st.lists(_values(items, depth - 1) if items else _TEXT, max_size=2)
        case "integer" | "number":
            return st.integers(0, 3)
        case "boolean":
            return st.booleans()
        case _:
            return _TEXT
