"""Objects and lists in the form that the client asked for: JSON, a Table, or metadata only."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import Literal

import orjson

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import bad_request, not_acceptable
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.read import Page
from unisono.apiserver.rest.versions import shown, shown_bytes
from unisono.apiserver.storage.record import Record
from unisono.apiserver.tables.table import as_table, rows_of
from unisono.net.http.messages import Response

Form = Literal["object", "table", "metadata"]

# People who look with these want to read it.
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla")


def form_of(request: Request) -> Form:
    """Return the first form in the Accept header that we have."""
    form = _form(request.headers.get("accept", ""))
    if form is None:
        raise not_acceptable()
    return form


@lru_cache(maxsize=256)
def _form(accept: str) -> Form | None:
    if not accept:
        return "object"
    for choice in accept.split(","):
        kind, *parameters = (part.strip() for part in choice.split(";"))
        if kind not in ("application/json", "*/*", "application/*"):
            continue
        wanted = dict(part.partition("=")[::2] for part in parameters)
        match wanted.get("as"):
            case None:
                return "object"
            case "Table" if wanted.get("v") in ("v1", "v1beta1"):
                return "table"
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if wanted.get("v") == "v1":
                return "metadata"
            case _:
                continue
    return None


class ResponseRenderer:
    """Renders what was read or written for one request."""

    def __init__(self, request: Request, resource: Resource, clock: Callable[[], float]) -> None:
        """Find out what the client wants."""
        self._resource = resource
        self._clock = clock
        self._form = form_of(request)
        self._include = request.query.get("includeObject") or "Metadata"
        if self._include not in ("None", "Metadata", "Object"):
            raise bad_request(f'includeObject: "{self._include}" is not None, Metadata or Object')
        self._has_columns = True
        agent = request.headers.get("user-agent", "")
        self._pretty = request.flag("pretty") or agent.startswith(_PRETTY_AGENTS)

    def one(self, data: bytes, code: int = 200) -> Response:
        """Answer with one object that is JSON already, in the right version."""
        if self._form != "object" and not data.startswith(b'{"kind":"Status"'):
            data = self._rendered(orjson.loads(data))
        return self._response(data, code)

    def record(self, record: Record) -> Response:
        """Answer with one stored object."""
        return self.one(shown_bytes(record, self._resource))

    def page(self, page: Page) -> Response:
        """Answer with a list."""
        served = self._resource.served
        if self._form == "table":
            table = self._table((), dict(page.metadata()))
            # One after the other: ten thousand decoded pods at once are a lot of memory.
            objects = (shown(one, self._resource) for one in page.records)
            rows = rows_of(served, objects, now=self._clock(), include=self._include)
            table["rows"] = [orjson.Fragment(orjson.dumps(row)) for row in rows]
            return self._response(orjson.dumps(table))
        head = {"kind": f"{served.kind}List", "apiVersion": served.api_version}
        if self._form == "metadata":
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [orjson.dumps(_metadata_only(one.load())) for one in page.records]
        else:
            items = [shown_bytes(one, self._resource) for one in page.records]
        start = orjson.dumps({**head, "metadata": page.metadata()})[:-1]
        return self._response(b'%b,"items":[%b]}' % (start, b",".join(items)))

    def event(self, record: Record) -> bytes:
        """Render the object of one watch event; only the first Table carries the columns."""
        if self._form == "object":
            return shown_bytes(record, self._resource)
        data = self._rendered(shown(record, self._resource))
        self._has_columns = False
        return data

    def event_key(self) -> Hashable:
        """Return what is the same for all watchers of the same events."""
        if self._form == "object":
            return self._resource
        # Tables tell ages, to the second.
        return self._resource, self._form, self._include, self._has_columns, int(self._clock())

    def event_sent(self) -> None:
        """Note that events were shown, rendered here or for another watcher."""
        self._has_columns = False

    def _rendered(self, obj: Json) -> bytes:
        if self._form == "metadata":
            return orjson.dumps(_metadata_only(obj))
        version = obj["metadata"].get("resourceVersion", "")
        return orjson.dumps(self._table([obj], {"resourceVersion": version}))

    def _table(self, objects: Iterable[Json], metadata: Json) -> Json:
        return as_table(
            self._resource.served,
            objects,
            now=self._clock(),
            include=self._include,
            list_metadata=metadata,
            with_columns=self._has_columns,
        )

    def _response(self, data: bytes, code: int = 200) -> Response:
        if self._pretty:
            data = orjson.dumps(orjson.loads(data), option=orjson.OPT_INDENT_2) + b"\n"
        return Response(code=code, body=data)


def _metadata_only(obj: Json) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
