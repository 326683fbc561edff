"""How finely the writers of a value share it: a schema, boiled down to what ownership needs.

    LEAF    one owner for the whole: plain values, atomic maps and lists
    FIELDS  every field has owners of its own: objects, maps, and values without a schema
    SET     a list of distinct plain values, each with owners of its own
    KEYED   a list of objects told apart by keys, each with owners of its own

What a schema does not describe (a field under `x-kubernetes-preserve-unknown-fields`, say) is
shared by the look of the value: objects by field, lists and plain values as a whole. That is
FIELDS as well, because a value that is not an object is always taken as a whole there.

They are made from shapes once, child by child when first asked for; every write walks them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from unisono.kinds.shapes.shape import Shape
from unisono.kinds.short_texts import cached_if_short

LEAF: Final = 0
FIELDS: Final = 1
SET: Final = 2
KEYED: Final = 3

# How many kinds are kept: all built-in kinds in all versions, and as many custom ones again.
MAX_KINDS = 1024
# Keys of lists that may be left out although some schemas forget to say so (container ports).
KEY_DEFAULTS = {"protocol": "TCP"}
# What the server itself keeps, or what names the object, has no owner.
UNOWNED = frozenset(
    {
        "clusterName",
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


class Unshareable(Exception):
    """An item of a list is not of the sort that can be told from the others."""


class MergeSchema:
    """One node; `fields` maps a name to its FieldsV1 text, its node, and whether it is declared.

    Only declared fields are remembered there: the keys of maps are endless. `leaves` has the texts
    of those that are leaves once more, because most of an object is. `is_plain_map` says that no
    field is declared, and that the values are leaves: labels, resource amounts.
    """

    __slots__ = (
        "_items",
        "_key",
        "_keys",
        "_shape",
        "_values",
        "fields",
        "is_plain_map",
        "kind",
        "leaves",
    )

    def __init__(self, shape: Shape | None) -> None:
        """Make a node from a shape; without one, from the look of the values."""
        self.kind = _kind(shape)
        self.fields: dict[str, tuple[str, MergeSchema, bool]] = {}
        self.leaves: dict[str, str] = {}
        self._shape = shape
        self._items: MergeSchema | None = None
        self._values: MergeSchema | None = None
        self._keys: tuple[tuple[str, Any], ...] | None = None
        self._key = ""  # if there is only one
        self.is_plain_map = _is_plain_map(shape) and self.kind == FIELDS

    def field(self, name: str) -> tuple[str, MergeSchema, bool]:
        """Return what `fields` knows or will know about a name."""
        found = self.fields.get(name)
        if found is not None:
            return found
        shape = self._shape
        if shape is not None and name in shape.raw.get("properties", ()):
            found = self.fields[name] = ("f:" + name, MergeSchema(shape.field(name)), True)
            if found[1].kind == LEAF:
                self.leaves[name] = found[0]
            return found
        if self._values is None:
            values = shape.values if shape is not None else None
            self._values = DEDUCED if values is None else MergeSchema(values)
        return "f:" + name, self._values, False

    @property
    def items(self) -> MergeSchema:
        """The merge schema of a list's items."""
        if self._items is None:
            items = self._shape.items if self._shape is not None else None
            self._items = DEDUCED if items is None else MergeSchema(items)
        return self._items

    def text(self, item: Any) -> str:
        """Return the FieldsV1 text of an item of a list: `v:"a"` or `k:{"name":"a"}`."""
        if self.kind == SET:
            if item is None or isinstance(item, (dict, list)):
                raise Unshareable("a set has an item that is not a plain value")
            return _value_text(item)
        if not isinstance(item, dict):
            raise Unshareable("a list with keys has an item that is not an object")
        if self._key and (name := item.get(self._key)).__class__ is str:
            return _key_text(self._key, name)
        keys = self._keys
        if keys is None:
            keys = self._keys = self._read_keys()
            self._key = keys[0][0] if len(keys) == 1 else ""
        # Null is as good as absent. An item without any of its keys is still an item; validation
        # will complain about it.
        key: list[Any] = []
        for name, default in keys:
            value = item.get(name)
            if value is None:
                value = default
            if value is not None:
                key.append(name)
                key.append(value)
        try:
            return _key_text(*key)
        except TypeError:  # a key that is itself an object or a list
            return "k:" + json_text(dict(zip(key[::2], key[1::2], strict=True)))

    def _read_keys(self) -> tuple[tuple[str, Any], ...]:
        """Return the names of the keys in order, with their defaults."""
        assert self._shape is not None  # only a schema makes a list KEYED
        items = self._shape.items
        keys = []
        for name in sorted(self._shape.list_keys):
            field = items.field(name) if items is not None else None
            default = field.raw.get("default") if field is not None else None
            keys.append((name, KEY_DEFAULTS.get(name) if default is None else default))
        return tuple(keys)


