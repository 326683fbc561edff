"""Which schemas a user's kind may have: structural ones, so that fields can be told from values.

Every node says its type, unless it may be anything on purpose; what stands inside `allOf` and its
like only adds rules. A schema that refers to itself, or to others, cannot be stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unisono.apiserver.builtin.causes import about, forbidden, invalid, not_supported, required
from unisono.apiserver.errors import Cause
from unisono.apiserver.schema.checker import Checker
from unisono.apiserver.schema.patterns import pattern_problem
from unisono.apiserver.schema.rules import rule_problem
from unisono.kinds.shapes.served import definition
from unisono.kinds.shapes.shape import Shape

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NEVER = ("$ref", "definitions", "dependencies", "patternProperties", "id", "deprecated")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
# Nobody writes deeper schemas; this keeps a hostile one from using up the stack.
_MAX_DEPTH = 200


def check_schema(schema: dict[str, Any], path: str) -> Iterator[Cause]:
    """Yield the faults of the schema of a whole kind."""
    if schema.get("type") != "object":
        yield invalid(f"{path}.type", schema.get("type"), "must be object at the root")
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    extra = [key for key in metadata if key not in ("type", "description", "properties")]
    if extra:
        why = "metadata is implied; only its name and generateName may have rules"
        yield forbidden(f"{path}.properties[metadata]", why)
    faults = list(_check_node(schema, path, 0))
    yield from faults
    if not faults and not extra:
        # Only a sound schema can be asked whether its own defaults fit.
        yield from _check_defaults(schema, path)


def _check_defaults(schema: dict[str, Any], path: str) -> Iterator[Cause]:
    if "default" in schema:
        yield from _check_default(schema, path)
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):
            yield from _check_defaults(child, f"{path}.properties[{name}]")
    for field in ("additionalProperties", "items"):
        if isinstance(schema.get(field), dict):
            yield from _check_defaults(schema[field], f"{path}.{field}")


def _check_node(schema: Any, path: str, depth: int) -> Iterator[Cause]:
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be an object")
        return
    if depth > _MAX_DEPTH:
        yield forbidden(path, "is nested too deeply")
        return
    for field in _NEVER:
        if schema.get(field):
            yield forbidden(f"{path}.{field}", f"{field} is not supported")
    if schema.get("uniqueItems") is True:
        yield forbidden(f"{path}.uniqueItems", "uniqueItems cannot be set to true")
    yield from _check_type(schema, path)
    yield from _check_lists(schema, path)
    yield from _check_words(schema, path)
    properties, more = schema.get("properties"), schema.get("additionalProperties")
    if properties and more:
        yield forbidden(
            f"{path}.additionalProperties", "additionalProperties and properties exclude each other"
        )
    for name, child in properties.items() if isinstance(properties, dict) else ():
        # A property `metadata` at the root is implied, whatever it says.
        if depth or name not in ("apiVersion", "kind", "metadata"):
            yield from _check_node(child, f"{path}.properties[{name}]", depth + 1)
    if isinstance(more, dict):
        yield from _check_node(more, f"{path}.additionalProperties", depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _check_node(schema["items"], f"{path}.items", depth + 1)
    for at, inner in _alternatives(schema, path):
        yield from _check_alternative(inner, at, depth + 1)


def _check_type(schema: dict[str, Any], path: str) -> Iterator[Cause]:
    kind = schema.get("type")
    if kind is None or kind == "":
        if not (
            schema.get("x-kubernetes-int-or-string")
            or schema.get("x-kubernetes-preserve-unknown-fields")
        ):
            yield required(f"{path}.type", "must not be empty for specified object fields")
    elif kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    elif kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")


def _check_lists(schema: dict[str, Any], path: str) -> Iterator[Cause]:
    listing, mapping = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-map-type")
    keys = schema.get("x-kubernetes-list-map-keys")
    if listing is not None and listing not in _LIST_TYPES:
        yield not_supported(f"{path}.x-kubernetes-list-type", listing, _LIST_TYPES)
    if mapping is not None and mapping not in _MAP_TYPES:
        yield not_supported(f"{path}.x-kubernetes-map-type", mapping, _MAP_TYPES)
    if listing == "map" and not keys:
        yield required(
            f"{path}.x-kubernetes-list-map-keys", "must not be empty if list type is map"
        )
    if keys and listing != "map":
        why = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(f"{path}.x-kubernetes-list-type", listing, why)


def _check_words(schema: dict[str, Any], path: str) -> Iterator[Cause]:
    """Patterns and rules must be understood now, not when the first object comes."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        yield from about(f"{path}.pattern", pattern, pattern_problem(pattern))
    rules = schema.get("x-kubernetes-validations")
    for index, raw in enumerate(rules if isinstance(rules, list) else ()):
        at = f"{path}.x-kubernetes-validations[{index}].rule"
        rule = raw.get("rule") if isinstance(raw, dict) else None
        if not isinstance(rule, str) or not rule.strip():
            yield required(at, "must not be empty")
        else:
            yield from about(at, rule, rule_problem(rule))


def _check_default(schema: dict[str, Any], path: str) -> Iterator[Cause]:
    """A default is a value like any other and has to fit."""
    wrapped = {"type": "object", "properties": {"value": {**schema, "default": None}}}
    checker = Checker(Shape(wrapped, definition), typed=False)
    sample = {"apiVersion": "v1", "kind": "Any", "metadata": {}, "value": schema["default"]}
    for cause in checker.check(sample, None):
        yield Cause(cause.reason, cause.message, f"{path}.default")


def _alternatives(schema: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for word in ("allOf", "anyOf", "oneOf"):
        listed = schema.get(word)
        for index, inner in enumerate(listed if isinstance(listed, list) else ()):
            yield f"{path}.{word}[{index}]", inner
    if "not" in schema:
        yield f"{path}.not", schema["not"]


def _check_alternative(schema: Any, path: str, depth: int) -> Iterator[Cause]:
    """Inside of alternatives stand further rules for values, and nothing that makes fields."""
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be an object")
        return
    if depth > _MAX_DEPTH:
        yield forbidden(path, "is nested too deeply")
        return
    for field in (*_NEVER, "default", "x-kubernetes-preserve-unknown-fields", "description"):
        if schema.get(field):
            yield forbidden(f"{path}.{field}", "must not be set inside of alternatives")
    yield from _check_words(schema, path)
    properties = schema.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        yield from _check_alternative(inner, f"{path}.properties[{name}]", depth + 1)
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            yield from _check_alternative(schema[field], f"{path}.{field}", depth + 1)
    for at, inner in _alternatives(schema, path):
        yield from _check_alternative(inner, at, depth + 1)
