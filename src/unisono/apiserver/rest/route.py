"""An address taken apart: which kind, which object, what of it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from unisono.apiserver.catalogue import Catalogue, Resource
from unisono.apiserver.errors import ApiError


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a request is about."""

    resource: Resource
    namespace: str = ""  # empty: none, or all of them
    name: str = ""  # empty: the collection
    subresource: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Under which the object is stored."""
        return (self.resource.key, self.namespace, self.name)


class UnknownPath(Exception):
    """Nothing is served under this address; the answer is plain text, not a Status."""


def route(path: str, catalogue: Catalogue) -> Route:
    """Return what the address of an object or a collection means.

    /api/v1/namespaces/NAMESPACE/PLURAL/NAME/SUBRESOURCE, or /apis/GROUP/VERSION/… alike.
    """
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise UnknownPath(path)
    if not all(rest):
        raise UnknownPath(path)
    namespace = ""
    # /namespaces/x is an object itself; /namespaces/x/status is below it, not in it.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise _no_such_resource()
    plural, name, subresource = (*rest, "", "")[:3]
    resource = catalogue.find(group, version, plural)
    if resource is None:
        if not catalogue.has_group(group):
            raise UnknownPath(path)
        raise _no_such_resource()
    if namespace and not resource.served.namespaced:
        raise _no_such_resource()
    if name and resource.served.namespaced and not namespace:
        raise _no_such_resource()
    return Route(resource=resource, namespace=namespace, name=name, subresource=subresource)


def _no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")
