"""One node of a schema, and its children."""

from __future__ import annotations

from typing import Any

from unisono.kinds.shapes.shape import Shape

DEFINITIONS: dict[str, dict[str, Any]] = {
    "Tree": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {
                "type": "array",
                "items": {"$ref": "Tree"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "name",
            },
        },
    },
}


def _shape(raw: dict[str, Any]) -> Shape:
    return Shape(raw, DEFINITIONS.__getitem__)


def test_what_stands_beside_a_reference_wins() -> None:
    shape = _shape({"$ref": "Tree", "description": "A tree.", "default": {}})
    assert shape.type == "object"
    assert shape.raw["description"] == "A tree."
    assert shape.has_default


def test_a_recursive_schema_is_as_deep_as_one_looks() -> None:
    shape = _shape({"$ref": "Tree"})
    for _ in range(5):
        children = shape.field("children")
        assert children is not None
        assert children.items is not None
        shape = children.items
    assert shape.names == ("name", "children")


def test_children_are_made_once() -> None:
    shape = _shape({"$ref": "Tree"})
    assert shape.field("children") is shape.field("children")


def test_how_writers_share_it() -> None:
    children = _shape({"$ref": "Tree"}).field("children")
    assert children is not None
    assert not children.is_atomic
    assert children.list_keys == ("name",)
    assert children.merge_key == "name"
    assert children.strategies == {"merge", "retainKeys"}
    assert _shape({"type": "array"}).is_atomic
    assert not _shape({"type": "object"}).is_atomic
    assert _shape({"type": "object", "x-kubernetes-map-type": "atomic"}).is_atomic
    assert _shape({"type": "string"}).is_atomic
    assert _shape({}).is_atomic


def test_maps_have_values_and_objects_have_fields() -> None:
    labels = _shape({"type": "object", "additionalProperties": {"type": "string"}})
    assert labels.values is not None
    assert labels.field("any/key") is labels.values
    tree = _shape({"$ref": "Tree"})
    assert tree.values is None
    assert tree.field("unknown") is None
