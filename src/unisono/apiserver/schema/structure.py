"""Check types, bounds, required fields, and lists whose items must differ.

A pass returns its faults, each with the steps from its own value, or None. Plain strings, numbers
and flags, which most values are, are compared by type alone without calling anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from unisono.apiserver.schema import fault
from unisono.apiserver.schema.fault import Fault, below, quoted, wrong_type
from unisono.apiserver.schema.node import Node, Pass, later, node_of
from unisono.apiserver.schema.scalars import compile_scalar, scalar_rules
from unisono.kinds.shapes.served import definition
from unisono.kinds.shapes.shape import Shape

Faults = list[Fault] | None
# Says what is wrong with a value of the right type.
Rule = Callable[[Any], Faults]

# What `"type": "string"` without any further word allows.
_PLAIN: dict[str, type] = {"string": str, "boolean": bool}
_SAYS_NOTHING = frozenset(("type", "default", "description", "title", "example", "externalDocs"))
_OF_OBJECTS = frozenset(
    ("properties", "additionalProperties", "required", "minProperties", "maxProperties")
)
_OF_LISTS = frozenset(("items", "minItems", "maxItems", "uniqueItems"))


def compile_check(node: Node) -> Pass | None:
    """Make the pass for one place; None where everything is fine."""
    kind, shape = node.shape.type, node.shape
    inner: Pass | None
    if kind == "object":
        inner = _object(node)
    elif kind == "array":
        inner = _list(node)
    elif kind or shape.is_int_or_string or shape.is_quantity:
        inner = compile_scalar(node, list(_combined(node)))
    else:
        inner = _anything(node)
    if inner is None or not node.raw.get("nullable"):
        return inner
    unless_null = inner
    return lambda value: None if value is None else unless_null(value)


def _plain_type(node: Node) -> type | None:
    """Return the type of values that need no look beyond it."""
    return _PLAIN.get(node.shape.type) if node.raw.keys() <= _SAYS_NOTHING else None


# ---- objects and maps ------------------------------------------------------------------------


def _object(node: Node) -> Pass:
    rules = list(_object_rules(node))
    required = tuple(node.raw.get("required", ()))
    if node.shape.is_embedded_object:
        required = tuple(dict.fromkeys((*required, "apiVersion", "kind")))
    if node.values is not None and not node.fields:
        return _map(node.values, rules, required, typed=node.typed)
    plain: dict[str, type] = {}
    children: dict[Any, Pass | None] = {}
    for name, child in node.fields.items():
        children[name] = later(child, compile_check, children, name)
        only = _plain_type(child)
        if only is not None:
            plain[name] = only
    if node.is_whole and (own := _own_metadata(node)) is not None:
        children["metadata"] = _both(node.fields["metadata"], own)
    plain_get, get = plain.get, children.get

    def check(value: Any) -> Faults:
        if type(value) is not dict:
            return [wrong_type("an object", value)]
        found: list[Fault] = []
        for name, item in value.items():
            if plain_get(name) is type(item):
                continue
            child = get(name)
            if child is not None:
                faults = child(item)
                if faults:
                    found += below(faults, name)
        for name in required:
            if name not in value:
                found.append(Fault(fault.REQUIRED, "is required", lacking=name))
        for rule in rules:
            found += rule(value) or ()
        return found or None

    return check


def _map(values: Node, rules: Sequence[Rule], required: Sequence[str], *, typed: bool) -> Pass:
    # Kubernetes' own kinds show keys in brackets, custom ones as if they were fields.
    only = _plain_type(values)
    each = values.compiled(compile_check)

    def check(value: Any) -> Faults:
        if type(value) is not dict:
            return [wrong_type("an object", value)]
        found: list[Fault] = []
        if each is not None:
            for key, item in value.items():
                if type(item) is only:
                    continue
                faults = each(item)
                if faults:
                    found += below(faults, (key,) if typed else key)
        for name in required:
            if name not in value:
                found.append(Fault(fault.REQUIRED, "is required", lacking=name))
        for rule in rules:
            found += rule(value) or ()
        return found or None

    return check


def _own_metadata(node: Node) -> Node | None:
    """Return what a custom resource's schema says about names, the only thing it may say there."""
    own = node.shape.field("metadata") if "metadata" in node.shape.names else None
    if own is None or not own.names or not set(own.names) <= {"name", "generateName"}:
        return None
    return node_of(own, typed=False)


def _both(one: Node, other: Node) -> Pass:
    passes = [each.compiled(compile_check) for each in (one, other)]

    def check(value: Any) -> Faults:
        found = [found for each in passes if each is not None for found in each(value) or ()]
        return found or None

    return check


def _object_rules(node: Node) -> Iterable[Rule]:
    raw = node.raw
    if (most := raw.get("maxProperties")) is not None:
        yield lambda value: _too_many(len(value), most, "entries")
    if fewest := raw.get("minProperties"):
        yield lambda value: _too_few(len(value), fewest, "entries")
    yield from _shared_rules(node)


# ---- lists -----------------------------------------------------------------------------------


def _list(node: Node) -> Pass:
    items = node.items
    only = None if items is None else _plain_type(items)
    each = None if items is None else items.compiled(compile_check)
    rules = list(_list_rules(node))

    def check(value: Any) -> Faults:
        if type(value) is not list:
            return [wrong_type("a list", value)]
        found: list[Fault] = []
        if each is not None:
            for index, item in enumerate(value):
                if type(item) is only:
                    continue
                faults = each(item)
                if faults:
                    found += below(faults, index)
        for rule in rules:
            found += rule(value) or ()
        return found or None

    return check


