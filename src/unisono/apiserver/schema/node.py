"""One place of a schema, with the functions that were compiled for it.

Functions are made when a value first arrives at the place, so an unused kind costs
nothing, and recursive schemas end. Pod templates stand in twenty kinds: two schemas made of the
same parts share one node, which is why a node is looked up by the identities of those parts. The
schema of `metadata`, which every object has, stands here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from unisono.kinds.shapes.shape import Shape

# What is said about a field, not what may stand in it.
_PROSE = frozenset(("description", "title", "example", "externalDocs"))
_SCALARS = frozenset(("string", "integer", "number", "boolean"))

# A pass over a value (and, for rules, its counterpart); it returns what it found, or None.
Pass = Callable[..., Any]
# Makes a pass for a node; None means that there is never anything to do.
Compile = Callable[["Node"], Pass | None]


class Node:
    """A place in a schema; `is_whole` adds apiVersion, kind and metadata."""

    __slots__ = (
        "__weakref__",
        "_fields",
        "_items",
        "_passes",
        "_values",
        "is_whole",
        "shape",
        "typed",
    )

    def __init__(self, shape: Shape, *, typed: bool, is_whole: bool) -> None:
        """Take what stands here; use `node_of`, which shares nodes."""
        self.shape = shape
        self.typed = typed
        self.is_whole = is_whole
        self._passes: dict[Compile, Pass | None] = {}
        self._fields: Mapping[str, Node] | None = None
        self._items: Node | None = None
        self._values: Node | None = None

    def compiled(self, compile_pass: Compile) -> Pass | None:
        """Return one pass over values at this place, made on first use."""
        try:
            return self._passes[compile_pass]
        except KeyError:
            made = self._passes[compile_pass] = compile_pass(self)
            return made

    @property
    def raw(self) -> Mapping[str, Any]:
        """The schema as it was written."""
        return self.shape.raw

    @property
    def is_scalar(self) -> bool:
        """Whether nothing can stand inside."""
        return self.shape.type in _SCALARS

    @property
    def fields(self) -> Mapping[str, Node]:
        """The known fields."""
        if self._fields is None:
            fields = {name: self._child(self.shape.field(name)) for name in self.shape.names}
            if self.is_whole:
                text, metadata = node_of(TEXT, typed=True), node_of(OBJECT_META, typed=True)
                fields |= {"apiVersion": text, "kind": text, "metadata": metadata}
            self._fields = fields
        return self._fields

    @property
    def items(self) -> Node | None:
        """What the items of a list look like; None if anything may be one."""
        if self._items is None and self.shape.items is not None:
            self._items = self._child(self.shape.items)
        return self._items

    @property
    def values(self) -> Node | None:
        """What the values of a map look like; None if it is not a map."""
        if self._values is None and self.shape.values is not None:
            self._values = self._child(self.shape.values)
        return self._values

    @property
    def is_open(self) -> bool:
        """Whether unknown fields may stay."""
        if self.shape.is_open or self.raw.get("additionalProperties") is True:
            return True
        return not self.shape.type and "properties" not in self.raw and self.values is None

    def _child(self, shape: Shape | None) -> Node:
        assert shape is not None, "a shape names a field and does not know it"
        return node_of(shape, typed=self.typed)


def node_of(shape: Shape, *, typed: bool, is_whole: bool = False) -> Node:
    """Return the node of a shape, the same for every shape made of the same parts."""
    is_whole = is_whole or shape.is_embedded_object
    parts = ((name, id(part)) for name, part in shape.raw.items() if name not in _PROSE)
    key = (typed, is_whole, *parts)
    node = _known.get(key)
    if node is None:
        node = _known[key] = Node(shape, typed=typed, is_whole=is_whole)
    return node


# A node keeps its shape and so the parts alive; when the last user of a schema goes, so does it.
_known: WeakValueDictionary[tuple[object, ...], Node] = WeakValueDictionary()


def later(node: Node, compile_pass: Compile, into: dict[Any, Pass | None], name: object) -> Pass:
    """Return a pass that compiles the real one at its first call and puts it in its own place."""

    def first(value: Any) -> Any:
        made = into[name] = node.compiled(compile_pass)
        return None if made is None else made(value)

    return first


# ---- metadata ------------------------------------------------------------------------------------
#
# `metadata` as every object has it, custom resources and embedded ones included.
#
# Its schema is written out here because a custom resource's own schema says only "an object".

_TEXT = {"type": "string"}
_TIME = {"type": "string", "format": "date-time"}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "format": "int64"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}

_OWNER = {
    "type": "object",
    "properties": {
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "uid": _TEXT,
        "controller": _FLAG,
        "blockOwnerDeletion": _FLAG,
    },
    "required": ["apiVersion", "kind", "name", "uid"],
    "x-kubernetes-map-type": "atomic",
}

_MANAGED = {
    "type": "object",
    "properties": {
        "manager": _TEXT,
        "operation": _TEXT,
        "apiVersion": _TEXT,
        "time": _TIME,
        "fieldsType": _TEXT,
        "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "subresource": _TEXT,
    },
}

_OBJECT_META = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "selfLink": _TEXT,
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "generation": _COUNT,
        "creationTimestamp": _TIME,
        "deletionTimestamp": _TIME,
        "deletionGracePeriodSeconds": _COUNT,
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": {
            "type": "array",
            "items": _OWNER,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "managedFields": {"type": "array", "items": _MANAGED, "x-kubernetes-list-type": "atomic"},
    },
}


def _no_references(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


TEXT = Shape(_TEXT, _no_references)
OBJECT_META = Shape(_OBJECT_META, _no_references)
