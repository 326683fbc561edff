"""What the server has, as clients ask for it before they do anything else.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unisono.apiserver.objects import Json
from unisono.kinds.shapes.served import GROUPS, Served

DISCOVERY_GROUP = "apidiscovery.k8s.io"

_EVERYTHING = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_PART = ("get", "patch", "update")

# Kinds that can do less than everything: reviews are answered and never kept, usage is only read.
_VERBS_OF_GROUP = {
    "authentication.k8s.io": ("create",),
    "authorization.k8s.io": ("create",),
    "metrics.k8s.io": ("get", "list"),
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