def _list_rules(node: Node) -> Iterable[Rule]:
    raw, shape = node.raw, node.shape
    if (most := raw.get("maxItems")) is not None:
        yield lambda value: _too_many(len(value), most, "items")
    if fewest := raw.get("minItems"):
        yield lambda value: _too_few(len(value), fewest, "items")
    # Kubernetes' own kinds decide themselves: a pod may give an environment variable twice.
    if not node.typed and shape.list_type == "map" and shape.list_keys:
        keys = shape.list_keys
        yield lambda value: _repeated(value, keys) if len(value) > 1 else None
    if (not node.typed and shape.list_type == "set") or raw.get("uniqueItems"):
        yield lambda value: _repeated(value, ()) if len(value) > 1 else None
    yield from _shared_rules(node)


def _repeated(value: list[Any], keys: tuple[str, ...]) -> Faults:
    """Find items that are there twice, as a whole or by the fields that tell them apart."""
    found: list[Fault] = []
    seen = set()
    for index, item in enumerate(value):
        if keys and type(item) is not dict:
            continue
        told_by = [item.get(key) for key in keys] if keys else [item]
        only = told_by[0] if len(told_by) == 1 else None
        # Copied: the encoder's buffer has room for a kilobyte, and all are kept for a while.
        identity = (
            only if type(only) is str else bytes(memoryview(orjson.dumps(told_by, option=_SORTED)))
        )
        if identity in seen:
            shown = ", ".join(f"{key} {quoted(item.get(key))}" for key in keys) or quoted(item)
            found += below([Fault(fault.DUPLICATE, f"{shown} is there already")], index)
        seen.add(identity)
    return found or None


_SORTED = orjson.OPT_SORT_KEYS


# ---- anything, and schemas made of schemas -----------------------------------------------------


def _anything(node: Node) -> Pass | None:
    """Check a place without a type: each value by what is said about values of its type."""
    keywords = node.raw.keys()
    as_object = _object(node) if node.is_whole or keywords & _OF_OBJECTS else None
    as_list = _list(node) if keywords & _OF_LISTS else None
    plain = list(scalar_rules(node))
    combined = list(_combined(node))
    if as_object is None and as_list is None and not plain and not combined:
        return None

    def check(value: Any) -> Faults:
        if type(value) is dict and as_object is not None:
            found = as_object(value) or []
        elif type(value) is list and as_list is not None:
            found = as_list(value) or []
        else:
            found = [found for rule in combined for found in rule(value) or ()]
        found += [wrong for rule in plain if (wrong := rule(value)) is not None]
        return found or None

    return check


def _shared_rules(node: Node) -> Iterable[Rule]:
    if "enum" in node.raw and node.shape.type:
        allowed = node.raw["enum"]
        yield (
            lambda value: (
                None
                if value in allowed
                else [Fault(fault.NOT_SUPPORTED, f"{quoted(value)} is not supported")]
            )
        )
    yield from _combined(node)


def _combined(node: Node) -> Iterable[Rule]:
    """Yield the rules of allOf, anyOf, oneOf and not."""
    raw = node.raw
    if node.shape.is_int_or_string:
        return  # they say once more that it is an integer or a string
    for each in raw.get("allOf", ()):
        if (check := _part(node, each)) is not None:
            yield check
    if parts := raw.get("anyOf"):
        some = [_part(node, each) for each in parts]
        yield lambda value: _any_of(value, some)
    if parts := raw.get("oneOf"):
        one = [_part(node, each) for each in parts]
        yield lambda value: _one_of(value, one)
    if (refused := raw.get("not")) is not None:
        check_not = _part(node, refused)
        yield (
            lambda value: (
                [Fault(fault.INVALID, "is just what is not allowed here")]
                if check_not is None or not check_not(value)
                else None
            )
        )


def _part(node: Node, raw: Any) -> Pass | None:
    if not isinstance(raw, Mapping) or "$ref" in raw:
        return None  # no schema may have that; one that does must not bring the server down
    return node_of(Shape(raw, definition), typed=node.typed).compiled(compile_check)


def _any_of(value: Any, parts: Sequence[Pass | None]) -> Faults:
    fewest: list[Fault] | None = None
    for check in parts:
        faults = None if check is None else check(value)
        if not faults:
            return None
        if fewest is None or len(faults) < len(fewest):
            fewest = faults
    return fewest  # what is missing for the form that it nearly has


def _one_of(value: Any, parts: Sequence[Pass | None]) -> Faults:
    fitting = sum(1 for check in parts if check is None or not check(value))
    if fitting == 1:
        return None
    if fitting == 0:
        return _any_of(value, parts)
    return [Fault(fault.INVALID, f"has {fitting} of {len(parts)} forms at once; choose one")]


def _too_many(count: int, most: int, what: str) -> Faults:
    if count <= most:
        return None
    return [Fault(fault.TOO_MANY, f"has {count} {what}; at most {most} are allowed")]


def _too_few(count: int, fewest: int, what: str) -> Faults:
    if count >= fewest:
        return None
    return [Fault(fault.INVALID, f"has {count} {what}; it needs at least {fewest}")]
