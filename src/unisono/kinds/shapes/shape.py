"""A schema as patching, validation and explanation see it: one node, its children on demand.

A schema is OpenAPI as Kubernetes writes it for custom resources, with three additions:

    $ref                          the name of a definition in any of the data files
    format: quantity              an amount, "500m" or 2, kept as its author wrote it or canonical
    x-kubernetes-patch-merge-key  how strategic merge finds an item; absent: the list is replaced
    x-kubernetes-patch-strategy   "merge", "retainKeys" or both with a comma

Children are made when they are first asked for, because schemas are large and some are recursive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Resolve = Callable[[str], Mapping[str, Any]]


class Shape:
    """One node of a schema. Compare by identity; never changes once it is made."""

    __slots__ = ("_children", "_resolve", "raw")

    def __init__(self, raw: Mapping[str, Any], resolve: Resolve) -> None:
        """Take a schema and a way to look up the definitions that it names."""
        reference = raw.get("$ref")
        if reference is not None:
            # What stands beside a reference (a description, a default) wins over its target.
            beside = {key: value for key, value in raw.items() if key != "$ref"}
            raw = {**resolve(reference), **beside}
        self.raw = raw
        self._resolve = resolve
        self._children: dict[str, Shape | None] = {}

    # ---- what it is --------------------------------------------------------------------------

    @property
    def type(self) -> str:
        """One of object, array, string, integer, number, boolean; empty means anything."""
        return str(self.raw.get("type", ""))

    @property
    def is_int_or_string(self) -> bool:
        """Whether both 8080 and "http" are fine."""
        return bool(self.raw.get("x-kubernetes-int-or-string"))

    @property
    def is_quantity(self) -> bool:
        """Whether it is an amount such as "500m"."""
        return self.raw.get("format") == "quantity"

    @property
    def is_open(self) -> bool:
        """Whether unknown fields are kept."""
        return bool(self.raw.get("x-kubernetes-preserve-unknown-fields"))

    @property
    def is_embedded_object(self) -> bool:
        """Whether it is a whole object with apiVersion, kind and metadata of its own."""
        return bool(self.raw.get("x-kubernetes-embedded-resource"))

    @property
    def has_default(self) -> bool:
        """Whether an absent field gets a value."""
        return "default" in self.raw

    # ---- how two writers share it ------------------------------------------------------------

    @property
    def is_atomic(self) -> bool:
        """Whether it belongs to one writer as a whole: leaves, atomic lists and maps, anything."""
        kind = self.type
        if kind == "array":
            return self.list_type == "atomic"
        if kind == "object":
            return self.raw.get("x-kubernetes-map-type") == "atomic"
        return True

    @property
    def list_type(self) -> str:
        """One of atomic, set, map."""
        return str(self.raw.get("x-kubernetes-list-type", "atomic"))

    @property
    def list_keys(self) -> tuple[str, ...]:
        """The fields that tell the items of a list of type map apart."""
        return tuple(self.raw.get("x-kubernetes-list-map-keys", ()))

    @property
    def merge_key(self) -> str:
        """The field by which strategic merge finds an item; empty for lists of plain values."""
        return str(self.raw.get("x-kubernetes-patch-merge-key", ""))

    @property
    def strategies(self) -> frozenset[str]:
        """Out of merge, replace and retainKeys; a list without merge is replaced."""
        return frozenset(str(self.raw.get("x-kubernetes-patch-strategy", "")).split(",")) - {""}

    # ---- what is in it -----------------------------------------------------------------------

    def field(self, name: str) -> Shape | None:
        """Return the shape of a field, of a map's values if it is a map, or None if unknown."""
        found = self._children.get(name)
        if found is not None:
            return found
        properties = self.raw.get("properties")
        if properties is not None and name in properties:
            return self._child(name, properties[name])
        return self.values

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its fields."""
        return tuple(self.raw.get("properties", ()))

    @property
    def values(self) -> Shape | None:
        """The shape of a map's values; None if it is not a map."""
        more = self.raw.get("additionalProperties")
        return self._child("\0values", more) if isinstance(more, Mapping) else None

    @property
    def items(self) -> Shape | None:
        """The shape of a list's items; None if it is not a list or they may be anything."""
        items = self.raw.get("items")
        return self._child("\0items", items) if isinstance(items, Mapping) else None

    def _child(self, name: str, raw: Mapping[str, Any]) -> Shape:
        found = self._children.get(name)
        if found is None:
            found = self._children[name] = Shape(raw, self._resolve)
        return found
