"""Schemas of several versions, united."""

from __future__ import annotations

from tools.shapes.schema import INT_OR_STRING
from tools.shapes.union import unite
from unisono.kube.form import Json


def test_fields_of_both_are_known_and_only_what_both_require_is_required() -> None:
    older: Json = {
        "type": "object",
        "properties": {"gone": {"type": "string"}, "same": {"type": "string"}},
        "required": ["gone", "same"],
    }
    newer: Json = {
        "type": "object",
        "properties": {"same": {"type": "string"}, "new": {"type": "string"}},
        "required": ["same", "new"],
    }
    united = unite(older, newer)
    assert set(united["properties"]) == {"gone", "same", "new"}
    assert united["required"] == ["same"]


def test_lists_and_maps_are_united_inside() -> None:
    older: Json = {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    newer: Json = {
        "type": "array",
        "maxItems": 3,
        "items": {"type": "object", "properties": {"b": {"type": "string"}}},
    }
    united = unite(older, newer)
    assert united["maxItems"] == 3
    assert set(united["items"]["properties"]) == {"a", "b"}


def test_a_word_that_was_once_allowed_still_is() -> None:
    older: Json = {"type": "string", "enum": ["Borrow", "Next"]}
    newer: Json = {"type": "string", "enum": ["Stop", "Next"]}
    assert unite(older, newer)["enum"] == ["Stop", "Next", "Borrow"]
    assert "enum" not in unite({"type": "string"}, newer)


def test_a_number_that_was_once_a_text_may_be_both() -> None:
    assert unite(INT_OR_STRING, {"type": "integer", "format": "int32"}) == INT_OR_STRING


def test_otherwise_the_newest_is_right() -> None:
    newer: Json = {"type": "integer", "minimum": 1}
    assert unite({"type": "string"}, newer) == newer
    assert unite({"type": "integer", "minimum": 5}, newer) == newer
