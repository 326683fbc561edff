"""Writes of controllers in this process: objects in, objects out, and no request between.

    create   a new object
    patch    a merge patch of an object, or of its status
    bind     a pod's node

They take the way of every write (`writer`), which leaves out what our own code cannot have got
wrong; with `is_checked`, as tests do, nothing is left out. What is staged here in one go becomes
durable together.
"""

from __future__ import annotations

from typing import NamedTuple

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import ApiError
from unisono.apiserver.objects import Json, copied
from unisono.apiserver.patch.json_patch import merge_patch
from unisono.apiserver.request import Origin, Request, User
from unisono.apiserver.rest.context import ServerContext, WriteOptions
from unisono.apiserver.rest.patching import is_status_alone
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.subresources import Subresources
from unisono.apiserver.rest.versions import shown
from unisono.apiserver.rest.writer import Writer
from unisono.apiserver.storage.record import Record

_OPTIONS = WriteOptions(manager="unisono")


class Staged(NamedTuple):
    """An object as it is to be stored, which must not be changed from now on.

    `raw` is the same as JSON; empty where a kind is stored in another version than it was written.
    """

    obj: Json
    raw: bytes = b""


class DirectWrites:
    """Stages writes of our own controllers."""

    def __init__(self, server: ServerContext, writer: Writer, subresources: Subresources) -> None:
        """Take the store, and what writes to it."""
        self._server = server
        self._writer = writer
        self._subresources = subresources
        self._resources: dict[tuple[str, str], Resource] = {}
        self._known_at = -1

    async def committed(self) -> None:
        """Wait until all that was staged is durable."""
        await self._server.store.committed()

    def record_of(
        self, api_version: str, kind: str, namespace: str, name: str, version: str
    ) -> Record | None:
        """Return the store's own record of an object if this is its version now."""
        resource = self._resource(api_version, kind)
        record = self._server.store.get((resource.key, namespace, name))
        if record is None or str(record.rv) != version or not _is_shown_as_stored(record, resource):
            return None
        return record

    def create(
        self, user: User, api_version: str, kind: str, content: Json, *, is_checked: bool
    ) -> Staged:
        """Stage a new object."""
        resource = self._resource(api_version, kind)
        namespace = content["metadata"].get("namespace", "")
        route = Route(resource=resource, namespace=namespace)
        request = _request(user, is_checked=is_checked)
        obj = copied(content)  # what the controller made shares parts with what others look at
        record, _ = self._writer.stage_create(request, route, obj, _OPTIONS)
        assert record is not None
        return self._staged(record, resource, obj)

    def patch(
        self,
        user: User,
        api_version: str,
        kind: str,
        where: tuple[str, str, str],
        content: Json,
        *,
        is_checked: bool,
    ) -> Staged:
        """Stage a change by a JSON merge patch; `where` is namespace, name and subresource."""
        resource = self._resource(api_version, kind)
        namespace, name, subresource = where
        route = Route(
            resource=resource,
            namespace=namespace if resource.served.namespaced else "",
            name=name,
            subresource=subresource,
        )
        record = self._server.existing(route)
        if subresource == "status" and not is_checked and is_status_alone(content, resource):
            stored, obj = self._writer.stage_status(route, record, content)
            return self._staged(stored, resource, obj)
        patched = merge_patch(shown(record, resource), content)
        request = _request(user, is_checked=is_checked)
        changed, _ = self._writer.stage_update(request, route, patched, record, _OPTIONS)
        return self._staged(changed if changed is not None else record, resource)

    def bind(self, namespace: str, name: str, binding: Json) -> Staged:
        """Stage a pod's node."""
        pods = self._resource("v1", "Pod")
        route = Route(resource=pods, namespace=namespace, name=name)
        node = binding["target"]["name"]
        record = self._subresources.stage_binding(route, binding["metadata"], node)
        return self._staged(record, pods)

    def _staged(self, record: Record, resource: Resource, obj: Json | None = None) -> Staged:
        """Return what was staged; `obj` is that, if it is at hand."""
        if not _is_shown_as_stored(record, resource):
            return Staged(shown(record, resource))
        if obj is None:
            obj = self._server.known.of(record)
        else:
            self._server.known.keep(record, obj)
        return Staged(obj, record.data)

    def _resource(self, api_version: str, kind: str) -> Resource:
        catalogue = self._server.catalogue
        if self._known_at != catalogue.version:
            self._known_at, self._resources = catalogue.version, {}
        found = self._resources.get((api_version, kind))
        if found is None:
            for served in catalogue.served():
                if (served.api_version, served.kind) == (api_version, kind):
                    found = catalogue.find(served.group, served.version, served.plural)
            if found is None:
                why = f"the server does not serve {kind} of {api_version}"
                raise ApiError(404, "NotFound", why)
            self._resources[api_version, kind] = found
        return found


def _is_shown_as_stored(record: Record, resource: Resource) -> bool:
    return resource.is_as_stored and record.rv >= resource.schema_rv


def _request(user: User, *, is_checked: bool) -> Request:
    return Request(
        method="POST",
        path="",
        query={"fieldManager": "unisono", "fieldValidation": "Ignore"},
        user=user,
        origin=Origin.CLIENT if is_checked else Origin.DIRECT,
    )
