"""A published schema without its prose: only the facts, in the form that we keep.

Both OpenAPI documents and CustomResourceDefinitions come through here. Descriptions and examples
are dropped (ours are added at the very end), references are renamed to `core.v1.PodSpec`, and the
many spellings of an amount, a time, or a number-or-text become one each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.kube.form import Json

QUANTITY: Json = {"$ref": "meta.v1.Quantity"}
INT_OR_STRING: Json = {"$ref": "meta.v1.IntOrString"}
TIME: Json = {"type": "string", "format": "date-time"}
MICRO_TIME: Json = {"$ref": "meta.v1.MicroTime"}
ANYTHING: Json = {"x-kubernetes-preserve-unknown-fields": True}
ANY_OBJECT: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

# What the short names above stand for; they are kept with the core group.
SCALARS: Mapping[str, Json] = {
    "meta.v1.Quantity": {
        "type": "string",
        "format": "quantity",
        "x-kubernetes-int-or-string": True,
    },
    "meta.v1.IntOrString": {"x-kubernetes-int-or-string": True},
    "meta.v1.MicroTime": {"type": "string", "format": "micro-time"},
}

_REPLACED: Mapping[str, Json] = {
    "meta.v1.Time": TIME,
    "meta.v1.MicroTime": MICRO_TIME,
    "meta.v1.FieldsV1": ANY_OBJECT,
    "meta.v1.Quantity": QUANTITY,
    "meta.v1.IntOrString": INT_OR_STRING,
    "meta.v1.RawExtension": ANY_OBJECT,
    # Any JSON at all: inside the schema of a CustomResourceDefinition.
    "apiextensions.v1.JSON": ANYTHING,
    # A list of schemas is no structural schema, so one is all there can be.
    "apiextensions.v1.JSONSchemaPropsOrArray": {"$ref": "apiextensions.v1.JSONSchemaProps"},
    "apiextensions.v1.JSONSchemaPropsOrBool": ANYTHING,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": ANYTHING,
    "apiextensions.v1.CustomResourceSubresourceStatus": ANY_OBJECT,
}

_KEPT = (
    "type",
    "format",
    "nullable",
    "required",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-validations",
)
_IS_DEFAULT_ANYWAY = {"x-kubernetes-list-type": "atomic", "x-kubernetes-map-type": "granular"}
_DROPPED = {
    "default",  # belongs to the field, see _default_of
    "description",
    "title",
    "example",
    "externalDocs",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-unions",
    "properties",
    "items",
    "additionalProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "$ref",
}


def definition_name(published: str) -> str:
    """Return our name of a published definition.

    >>> definition_name("#/components/schemas/io.k8s.api.core.v1.PodSpec")
    'core.v1.PodSpec'
    >>> definition_name("io.k8s.apimachinery.pkg.util.intstr.IntOrString")
    'meta.v1.IntOrString'
    """
    published = published.rpartition("/")[2]
    *_, group, version, name = published.split(".")
    if not version.startswith("v") or not version[1:2].isdigit():
        return f"meta.v1.{name}"  # resource.Quantity, intstr.IntOrString, runtime.RawExtension
    return f"{group}.{version}.{name}"


def facts(published: Mapping[str, Any], *, typed: bool) -> Json:
    """Return the facts of a published schema; `typed` ones come from a built-in kind."""
    if "$ref" in published or _only_reference(published):
        reference = published.get("$ref") or published["allOf"][0]["$ref"]
        name = definition_name(reference)
        return dict(_REPLACED.get(name, {"$ref": name}))
    if published.get("x-kubernetes-int-or-string") or published.get("format") == "int-or-string":
        return dict(QUANTITY if "pattern" in published else INT_OR_STRING)
    unknown = set(published) - set(_KEPT) - _DROPPED
    assert not unknown, f"unknown keywords {sorted(unknown)}: {published}"
    kept: Json = {key: published[key] for key in _KEPT if key in published}
    for key, usual in _IS_DEFAULT_ANYWAY.items():
        if kept.get(key) == usual:
            del kept[key]
    if "x-kubernetes-validations" in kept:
        kept["x-kubernetes-validations"] = [_rule(rule) for rule in published[_RULES]]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in published:
            # Only "one of these fields must be there" may stand in a structural schema.
            kept[key] = [facts(branch, typed=typed) for branch in published[key]]
    if "not" in published:
        kept["not"] = facts(published["not"], typed=typed)
    if isinstance(published.get("items"), Mapping):
        kept["items"] = facts(published["items"], typed=typed)
    if isinstance(published.get("additionalProperties"), Mapping):
        kept["additionalProperties"] = facts(published["additionalProperties"], typed=typed)
    if "properties" in published:
        kept["properties"] = {
            name: facts(schema, typed=typed) | _default_of(published, name, typed=typed)
            for name, schema in published["properties"].items()
        }
    if typed and not kept.get("properties") and kept.get("type") == "object" and len(kept) == 1:
        # An empty struct, such as `basic: {}`.
        kept["properties"] = {}
    return kept


_RULES = "x-kubernetes-validations"


def _only_reference(published: Mapping[str, Any]) -> bool:
    return len(published.get("allOf", ())) == 1 and "$ref" in published["allOf"][0]


def _default_of(parent: Mapping[str, Any], name: str, *, typed: bool) -> Json:
    """Return the default of a field, if it is a real one.

    Schemas of built-in kinds also list the zero value of every Go field that is no pointer.
    """
    default = parent["properties"][name].get("default")
    is_zero = typed and default is not False and default in ("", 0, {}, [])
    if default is None or is_zero or (typed and name in parent.get("required", ())):
        return {}
    return {"default": default}


def _rule(published: Mapping[str, Any]) -> Json:
    return {key: value for key, value in published.items() if key != "message"}
