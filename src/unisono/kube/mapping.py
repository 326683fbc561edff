"""From the words in a manifest to an address: apiVersion and kind to a path.

Kinds that we know ourselves are looked up in the table that the embedded server serves; for all
others the API is asked once per group and version (discovery), and what it says is remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from unisono.kinds.shapes.served import served_kinds
from unisono.kube.errors import BadResponse, NotFound, UnknownKind


class Kind(NamedTuple):
    """A kind as manifests name it."""

    api_version: str
    kind: str


@dataclass(frozen=True, slots=True)
class Resource:
    """Where the objects of a kind are found."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the address of the collection, of an object, or of a part of one.

        >>> Resource("batch/v1", "Job", "jobs", True).path(namespace="a", name="b")
        '/apis/batch/v1/namespaces/a/jobs/b'
        """
        parts = ["/apis" if "/" in self.api_version else "/api", self.api_version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


POD = Kind("v1", "Pod")
EVENT = Kind("v1", "Event")
LEASE = Kind("coordination.k8s.io/v1", "Lease")

# What this package itself reads and writes must not depend on a table of an API.
_OWN = {
    POD: Resource(*POD, "pods", namespaced=True),
    EVENT: Resource(*EVENT, "events", namespaced=True),
    LEASE: Resource(*LEASE, "leases", namespaced=True),
}


@cache
def _known() -> Mapping[Kind, Resource]:
    return _OWN | {
        Kind(served.api_version, served.kind): Resource(
            served.api_version, served.kind, served.plural, served.namespaced
        )
        for served in served_kinds()
    }


class _Found(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool = False


class _FoundList(msgspec.Struct, frozen=True):
    resources: tuple[_Found, ...] | None = ()


_decode_list = msgspec.json.Decoder(_FoundList).decode


class Mapper:
    """Finds the address of a kind."""

    def __init__(self, read: Callable[[str], Awaitable[bytes]]) -> None:
        """Ask with `read`, which returns the body at a path."""
        self._read = read
        self._discovered: dict[Kind, Resource] = {}

    async def find(self, kind: Kind) -> Resource:
        """Return where objects of a kind are; raises UnknownKind.

        A kind that is not there is asked for again the next time: its CRD may be on its way.
        """
        found = _OWN.get(kind) or self._discovered.get(kind) or _known().get(kind)
        if found is None:
            await self._discover(kind.api_version)
            found = self._discovered.get(kind)
        if found is None:
            raise UnknownKind(
                f"the API does not serve {kind.kind} of {kind.api_version}; is its CRD installed?"
            )
        return found

    async def _discover(self, api_version: str) -> None:
        root = "/apis" if "/" in api_version else "/api"
        try:
            body = await self._read(f"{root}/{quote(api_version)}")
        except NotFound:
            return
        try:
            found = _decode_list(body).resources or ()
        except msgspec.DecodeError as error:
            raise BadResponse(f"the discovery of {api_version} cannot be read: {error}") from error
        for each in found:
            if "/" not in each.name:  # else it is a subresource
                self._discovered[Kind(api_version, each.kind)] = Resource(
                    api_version, each.kind, each.name, each.namespaced
                )
