"""Reads and writes objects of any Kubernetes API, as dictionaries.

    pod = await client.get(POD, "trainer-0", "team-a")
    await client.apply({"apiVersion": …, "kind": …, "metadata": …, "spec": only our fields})
    await client.patch(WORKLOAD, name, namespace, {"status": …}, subresource="status")

Writes go under the field manager `unisono` and send only what is ours, so fields that we have never
heard of survive. Failures are raised as in `errors`; what is safe to repeat has been repeated by
then (`calls`). Objects that are returned belong to the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from unisono.kube.calls import TIMEOUT_S, Call, Caller
from unisono.kube.errors import AlreadyExists, BadResponse, KubeError, error_of, read_status
from unisono.kube.form import Json
from unisono.kube.mapping import EVENT, LEASE, Kind, Mapper, Resource
from unisono.kube.priority_lanes import Lane
from unisono.kube.transport import (
    NOTHING,
    Lines,
    Stored,
    Stream,
    WriteRequest,
    WriteResult,
    read_events,
)

FIELD_MANAGER = "unisono"
PAGE_SIZE = 500
# Marks a create that may be sent twice: an object found there carries the mark of its creator.
CREATE_ID = "unisono.dev/create-id"

Changes = Json | list[Json]  # a list for JSON patches
PatchForm = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]

_CONTENT_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}
_LANES = {LEASE: Lane.LEASE, EVENT: Lane.EVENT}
_LANES_OF_SUBRESOURCES = {"binding": Lane.BINDING, "eviction": Lane.BINDING}


@dataclass(frozen=True, slots=True)
class Listing:
    """A whole list, and the version at which it was true."""

    items: list[Json]
    resource_version: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Json


class Client:
    """One API, as one user."""

    def __init__(
        self,
        caller: Caller,
        *,
        namespace: str = "default",
        ids: Callable[[], str] | None = None,
        mapper: Mapper | None = None,
    ) -> None:
        """Use a caller; `ids` makes unique texts, and is needed for `create(repeat=True)`."""
        self._caller = caller
        self._ids = ids
        self._mapper = mapper if mapper is not None else Mapper(self.read)
        self.namespace = namespace

    @property
    def caller(self) -> Caller:
        """What carries the calls out; `caller.counts` is for metrics."""
        return self._caller

    def variant(
        self, *, most_tries: int | None = None, permit: Callable[[], None] | None = None
    ) -> Client:
        """Return a client that shares all but its number of tries and its permission to write."""
        caller = self._caller.variant(most_tries=most_tries, permit=permit)
        return Client(caller, namespace=self.namespace, ids=self._ids, mapper=self._mapper)

    # --- reading ---------------------------------------------------------------------------------

    async def get(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        once: bool = False,
    ) -> Json:
        """Return one object; raises NotFound. With `once` nothing is tried again."""
        path = await self.path(kind, name, namespace, subresource)
        return await self._object(self._reading(kind, path, once=once))

    async def list(
        self, kind: Kind, namespace: str = "", *, labels: str = "", fields: str = ""
    ) -> Listing:
        """Return all objects of a namespace, or of all namespaces."""
        items: list[Json] = []
        resource_version = ""
        async for page in self.pages(kind, namespace, labels=labels, fields=fields):
            items += page.items
            resource_version = page.resource_version
        return Listing(items, resource_version)

    async def pages(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = PAGE_SIZE,
    ) -> AsyncIterator[Listing]:
        """Yield a list page by page; raises Gone if that takes longer than the API remembers."""
        resource = await self._mapper.find(kind)
        query = {**selectors(labels, fields), "limit": str(limit)}
        while True:
            call = self._reading(kind, resource.path(namespace=namespace), query)
            page = await self._object(call)
            items = page.get("items") or []
            for each in items:
                each.setdefault("apiVersion", kind.api_version)
                each.setdefault("kind", kind.kind)
            metadata = page.get("metadata") or {}
            yield Listing(items, metadata.get("resourceVersion", ""))
            if not metadata.get("continue"):
                return
            query = {**query, "continue": metadata["continue"]}

    @asynccontextmanager
    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        timeout_s: int | None = None,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Open one watch and hand out its events until it ends; an ERROR is raised.

        This is for a person who watches. A cache needs `informer`, which never stops.
        """
        query = {**selectors(labels, fields), "watch": "true"}
        if resource_version:
            query["resourceVersion"] = resource_version
        if timeout_s is not None:
            query["timeoutSeconds"] = str(timeout_s)
        async with self.stream(kind, namespace, query) as stream:
            yield _events(stream)

    @asynccontextmanager
    async def stream(
        self, kind: Kind, namespace: str, query: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
    ) -> AsyncIterator[Stream]:
        """Open a stream on a collection."""
        path = (await self._mapper.find(kind)).path(namespace=namespace)
        call = Call(method="GET", path=path, query=query, lane=_lane(kind, ""), timeout_s=timeout_s)
        async with self._caller.stream(call) as stream:
            yield stream

    async def page(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> bytes:
        """Return one page of a list as it came."""
        path = (await self._mapper.find(kind)).path(namespace=namespace)
        return (await self._caller.call(self._reading(kind, path, query))).body

    async def read(self, path: str) -> bytes:
        """Return what is at a path outside the objects: `/version`, discovery, `/metrics`."""
        return (await self._caller.call(Call(method="GET", path=path, repeatable=True))).body

    # --- writing ---------------------------------------------------------------------------------

    async def create(self, new: Json, *, repeat: bool = False, dry_run: bool = False) -> Json:
        """Create an object; raises AlreadyExists.

        With `repeat` a lost answer is no loss: the object carries an id of this call, so that it is
        known again when it is there at the second try. It needs a name of its own.
        """
        kind, name, namespace = self._named(new)
        path = await self.path(kind, "", namespace)
        if not repeat:
            return await self._write("POST", path, kind, new, dry_run=dry_run)
        assert name, "a create that may be repeated needs a fixed name"
        assert self._ids is not None, "a create that may be repeated needs ids"
        marked = _marked(new, self._ids())
        try:
            return await self._write("POST", path, kind, marked, repeatable=True, dry_run=dry_run)
        except AlreadyExists:
            there = await self.get(kind, name, namespace)
            if _mark_of(there) != _mark_of(marked):
                raise
            return there

    async def update(self, new: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        """Replace an object; with `resourceVersion` in it only that state of it, else Conflict."""
        kind, name, namespace = self._named(new)
        path = await self.path(kind, name, namespace, subresource)
        conditional = bool(new["metadata"].get("resourceVersion"))
        return await self._write(
            "PUT", path, kind, new, subresource, repeatable=conditional, dry_run=dry_run
        )

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        changes: Changes,
        *,
        form: PatchForm = "merge",
        subresource: str = "",
        repeatable: bool | None = None,
        once: bool = False,
        holds: Callable[[], bool] | None = None,
        dry_run: bool = False,
    ) -> Json:
        """Change some fields. A patch that names a `resourceVersion` applies to that state only.

        Such a patch is repeated after a lost answer, others only if the caller says that they may;
        with `once` neither is. `holds` is asked right before it is sent, and False raises Expired.
        """
        path = await self.path(kind, name, namespace, subresource)
        if repeatable is None:
            repeatable = isinstance(changes, dict) and bool(
                (changes.get("metadata") or {}).get("resourceVersion")
            )
        return await self._write(
            "PATCH",
            path,
            kind,
            changes,
            subresource,
            content_type=_CONTENT_TYPES[form],
            repeatable=repeatable,
            once=once,
            holds=holds,
            dry_run=dry_run,
        )

    async def apply(
        self, ours: Json, *, force: bool = True, subresource: str = "", dry_run: bool = False
    ) -> Json:
        """Make our fields be so (server-side apply); what we applied before and left out goes."""
        kind, name, namespace = self._named(ours)
        path = await self.path(kind, name, namespace, subresource)
        return await self._write(
            "PATCH",
            path,
            kind,
            ours,
            subresource,
            content_type=_CONTENT_TYPES["apply"],
            query={"force": "true" if force else "false"},
            repeatable=True,
            dry_run=dry_run,
        )

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
        propagation: Propagation = "Background",
        once: bool = False,
    ) -> Json:
        """Delete an object, or only the one with this uid or in this state; raises NotFound.

        Returns the object if it still has to go, or a Status if it is gone.
        """
        path = await self.path(kind, name, namespace)
        options: Json = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": propagation,
        }
        conditions = {"uid": uid, "resourceVersion": resource_version}
        if uid or resource_version:
            options["preconditions"] = {key: text for key, text in conditions.items() if text}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        call = Call(
            method="DELETE",
            path=path,
            headers={"Content-Type": "application/json"},
            body=orjson.dumps(options),
            lane=_lane(kind, ""),
            repeatable=bool(uid),
            once=once,
        )
        return await self._object(call)

    async def submit(
        self,
        kind: Kind,
        name: str,
        namespace: str,
        subresource: str,
        new: Json,
        *,
        once: bool = False,
        holds: Callable[[], bool] | None = None,
    ) -> Json:
        """POST to a subresource: binding, eviction."""
        path = await self.path(kind, name, namespace, subresource)
        return await self._write("POST", path, kind, new, subresource, once=once, holds=holds)

    async def write(
        self, orders: Sequence[WriteRequest], *, repeats: bool = False
    ) -> Sequence[WriteResult]:
        """Carry several writes out at once; the result of each is the object, or the error.

        An API in the same process makes them durable together; any other gets a request for each.
        Each is sent once: these are decisions, and a caller decides again if one failed.
        `repeats` is for what is true whenever it is written, such as events.
        """
        if (direct := self._caller.direct) is not None:
            return await self._caller.write(direct, orders)
        return await asyncio.gather(*(self._ordered(order, once=not repeats) for order in orders))

    async def _ordered(self, order: WriteRequest, *, once: bool) -> WriteResult:
        name, namespace, content = order.name, order.namespace, order.content
        kind, holds = order.kind, order.holds
        try:
            match order.verb:
                case "create":
                    path = await self.path(kind, "", namespace)
                    return Stored(await self._write("POST", path, kind, content, once=once))
                case "patch":
                    patched = await self.patch(
                        kind,
                        name,
                        namespace,
                        content,
                        subresource=order.subresource,
                        once=once,
                        holds=holds,
                    )
                    return Stored(patched)
                case "bind":
                    await self.submit(
                        kind, name, namespace, "binding", content, once=once, holds=holds
                    )
                    return Stored(None)
        except KubeError as error:
            return error

    # --- the common part -------------------------------------------------------------------------

    async def path(self, kind: Kind, name: str, namespace: str = "", subresource: str = "") -> str:
        """Return an object's address; without a namespace it is in the client's own."""
        resource: Resource = await self._mapper.find(kind)
        return resource.path(
            namespace=namespace or self.namespace, name=name, subresource=subresource
        )

    def _named(self, each: Json) -> tuple[Kind, str, str]:
        metadata = each["metadata"]
        return (
            Kind(each["apiVersion"], each["kind"]),
            metadata.get("name", ""),
            metadata.get("namespace", ""),
        )

    def _reading(
        self, kind: Kind, path: str, query: Mapping[str, str] = NOTHING, *, once: bool = False
    ) -> Call:
        lane = _lane(kind, "", reads=True)
        return Call(method="GET", path=path, query=query, lane=lane, repeatable=True, once=once)

    async def _write(
        self,
        method: str,
        path: str,
        kind: Kind,
        content: Changes,
        subresource: str = "",
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] = NOTHING,
        repeatable: bool = False,
        once: bool = False,
        holds: Callable[[], bool] | None = None,
        dry_run: bool = False,
    ) -> Json:
        asked = {"fieldManager": FIELD_MANAGER, **query}
        if dry_run:
            asked["dryRun"] = "All"
        call = Call(
            method=method,
            path=path,
            query=asked,
            headers={"Content-Type": content_type},
            body=orjson.dumps(content),
            lane=_lane(kind, subresource),
            repeatable=repeatable,
            once=once,
            holds=holds,
        )
        return await self._object(call)

    async def _object(self, call: Call) -> Json:
        answer = await self._caller.call(call)
        try:
            read = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise BadResponse(
                f"{call.method} {call.path}: the answer is not JSON: {error}"
            ) from error
        if not isinstance(read, dict):
            raise BadResponse(f"{call.method} {call.path}: the answer is not an object")
        return read


