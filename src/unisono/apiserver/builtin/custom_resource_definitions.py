"""CustomResourceDefinitions: kinds that users bring along.

A definition is established the moment it is stored: its names are taken as they are, and its
versions are served at once. Objects are never sent anywhere to be converted, so a definition that
asks for a webhook is refused; unless the kind is one that we implement ourselves, whose own
conversion is built in. Then the definition is only kept so that install scripts succeed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from unisono.apiserver.builtin.field_errors import (
    about,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from unisono.apiserver.builtin.metadata import wrong_with_service_name
from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json, at, child, fill, fill_text, items, numbered
from unisono.apiserver.schema.checker import Checker
from unisono.apiserver.schema.rules import rule_problem
from unisono.apiserver.strategy import Context, Strategy
from unisono.apiserver.times import timestamp
from unisono.kinds.expressions.formats import pattern_problem
from unisono.kinds.expressions.jsonpath import compile_path
from unisono.kinds.meta import wrong_with_subdomain
from unisono.kinds.overriding import override
from unisono.kinds.shapes.served import definition, served_kinds
from unisono.kinds.shapes.shape import Shape

_VERSION = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_MAX_VERSION = 63  # a version is a DNS label
_SCOPES = ("Cluster", "Namespaced")
_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")


class CustomResourceDefinitionStrategy(Strategy):
    """A user's kind."""

    @override
    def prepare_create(self, obj: Json, context: Context) -> None:
        """Establish the kind."""
        _fill_names(obj)
        obj["status"] = _status(obj, {}, context)

    @override
    def prepare_update(self, obj: Json, old: Json, context: Context) -> None:
        """Take over changed names and versions."""
        _fill_names(obj)
        obj["status"] = _status(obj, at(old, "status"), context)

    @override
    def default(self, obj: Json) -> None:
        """Fill in names, and that all versions are the same under another name."""
        _fill_names(obj)
        spec = child(obj, "spec")
        fill(spec, conversion={"strategy": "None"})
        fill_text(child(spec, "conversion"), strategy="None")

    @override
    def check(self, obj: Json, old: Json | None, context: Context) -> Iterator[Cause]:
        """Yield everything that keeps the kind from being served."""
        spec = at(obj, "spec")
        if old is not None:
            yield from _check_update(spec, at(old, "spec"))
            if spec == at(old, "spec"):
                return
        yield from _check_identity(obj, spec)
        yield from _check_versions(spec)
        yield from _check_conversion(spec)
        if spec.get("preserveUnknownFields") is True:
            why = "must be false; set x-kubernetes-preserve-unknown-fields in the schema instead"
            yield invalid("spec.preserveUnknownFields", spec["preserveUnknownFields"], why)


# ---- what the server adds ----------------------------------------------------------------------


def _fill_names(obj: Json) -> None:
    names = child(child(obj, "spec"), "names")
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        fill_text(names, singular=kind.lower(), listKind=f"{kind}List")


def _status(obj: Json, before: Mapping[str, Any], context: Context) -> Json:
    """Return the status of an accepted kind; what was stored once stays on the list."""
    spec = at(obj, "spec")
    stored = [str(one) for one in before.get("storedVersions") or ()]
    for version in items(spec, "versions"):
        name = version.get("name")
        if version.get("storage") is True and name and name not in stored:
            stored.append(str(name))
    conditions = items(before, "conditions") or [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", context),
        _condition("Established", "InitialNamesAccepted", "the names have been accepted", context),
    ]
    return {
        "conditions": conditions,
        "acceptedNames": dict(at(spec, "names")),
        "storedVersions": stored,
    }


def _condition(type_: str, reason: str, message: str, context: Context) -> Json:
    return {
        "type": type_,
        "status": "True",
        "lastTransitionTime": timestamp(context.now),
        "reason": reason,
        "message": message,
    }


@cache
def _built_in() -> frozenset[str]:
    return frozenset(served.key for served in served_kinds())


# ---- rules -------------------------------------------------------------------------------------


def _check_identity(obj: Json, spec: Json) -> Iterator[Cause]:
    group, names = str(spec.get("group") or ""), at(spec, "names")
    plural = str(names.get("plural") or "")
    if not group:
        yield required("spec.group")
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    else:
        yield from about("spec.group", group, wrong_with_subdomain(group))
    for field in ("plural", "singular", "kind", "listKind"):
        name = str(names.get(field) or "")
        if not name:
            yield required(f"spec.names.{field}")
        else:
            # Kinds have capitals, addresses do not.
            plain = name.lower() if field in ("kind", "listKind") else name
            yield from about(f"spec.names.{field}", name, wrong_with_service_name(plain))
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            path = f"spec.names.{field}[{index}]"
            yield from about(path, name, wrong_with_service_name(str(name)))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "may not be the same as kind")
    own_name = at(obj, "metadata").get("name")
    if plural and group and own_name != f"{plural}.{group}":
        yield invalid("metadata.name", own_name, 'must be spec.names.plural+"."+spec.group')
    if group.endswith((".k8s.io", ".kubernetes.io")) and not _is_approved(obj):
        note = "api-approved.kubernetes.io"
        yield required(f"metadata.annotations[{note}]", f"for protected groups like {group}")
    if spec.get("scope") not in _SCOPES:
        yield not_supported("spec.scope", spec.get("scope"), _SCOPES)


