"""GET of one object, and lists: with selectors, in pages, as of a version, in any form."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import orjson

from unisono.apiserver.catalogue import Resource
from unisono.apiserver.errors import (
    ApiError,
    Cause,
    bad_request,
    expired,
    invalid,
    not_acceptable,
    not_found,
)
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.selectors import Selection, number
from unisono.apiserver.rest.versions import shown, shown_bytes
from unisono.apiserver.storage.record import Record
from unisono.apiserver.tables.table import as_table, rows_of
from unisono.kinds.digits import is_digits
from unisono.net.http.messages import Response

# How long, and how many, half-read lists are kept for their readers.
_PAGE_SECONDS = 300.0
_MAX_OPEN_LISTS = 64
_MOST_DIGITS = 19  # of a number with 63 bits


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, and how to go on."""

    records: Sequence[Record]
    rv: int
    token: str = ""
    remaining: int | None = None

    def metadata(self) -> dict[str, object]:
        """Return the metadata of the list that the client gets."""
        found: dict[str, object] = {"resourceVersion": str(self.rv)}
        if self.token:
            found["continue"] = self.token
        if self.remaining is not None:
            found["remainingItemCount"] = self.remaining
        return found


@dataclass(slots=True)
class Reader:
    """Reads committed objects."""

    server: ServerContext
    # Lists that are read page by page: every page shows the state of the first.
    _open: dict[tuple[str, int], tuple[float, Sequence[Record]]] = field(default_factory=dict)

    def get(self, route: Route) -> Record:
        """Return one object."""
        record = self.server.store.get(route.key)
        if record is None:
            served = route.resource.served
            raise not_found(served.plural, route.name, group=served.group)
        return record

    def page(self, request: Request, route: Route) -> Page:
        """Return the part of a list that was asked for."""
        selection = Selection(request, route)
        limit = number(request, "limit")
        token = request.query.get("continue", "")
        if token:
            records, rv, start = self._go_on(request, route, token)
        else:
            records, rv = self._begin(request, route)
            start = ("", "")
        chosen = _chosen(records, selection, start)
        if not limit or len(chosen) <= limit:
            return Page(chosen, rv)
        kept = chosen[:limit]
        self._keep(route.resource.key, rv, records)
        following = _token(rv, kept[-1].key[1:])
        remaining = len(chosen) - limit if selection.is_everything else None
        return Page(kept, rv, following, remaining)

    def _begin(self, request: Request, route: Route) -> tuple[Sequence[Record], int]:
        store, key = self.server.store, route.resource.key
        text = request.query.get("resourceVersion", "")
        match = request.query.get("resourceVersionMatch", "")
        _check_versions(request, text, match)
        wanted = int(text) if text else 0
        if match == "Exact":
            found = store.listing_at(key, wanted) if wanted <= store.rv else None
            if wanted > store.rv:
                raise _too_large(wanted, store.rv)
            if found is None:
                raise expired(f"The provided resource version {wanted} is too old")
            return found, wanted
        if wanted > store.rv:
            raise _too_large(wanted, store.rv)
        return store.listing(key), store.rv

    def _go_on(
        self, request: Request, route: Route, token: str
    ) -> tuple[Sequence[Record], int, tuple[str, str]]:
        if request.query.get("resourceVersionMatch"):
            cause = Cause(
                "FieldValueForbidden", "is forbidden for continue", "resourceVersionMatch"
            )
            raise invalid("ListOptions", "", [cause], group="meta.k8s.io")
        if request.query.get("resourceVersion") not in (None, "", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        rv, start = _parse_token(token)
        store, key = self.server.store, route.resource.key
        self._drop_old()
        if rv < 0:  # a fresh start in the middle, offered when the first state was forgotten
            return store.listing(key), store.rv, start
        held = self._open.get((key, rv))
        if held is not None:
            return held[1], rv, start
        found = store.listing_at(key, rv)
        if found is None:
            fresh = _token(-1, start)
            message = (
                "The provided continue parameter is too old to display a consistent list result; "
                "start again, or go on with the given token and accept a mixed view"
            )
            raise expired(message, continue_token=fresh)
        return found, rv, start

    def _keep(self, key: str, rv: int, records: Sequence[Record]) -> None:
        self._drop_old()
        while len(self._open) >= _MAX_OPEN_LISTS:
            del self._open[next(iter(self._open))]
        self._open[key, rv] = (self.server.clock() + _PAGE_SECONDS, records)

    def _drop_old(self) -> None:
        now = self.server.clock()
        for key in [key for key, (end, _) in self._open.items() if end < now]:
            del self._open[key]


def _chosen(
    records: Sequence[Record], selection: Selection, start: tuple[str, str]
) -> Sequence[Record]:
    if start != ("", ""):
        records = [record for record in records if record.key[1:] > start]
    if selection.is_everything and not selection.namespace:
        return records
    return [record for record in records if selection.matches(record)]


def _token(rv: int, start: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"v": 1, "rv": rv, "start": start})).decode()


def _parse_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        raw = orjson.loads(base64.urlsafe_b64decode(token))
        namespace, name = raw["start"]
        return int(raw["rv"]), (str(namespace), str(name))
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise bad_request("continue key is not valid") from error


def _check_versions(request: Request, text: str, match: str) -> None:
    causes = []
    if match and match not in ("Exact", "NotOlderThan"):
        message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"'
        causes.append(Cause("FieldValueNotSupported", message, "resourceVersionMatch"))
    if match and not text:
        message = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.append(Cause("FieldValueForbidden", message, "resourceVersionMatch"))
    if match == "Exact" and text == "0":
        message = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        causes.append(Cause("FieldValueForbidden", message, "resourceVersionMatch"))
    if "sendInitialEvents" in request.query:
        message = "sendInitialEvents is forbidden for list"
        causes.append(Cause("FieldValueForbidden", message, "sendInitialEvents"))
    if causes:
        raise invalid("ListOptions", "", causes, group="meta.k8s.io")
    check_version(text)


def check_version(text: str) -> None:
    """Refuse a resource version that is not a number, or larger than any can be."""
    if text and not (is_digits(text) and len(text) <= _MOST_DIGITS):
        raise bad_request(f"resourceVersion: Invalid value: {text!r}: it is not a number")


def _too_large(wanted: int, newest: int) -> ApiError:
    cause = Cause("ResourceVersionTooLarge", "Too large resource version")
    message = f"Too large resource version: {wanted}, current: {newest}"
    return ApiError(504, "Timeout", message, causes=[cause], retry_after=1)


# ---- responses -----------------------------------------------------------------------------------
#
# Objects and lists in the form that the client asked for: JSON, a Table, or metadata only.

_Form = Literal["object", "table", "metadata"]

# People who look with these want to read it.
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla")


def _form_of(request: Request) -> _Form:
    """Return the first form in the Accept header that we have."""
    form = _form(request.headers.get("accept", ""))
    if form is None:
        raise not_acceptable()
    return form


@lru_cache(maxsize=256)
def _form(accept: str) -> _Form | None:
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
        self._form = _form_of(request)
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
