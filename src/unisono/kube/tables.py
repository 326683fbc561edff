"""Lists as the API itself would print them: columns and rows, for people.

Every kind brings its own columns, so that a client can show kinds which it has never heard of.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from unisono.kube.calls import Call
from unisono.kube.client import PAGE_SIZE, Client, selectors
from unisono.kube.errors import BadResponse, error_of, read_status
from unisono.kube.mapping import Resource
from unisono.kube.transport import Lines, read_events

_ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Column(msgspec.Struct, frozen=True):
    """What stands above a column; those of a priority above 0 are for wide output."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0


class RowMeta(msgspec.Struct, frozen=True):
    """Which object a row is about."""

    name: str = ""
    namespace: str = ""


class RowObject(msgspec.Struct, frozen=True):
    """The object of a row, cut down."""

    metadata: RowMeta = RowMeta()


class Row(msgspec.Struct, frozen=True):
    """One object in cells."""

    cells: list[Any]
    object: RowObject = RowObject()


class _Meta(msgspec.Struct, frozen=True, rename={"resource_version": "resourceVersion"}):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Table(msgspec.Struct, frozen=True, rename={"columns": "columnDefinitions"}):
    kind: str
    columns: list[Column] | None = None
    rows: list[Row] | None = None
    metadata: _Meta = _Meta()


_decode = msgspec.json.Decoder(_Table).decode


@dataclass(slots=True)
class Table:
    """A whole list, and the version at which it was true."""

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    resource_version: str = ""


async def read_table(
    client: Client,
    resource: Resource,
    *,
    namespace: str = "",
    name: str = "",
    labels: str = "",
    fields: str = "",
) -> Table:
    """Read one object, a namespace or everything of a kind; raises NotFound for the first."""
    path = resource.path(namespace=namespace, name=name)
    query = {} if name else {**selectors(labels, fields), "limit": str(PAGE_SIZE)}
    table = Table()
    while True:
        answer = await client.caller.call(_call(path, query))
        page = _read(answer.body, path)
        table.columns = table.columns or page.columns or []
        table.rows += page.rows or []
        table.resource_version = page.metadata.resource_version
        if name or not page.metadata.continue_:
            return table
        query = {**query, "continue": page.metadata.continue_}


@asynccontextmanager
async def watch_table(
    client: Client,
    resource: Resource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    resource_version: str,
) -> AsyncIterator[AsyncIterator[tuple[str, list[Row]]]]:
    """Follow a list from a version on: what happened, and the rows of it."""
    query = {**selectors(labels, fields), "watch": "true", "resourceVersion": resource_version}
    path = resource.path(namespace=namespace)

    async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, list[Row]]]:
        lines = Lines()
        async for chunk in chunks:
            for event in read_events(lines.feed(chunk)):
                if event.type == "ERROR":
                    status = read_status(event.object)
                    if status is None:
                        raise BadResponse(f"{path}: the watch failed without a reason")
                    raise error_of(status)
                yield event.type, _read(event.object, path).rows or []

    async with client.caller.stream(_call(path, query)) as stream:
        yield events(stream.chunks)


def _call(path: str, query: Mapping[str, str]) -> Call:
    return Call(method="GET", path=path, query=query, headers={"Accept": _ACCEPT}, repeatable=True)


def _read(body: bytes | msgspec.Raw, path: str) -> _Table:
    try:
        table = _decode(body)
    except msgspec.DecodeError as error:
        raise BadResponse(f"{path}: the table cannot be read: {error}") from error
    if table.kind != "Table":
        raise BadResponse(f"{path}: the API sent a {table.kind}, not a table")
    return table
