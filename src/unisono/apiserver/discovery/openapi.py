"""OpenAPI v3 documents, one per group and version, as small as kubectl can use.

`kubectl explain` reads the schemas; `apply` and `edit` look for two query parameters of PATCH, and
for the merge keys of built-in kinds. Nothing else is in a document: the schema of every kind, the
definitions that it needs, and one PATCH per kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import orjson

from unisono import __version__
from unisono.apiserver.objects import Json
from unisono.kinds.shapes.served import BUILT_IN, Served, all_definitions, definition

# A complete OpenAPI v2 document in protobuf, with no paths and no definitions: all that kubectl
# before 1.29 needs for everything but `explain`.
V2_STUB = b"\x0a\x032.0"

_SCHEMAS = "#/components/schemas/"
_PATCHES = ("application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_APPLY = "application/apply-patch+yaml"
# What a client has no use for: rules are checked here, and the pruning is ours.
_DROPPED = frozenset({"$ref", "properties", "items", "additionalProperties", "default"})
_PUBLISHED: Mapping[str, Json] = {
    "meta.v1.Quantity": {
        "description": 'An amount: a number with an optional suffix, such as 2, "500m" or "64Gi".',
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    "meta.v1.IntOrString": {
        "description": "A number, or a text such as a name or a percentage.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "meta.v1.MicroTime": {
        "description": "A point in time with microseconds.",
        "format": "date-time",
        "type": "string",
    },
}


def index(served: Sequence[Served]) -> dict[str, str]:
    """Return the path of every document with a hash that changes whenever the document does."""
    marks: dict[str, Any] = {}
    for one in served:
        # The document names its version, so two versions of one schema are two documents.
        path = _path(one)
        mark = marks.setdefault(path, hashlib.sha256(_common_mark() + path.encode()))
        mark.update(orjson.dumps([one.kind, one.plural, one.namespaced, one.schema]))
    return {path: mark.hexdigest()[:32].upper() for path, mark in marks.items()}


def document(served: Sequence[Served], group: str, version: str) -> bytes:
    """Return the document of one group and version."""
    ours = [one for one in served if (one.group, one.version) == (group, version)]
    schemas: dict[str, Json] = {}
    waiting: list[str] = []
    for one in ours:
        schemas[_name(one)] = _published(one.schema, waiting) | {
            "x-kubernetes-group-version-kind": [_kind(one)]
        }
    while waiting:
        name = waiting.pop()
        if name not in schemas:
            schemas[name] = _PUBLISHED.get(name) or _published(definition(name), waiting)
    return orjson.dumps(
        {
            "openapi": "3.0.0",
            "info": {"title": "Unisono", "version": __version__},
            "paths": {_address(one): {"patch": _patch(one)} for one in ours},
            "components": {"schemas": dict(sorted(schemas.items()))},
        }
    )


# ---- parts -------------------------------------------------------------------------------------


def _path(served: Served) -> str:
    return f"apis/{served.api_version}" if served.group else f"api/{served.version}"


def _address(served: Served) -> str:
    within = "/namespaces/{namespace}" if served.namespaced else ""
    return f"/{_path(served)}{within}/{served.plural}/{{name}}"


def _name(served: Served) -> str:
    return f"{served.group or 'core'}.{served.version}.{served.kind}"


def _kind(served: Served) -> Json:
    return {"group": served.group, "version": served.version, "kind": served.kind}


def _patch(served: Served) -> Json:
    types = [*_PATCHES, _APPLY, *([_STRATEGIC] if served.group in BUILT_IN else [])]
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    places = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in (("namespace", "name") if served.namespaced else ("name",))
    ]
    return {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kind(served),
        "parameters": [*places, *parameters],
        "requestBody": {"content": {one: {"schema": {"type": "object"}} for one in types}},
        "responses": {"200": {"description": "OK"}},
    }


def _published(node: Mapping[str, Any], waiting: list[str]) -> Json:
    """Return a schema as documents write it; names that it needs go on the waiting list."""
    made: Json = {key: value for key, value in node.items() if _is_published(key)}
    reference = node.get("$ref")
    if reference is not None:
        waiting.append(reference)
        return {"allOf": [{"$ref": _SCHEMAS + reference}], **made}
    if node.get("format") == "micro-time":
        made["format"] = "date-time"
    if node.get("x-kubernetes-int-or-string"):
        return _PUBLISHED["meta.v1.IntOrString"] | made
    if "default" in node:
        made["default"] = node["default"]
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), Mapping):
            made[key] = _published(node[key], waiting)
    if "properties" in node:
        made["properties"] = {
            name: _published(child, waiting) for name, child in node["properties"].items()
        }
        made.setdefault("type", "object")
    return made


def _is_published(key: str) -> bool:
    return key not in _DROPPED and key != "x-kubernetes-validations"


@cache
def _common_mark() -> bytes:
    """Return what stands for this version of the program and all shared definitions."""
    return hashlib.sha256(__version__.encode() + orjson.dumps(all_definitions())).digest()
