"""What the server has, as clients ask for it before they do anything else: kinds and schemas.

Two forms of the same facts. The legacy form takes one request for each group and version:

    /api                APIVersions        core_versions
    /apis               APIGroupList       group_list, and one APIGroup each under /apis/<group>
    /apis/batch/v1      APIResourceList    resource_list; subresources stand beside as `pods/log`

The aggregated form says everything at `/api` and `/apis`, in two answers that clients keep for
hours and check by `ETag` (`aggregated`). The order of the groups is a promise: it decides which
kind a bare word such as `queue` means.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from unisono import __version__
from unisono.apiserver.objects import Json
from unisono.kinds.shapes.served import (
    BUILT_IN,
    GROUPS,
    METRICS,
    VISIBILITY,
    Served,
    all_definitions,
    definition,
)

DISCOVERY_GROUP = "apidiscovery.k8s.io"

_EVERYTHING = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PART = ("get", "patch", "update")

# Kinds that can do less than everything: reviews are answered and never kept, usage is only read.
_VERBS_OF_GROUP = {
    "authentication.k8s.io": ("create",),
    "authorization.k8s.io": ("create",),
    METRICS: ("get", "list"),
    VISIBILITY: (),  # only what is below a queue can be read
}
_VERBS_OF_KIND = {
    "/bindings": ("create",),
    "/componentstatuses": ("get", "list"),
    # A namespace takes time to go; many at once is a mistake that cannot be undone.
    "/namespaces": tuple(verb for verb in _EVERYTHING if verb != "deletecollection"),
}


@dataclass(frozen=True, slots=True)
class _Part:
    """A subresource that speaks of another kind than the one it belongs to."""

    verbs: tuple[str, ...]
    kind: str = ""  # empty: the kind itself
    group: str | None = None  # None: the group and version of the kind itself
    version: str = ""


_CONNECT = ("create", "get")

_PARTS = {
    "status": _Part(_PART),
    "scale": _Part(_PART, "Scale", "autoscaling", "v1"),
    "log": _Part(("get",)),
    "binding": _Part(("create",), "Binding"),
    # `kubectl drain` refuses to evict unless it finds exactly this group and version.
    "eviction": _Part(("create",), "Eviction", "policy", "v1"),
    "ephemeralcontainers": _Part(_PART),
    "resize": _Part(_PART),
    "attach": _Part(_CONNECT, "PodAttachOptions"),
    "exec": _Part(_CONNECT, "PodExecOptions"),
    "portforward": _Part(_CONNECT, "PodPortForwardOptions"),
    "token": _Part(("create",), "TokenRequest", "authentication.k8s.io", "v1"),
    "finalize": _Part(("update",)),
    "approval": _Part(_PART),
    "pendingworkloads": _Part(("get",)),
}


def verbs_of(served: Served) -> tuple[str, ...]:
    """Return what can be done with a kind, in alphabetical order."""
    by_group = _VERBS_OF_GROUP.get(served.group, _EVERYTHING)
    return _VERBS_OF_KIND.get(served.key, by_group)


def core_versions(served: Sequence[Served]) -> Json:
    """Answer `/api` in the legacy form."""
    return {
        "kind": "APIVersions",
        "versions": _versions(one for one in served if not one.group),
        "serverAddressByClientCIDRs": [],
    }


def group_list(served: Sequence[Served]) -> Json:
    """Answer `/apis` in the legacy form."""
    groups = [api_group(served, name) for name in _groups(served) if name]
    for group in groups:
        del group["kind"], group["apiVersion"]  # which only stand on a document of its own
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(served: Sequence[Served], group: str) -> Json:
    """Answer `/apis/<group>`; the first version is the one to prefer."""
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in _versions(one for one in served if one.group == group)
    ]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": group,
        "versions": versions,
        "preferredVersion": versions[0] if versions else {"groupVersion": "", "version": ""},
    }


def resource_list(served: Sequence[Served], group: str, version: str) -> Json:
    """Answer `/api/v1` or `/apis/<group>/<version>`."""
    resources: list[Json] = []
    for one in served:
        if (one.group, one.version) != (group, version):
            continue
        resource: Json = {
            "name": one.plural,
            "singularName": one.singular,
            "namespaced": one.namespaced,
            "kind": one.kind,
            "verbs": list(verbs_of(one)),
        }
        if one.short_names:
            resource["shortNames"] = list(one.short_names)
        if one.categories:
            resource["categories"] = list(one.categories)
        resources.append(resource)
        resources += (_listed_part(one, name) for name in sorted(one.subresources))
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def aggregated(served: Sequence[Served], *, core: bool, version: str) -> Json:
    """Answer `/api` (core) or `/apis` at once; `version` is v2 or v2beta1, which look the same."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{DISCOVERY_GROUP}/{version}",
        "metadata": {},
        "items": [_group(served, name) for name in _groups(served) if core == (name == "")],
    }


def content_type(version: str) -> str:
    """Return the content type of an aggregated answer; clients check it word by word."""
    return f"application/json;g={DISCOVERY_GROUP};v={version};as=APIGroupDiscoveryList"


