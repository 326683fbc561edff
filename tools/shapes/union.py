"""Two versions of one schema, made into one that accepts what either of them accepts.

Fields of both are known; required is what both require; an enumeration has the words of both. In
everything else (bounds, patterns, defaults, rules) the newer one is right.
"""

from __future__ import annotations

from tools.shapes.schema import INT_OR_STRING
from unisono.kube.form import Json


def unite(older: Json, newer: Json) -> Json:
    """Return the union of two schemas.

    >>> unite(
    ...     {"properties": {"a": {"type": "string", "enum": ["x"]}}, "required": ["a"]},
    ...     {"properties": {"a": {"type": "string", "enum": ["y"]}, "b": {"type": "integer"}}},
    ... )
    {'properties': {'a': {'type': 'string', 'enum': ['y', 'x']}, 'b': {'type': 'integer'}}}
    """
    if older.get("$ref") == INT_OR_STRING["$ref"] and newer.get("type") in ("integer", "string"):
        # Trainer once took `auto` as the number of processes.
        return INT_OR_STRING | {key: newer[key] for key in ("default",) if key in newer}
    if "$ref" in older or "$ref" in newer or older.get("type") != newer.get("type"):
        return newer
    united = dict(newer)
    if "properties" in older or "properties" in newer:
        united["properties"] = _fields(older.get("properties", {}), newer.get("properties", {}))
    for key in ("items", "additionalProperties"):
        if key in older and key in newer:
            united[key] = unite(older[key], newer[key])
    required = [name for name in newer.get("required", ()) if name in older.get("required", ())]
    united.pop("required", None)
    if required:
        united["required"] = required
    if "enum" in newer:
        if "enum" in older:
            words = newer["enum"]
            united["enum"] = [*words, *(word for word in older["enum"] if word not in words)]
        else:
            del united["enum"]  # the older version took any word
    return united


def _fields(older: Json, newer: Json) -> Json:
    fields = {
        name: unite(older[name], schema) if name in older else schema
        for name, schema in newer.items()
    }
    return fields | {name: schema for name, schema in older.items() if name not in newer}