def selectors(labels: str, fields: str) -> dict[str, str]:
    """Return the query for selectors."""
    query = {}
    if labels:
        query["labelSelector"] = labels
    if fields:
        query["fieldSelector"] = fields
    return query


def _lane(kind: Kind, subresource: str, *, reads: bool = False) -> Lane:
    if subresource in _LANES_OF_SUBRESOURCES:
        return _LANES_OF_SUBRESOURCES[subresource]
    lane = _LANES.get(kind, Lane.NORMAL)
    return Lane.NORMAL if reads and lane is Lane.EVENT else lane


def _marked(new: Json, mark: str) -> Json:
    metadata = dict(new["metadata"])
    metadata["annotations"] = {**(metadata.get("annotations") or {}), CREATE_ID: mark}
    return {**new, "metadata": metadata}


def _mark_of(each: Json) -> Any:
    return (each["metadata"].get("annotations") or {}).get(CREATE_ID)


async def _events(stream: Stream) -> AsyncIterator[WatchEvent]:
    lines = Lines()
    async for chunk in stream.chunks:
        for event in read_events(lines.feed(chunk)):
            if event.type == "ERROR":
                status = read_status(event.object)
                if status is None:
                    raise BadResponse("a watch ended with an ERROR that is no Status")
                raise error_of(status)
            yield WatchEvent(event.type, orjson.loads(memoryview(event.object)))
