"""An address taken apart: which kind, which object, what of it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from unisono.apiserver.catalogue import Catalogue, Resource
from unisono.apiserver.errors import ApiError

# So many collections are remembered: a kind in a namespace each.
_MOST_COLLECTIONS = 512


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


class Routes:
    """Addresses that were taken apart before: most requests are about few collections."""

    def __init__(self, catalogue: Catalogue) -> None:
        """Begin with none."""
        self._catalogue = catalogue
        self._at = -1
        self._collections: dict[str, Route] = {}

    def known(self, path: str) -> Route | None:
        """Return what an address means if it is a known collection, or something in one."""
        if self._at != self._catalogue.version:
            self._at = self._catalogue.version
            self._collections.clear()
        found = self._collections.get(path)
        if found is not None:
            return found
        above, _, name = path.rpartition("/")
        found = self._collections.get(above)
        if found is None or not name or "%" in name:
            return None
        if found.resource.served.namespaced and not found.namespace:
            return None
        return Route(resource=found.resource, namespace=found.namespace, name=name)

    def find(self, path: str) -> Route:
        """Take an address apart; collections are remembered."""
        found = route(path, self._catalogue)
        if path.endswith("/"):
            return found  # what follows it is no name
        if not found.name:
            if len(self._collections) >= _MOST_COLLECTIONS:
                self._collections.clear()
            self._collections[path] = found
        elif not found.subresource and "%" not in path:
            self.find(path.rpartition("/")[0])
        return found


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