def _is_approved(obj: Json) -> bool:
    """Groups of the project itself name their approval; experimental `x-k8s.io` are free."""
    group = str(at(obj, "spec").get("group"))
    if group.endswith(".x-k8s.io"):
        return True
    return bool(at(obj, "metadata", "annotations").get("api-approved.kubernetes.io"))


def _check_versions(spec: Json) -> Iterator[Cause]:
    seen: set[str] = set()
    stored = 0
    for path, version in numbered(spec, "versions", "spec"):
        name = str(version.get("name") or "")
        if len(name) > _MAX_VERSION or _VERSION.fullmatch(name) is None:
            yield invalid(f"{path}.name", name, "must be a lower-case name such as v1beta1")
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        stored += version.get("storage") is True
        schema = at(version, "schema", "openAPIV3Schema")
        if not schema:
            yield required(f"{path}.schema.openAPIV3Schema", "schemas are required")
        else:
            yield from check_schema(schema, f"{path}.schema.openAPIV3Schema")
        yield from _check_columns(version, path)
        yield from _check_subresources(at(version, "subresources"), f"{path}.subresources")
    if stored != 1:
        versions = [one.get("name") for one in items(spec, "versions")]
        why = "must have exactly one version marked as storage version"
        yield invalid("spec.versions", versions, why)


def _check_columns(version: Json, path: str) -> Iterator[Cause]:
    for at_, column in numbered(version, "additionalPrinterColumns", path):
        for field in ("name", "type", "jsonPath"):
            if not column.get(field):
                yield required(f"{at_}.{field}")
        if column.get("jsonPath"):
            yield from about(f"{at_}.jsonPath", column["jsonPath"], _wrong_path(column["jsonPath"]))
        if column.get("type") and column["type"] not in _COLUMN_TYPES:
            yield not_supported(f"{at_}.type", column["type"], _COLUMN_TYPES)


def _wrong_path(path: object) -> str:
    try:
        compile_path(str(path))
    except ValueError as error:
        return str(error)
    return ""


def _check_subresources(subresources: Json, path: str) -> Iterator[Cause]:
    scale = subresources.get("scale")
    if not isinstance(scale, dict):
        return
    for field, parent in (
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        value = str(scale.get(field) or "")
        if not value:
            if field != "labelSelectorPath":
                yield required(f"{path}.scale.{field}")
        elif not value.startswith(parent):
            yield invalid(
                f"{path}.scale.{field}", value, "must be a json path under spec or status"
            )


def _check_conversion(spec: Json) -> Iterator[Cause]:
    strategy = at(spec, "conversion").get("strategy")
    if strategy not in ("None", "Webhook"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    key = f"{spec.get('group')}/{at(spec, 'names').get('plural')}"
    if strategy == "Webhook" and key not in _built_in():
        why = "webhooks are not called here; use None, with the same schema in all versions"
        yield forbidden("spec.conversion.strategy", why)


def _check_update(new: Json, old: Json) -> Iterator[Cause]:
    """Objects are stored under group, plural and scope; these stay what they were."""
    for field in ("group", "scope"):
        if new.get(field) != old.get(field):
            yield immutable(f"spec.{field}", new.get(field))
    for field in ("plural", "kind"):
        name = at(new, "names").get(field)
        if name != at(old, "names").get(field):
            yield immutable(f"spec.names.{field}", name)


# ---- structural schemas --------------------------------------------------------------------------
#
# Every node says its type, unless it may be anything on purpose; what stands inside `allOf` and its
# like only adds rules. A schema that refers to itself, or to others, cannot be stored.


_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_NEVER = ("$ref", "definitions", "dependencies", "patternProperties", "id", "deprecated")
_LIST_TYPES = ("atomic", "set", "map")
_MAP_TYPES = ("atomic", "granular")
# Schemas are not that deep; this keeps a hostile one from using up the stack.
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
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, dict):
            yield from _check_defaults(inner, f"{path}.properties[{name}]")
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
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        # A property `metadata` at the root is implied, whatever it says.
        if depth or name not in ("apiVersion", "kind", "metadata"):
            yield from _check_node(inner, f"{path}.properties[{name}]", depth + 1)
    if isinstance(more, dict):
        yield from _check_node(more, f"{path}.additionalProperties", depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _check_node(schema["items"], f"{path}.items", depth + 1)
    for place, inner in _alternatives(schema, path):
        yield from _check_alternative(inner, place, depth + 1)


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
    for place, inner in _alternatives(schema, path):
        yield from _check_alternative(inner, place, depth + 1)