def _is_plain_map(shape: Shape | None) -> bool:
    if shape is None or shape.raw.get("properties") or not shape.raw.get("additionalProperties"):
        return False
    values = shape.values
    return values is not None and _kind(values) == LEAF


def _kind(shape: Shape | None) -> int:
    if shape is None:
        return FIELDS
    kind = shape.type
    if kind == "object" or (not kind and not shape.is_int_or_string):
        return LEAF if shape.raw.get("x-kubernetes-map-type") == "atomic" else FIELDS
    if kind == "array" and shape.list_type == "set":
        return SET
    if kind == "array" and shape.list_type == "map" and shape.list_keys:
        return KEYED
    return LEAF


# ---- the schema of metadata ----------------------------------------------------------------------
#
# The schema of `metadata`, as far as its writers share it; the same for every kind.
#
# Schemas of custom resources say nothing about their metadata, so it is written down here.

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_OWNER = {
    "type": "object",
    "x-kubernetes-map-type": "atomic",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": {"type": "boolean"},
        "blockOwnerDeletion": {"type": "boolean"},
    },
}


def _no_definitions(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


METADATA = Shape(
    {
        "type": "object",
        "properties": {
            "annotations": _TEXTS,
            "creationTimestamp": _TEXT,
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": _TEXT,
            "finalizers": {
                "type": "array",
                "items": _TEXT,
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": _TEXT,
            "generation": {"type": "integer"},
            "labels": _TEXTS,
            "managedFields": {"type": "array"},
            "name": _TEXT,
            "namespace": _TEXT,
            "ownerReferences": {
                "type": "array",
                "items": _OWNER,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "uid",
            },
            "resourceVersion": _TEXT,
            "selfLink": _TEXT,
            "uid": _TEXT,
        },
    },
    _no_definitions,
)


# ---- whole objects -------------------------------------------------------------------------------


DEDUCED = MergeSchema(None)
_METADATA = MergeSchema(METADATA)


@lru_cache(maxsize=MAX_KINDS)
def merge_schema_of(shape: Shape) -> MergeSchema:
    """Return the merge schema of a whole object."""
    merge_schema = MergeSchema(shape)
    merge_schema.kind = FIELDS
    merge_schema.fields["metadata"] = ("f:metadata", _METADATA, True)
    for name in ("apiVersion", "kind"):
        merge_schema.fields[name] = ("f:" + name, _PLAIN, True)
    return merge_schema


_PLAIN = MergeSchema(Shape({"type": "string"}, lambda name: {}))
# As Go writes JSON: these could end a script or a line in a browser.
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)

_ESCAPED = re.compile("[<>&\u2028\u2029]")


# The names of containers, variables and conditions come up again and again.
@cached_if_short(4096, typed=True)
def _key_text(*key: Any) -> str:
    return "k:" + json_text(dict(zip(key[::2], key[1::2], strict=True)))


@cached_if_short(4096, typed=True)
def _value_text(value: Any) -> str:
    return "v:" + json_text(value)


def json_text(value: Any) -> str:
    """Return the JSON of a key or of an item of a set, letter by letter as other servers do."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        raise Unshareable("a key or an item of a set is not a JSON value") from None
    return text.translate(_ESCAPES) if _ESCAPED.search(text) else text