def asked_version(accept: str) -> str:
    """Return the first aggregated form in an Accept header that we have; empty for legacy."""
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        asked = set(parameters)
        if media != "application/json" or f"g={DISCOVERY_GROUP}" not in asked:
            if media in ("application/json", "*/*") and not asked - {"charset=utf-8"}:
                return ""  # plain JSON stands first: the legacy form is preferred
            continue
        for version in ("v2", "v2beta1"):
            if {f"v={version}", "as=APIGroupDiscoveryList"} <= asked:
                return version
    return ""


def etag(body: bytes) -> str:
    """Return the tag under which a client keeps an answer."""
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'


# ---- the aggregated form -------------------------------------------------------------------------


def _group(served: Sequence[Served], group: str) -> Json:
    members = [one for one in served if one.group == group]
    return {
        "metadata": {"name": group} if group else {},
        "versions": [
            {
                "version": version,
                "resources": [_resource(one) for one in members if one.version == version],
                "freshness": "Current",
            }
            for version in _versions(members)
        ],
    }


def _resource(one: Served) -> Json:
    resource: Json = {
        "resource": one.plural,
        "responseKind": {"group": one.group, "version": one.version, "kind": one.kind},
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": list(verbs_of(one)),
    }
    if one.short_names:
        resource["shortNames"] = list(one.short_names)
    if one.categories:
        resource["categories"] = list(one.categories)
    if one.subresources:
        resource["subresources"] = [_nested_part(one, name) for name in sorted(one.subresources)]
    return resource


def _nested_part(one: Served, name: str) -> Json:
    part = _PARTS.get(name, _Part(_PART))
    return {
        "subresource": name,
        "responseKind": {
            "group": one.group if part.group is None else part.group,
            "version": part.version or one.version,
            "kind": part.kind or one.kind,
        },
        "verbs": list(part.verbs),
    }


# ---- the legacy form -----------------------------------------------------------------------------


def _listed_part(one: Served, name: str) -> Json:
    part = _PARTS.get(name, _Part(_PART))
    listed: Json = {
        "name": f"{one.plural}/{name}",
        "singularName": "",
        "namespaced": one.namespaced,
        "kind": part.kind or one.kind,
        "verbs": list(part.verbs),
    }
    # Only where it differs from the document's own: a client takes its absence to mean "the same".
    if part.group is not None and (part.group, part.version) != (one.group, one.version):
        listed["group"] = part.group
        listed["version"] = part.version
    return listed


# ---- the order of groups and versions ------------------------------------------------------------


def _groups(served: Iterable[Served]) -> list[str]:
    """Return the groups there are: ours in their documented order, then others by the alphabet."""
    there = {one.group for one in served}
    ours = [group for group in GROUPS if group in there]
    return ours + sorted(there.difference(GROUPS))


_STABILITY = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_RANK = {None: 2, "beta": 1, "alpha": 0}


def _versions(members: Iterable[Served]) -> list[str]:
    """Return the versions of a group, the one to prefer first: v2, v1, v1beta2, v1beta1, v1alpha1.

    The same rule that Kubernetes has for custom resources. Names of another form come last.
    """
    return sorted({one.version for one in members}, key=_preference)


def _preference(version: str) -> tuple[int, int, int, int, str]:
    read = _STABILITY.fullmatch(version)
    if read is None:
        return (1, 0, 0, 0, version)
    major, stability, minor = read[1], read[2], read[3] or "0"
    return (0, -_RANK[stability], -int(major), -int(minor), version)


# ---- OpenAPI -------------------------------------------------------------------------------------
#
# OpenAPI v3 documents, one per group and version, as small as kubectl can use.
#
# `kubectl explain` reads the schemas; `apply` and `edit` look for two query parameters of PATCH,
# and for the merge keys of built-in kinds. Nothing else is in a document: the schema of every kind,
# the definitions that it needs, and one PATCH per kind.

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


def openapi_index(served: Sequence[Served]) -> dict[str, str]:
    """Return the path of every document with a hash that changes whenever the document does."""
    marks: dict[str, Any] = {}
    for one in served:
        # The document names its version, so two versions of one schema are two documents.
        path = _path(one)
        mark = marks.setdefault(path, hashlib.sha256(_common_mark() + path.encode()))
        mark.update(orjson.dumps([one.kind, one.plural, one.namespaced, one.schema]))
    return {path: mark.hexdigest()[:32].upper() for path, mark in marks.items()}


def openapi_document(served: Sequence[Served], group: str, version: str) -> bytes:
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
            "paths": dict(map(_operation, ours)),
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


def _operation(served: Served) -> tuple[str, Json]:
    """Return the one address of a kind that a document has, and what can be done there."""
    if served.group != VISIBILITY:
        return _address(served), {"patch": _patch(served)}
    return f"{_address(served)}/pendingworkloads", {"get": _pending(served)}


def _pending(served: Served) -> Json:
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "integer"}} for name in ("limit", "offset")
    ]
    schema = {"$ref": _SCHEMAS + _name(served)}
    content = {"application/json": {"schema": schema}}
    return {
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": _kind(served),
        "parameters": [*_places(served), *parameters],
        "responses": {"200": {"description": "OK", "content": content}},
    }


def _places(served: Served) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in (("namespace", "name") if served.namespaced else ("name",))
    ]


def _patch(served: Served) -> Json:
    types = [*_PATCHES, _APPLY, *([_STRATEGIC] if served.group in BUILT_IN else [])]
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    return {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _kind(served),
        "parameters": [*_places(served), *parameters],
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
