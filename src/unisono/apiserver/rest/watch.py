"""WATCH: a stream of changes, from a version on, or from what there is now.

A watcher holds no queue. It remembers the version it has sent and reads the store's history from
there; when the history has moved past it, the stream ends and the client starts again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass

import orjson

from unisono.apiserver.errors import ApiError, Cause, expired, invalid
from unisono.apiserver.request import Request
from unisono.apiserver.rest.context import Tools
from unisono.apiserver.rest.read import check_version
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.selection import Selection, number
from unisono.apiserver.storage.history import History
from unisono.apiserver.storage.record import Change, Kind, Record

_BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK = 2.0  # this long before the stream ends
_DEFAULT_SECONDS = (1800, 3600)
_CHUNK_BYTES = 256 * 1024

Render = Callable[[Record], bytes]  # one object as the client wants it: JSON, or a Table of one row


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a client wants to watch."""

    since: int | None  # None: begin with what there is
    sends_initial_end: bool
    bookmarks: bool
    seconds: float

    @staticmethod
    def of(request: Request, chance: random.Random) -> Wish:
        """Read it from the query."""
        text = request.query.get("resourceVersion", "")
        match = request.query.get("resourceVersionMatch", "")
        initial = request.query.get("sendInitialEvents")
        causes = []
        if initial is not None and match != "NotOlderThan":
            message = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(Cause("FieldValueForbidden", message, "resourceVersionMatch"))
        elif match and initial is None:
            message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is set"
            causes.append(Cause("FieldValueForbidden", message, "resourceVersionMatch"))
        if causes:
            raise invalid("ListOptions", "", causes, group="meta.k8s.io")
        check_version(text)
        wants_initial = request.flag("sendInitialEvents")
        starts_fresh = text in ("", "0") if initial is None else wants_initial
        allowed = number(request, "timeoutSeconds")
        return Wish(
            since=None if starts_fresh else int(text or 0),
            sends_initial_end=wants_initial,
            bookmarks=request.flag("allowWatchBookmarks"),
            seconds=float(allowed or chance.uniform(*_DEFAULT_SECONDS)),
        )


class Watches:
    """Opens streams, and ends them all when the server stops."""

    def __init__(self, tools: Tools, chance: random.Random) -> None:
        """Take the store; `chance` spreads the ends of long streams."""
        self._tools = tools
        self._chance = chance
        self._stopped = asyncio.Event()
        self.count = 0

    def stop(self) -> None:
        """End every stream cleanly."""
        self._stopped.set()
        self._tools.store.wake_all()

    def open(self, request: Request, route: Route, render: Render) -> AsyncIterator[bytes]:
        """Check what is asked for, and return the stream."""
        wish = Wish.of(request, self._chance)
        selection = Selection(request, route)
        history = self._tools.store.history(route.resource.key)
        return self._stream(wish, selection, route, history, render)

    async def _stream(
        self, wish: Wish, selection: Selection, route: Route, history: History, render: Render
    ) -> AsyncIterator[bytes]:
        self.count += 1
        try:
            async for chunk in self._events(wish, selection, route, history, render):
                yield chunk
        finally:
            self.count -= 1

    async def _events(
        self, wish: Wish, selection: Selection, route: Route, history: History, render: Render
    ) -> AsyncIterator[bytes]:
        store, served = self._tools.store, route.resource.served
        loop = asyncio.get_running_loop()
        end = loop.time() + wish.seconds
        if wish.since is None:
            seen = store.rv
            present = [one for one in store.listing(route.resource.key) if selection.matches(one)]
            for chunk in _in_chunks(_event(Kind.ADDED, render(record)) for record in present):
                yield chunk
            if wish.sends_initial_end:
                yield _bookmark(served.api_version, served.kind, seen, is_initial_end=True)
        else:
            seen = wish.since
        next_bookmark = min(loop.time() + _BOOKMARK_SECONDS, end - _LAST_BOOKMARK)
        yield b""  # headers go out at once, also if nothing happens for an hour
        while not self._stopped.is_set():
            if seen < history.floor:
                yield _error(expired(f"too old resource version: {seen} ({history.floor + 1})"))
                return
            changes = history.after(seen)
            if changes:
                seen = changes[-1].rv
                for chunk in _in_chunks(_told(changes, selection, render)):
                    yield chunk
                continue
            # Nothing of this kind happened up to here, whatever others did.
            seen = max(seen, store.rv)
            now = loop.time()
            if now >= end:
                return
            if now >= next_bookmark:
                if wish.bookmarks:
                    yield _bookmark(served.api_version, served.kind, seen)
                next_bookmark = min(now + _BOOKMARK_SECONDS, max(end - _LAST_BOOKMARK, now + 0.1))
            await self._wait(history, min(next_bookmark, end) - now)

    async def _wait(self, history: History, seconds: float) -> None:
        """Wait for a change, for the end, or for the time to pass."""
        try:
            async with asyncio.timeout(max(seconds, 0.001)):
                await history.wait()
        except TimeoutError:
            pass


def _told(changes: Iterable[Change], selection: Selection, render: Render) -> Iterator[bytes]:
    """Yield changes as somebody sees them who only knows the selected objects."""
    for change in changes:
        told = _seen_as(change, selection)
        if told is None:
            continue
        kind, record = told
        yield _event(kind, render(record))


def _seen_as(change: Change, selection: Selection) -> tuple[Kind, Record] | None:
    record = change.record
    if selection.is_everything:
        if selection.namespace and record.key[1] != selection.namespace:
            return None
        return change.kind, record
    matches_now = change.kind is not Kind.DELETED and selection.matches(record)
    previous = change.previous
    matched = previous is not None and selection.matches(previous)
    if matches_now:
        return (Kind.MODIFIED if matched else Kind.ADDED), record
    if change.kind is Kind.DELETED:
        return (Kind.DELETED, record) if selection.matches(record) or matched else None
    if not matched or previous is None:
        return None
    # It left the selection: its last state inside, with the version of the change.
    obj = previous.load()
    obj["metadata"]["resourceVersion"] = str(change.rv)
    return Kind.DELETED, Record(record.key, change.rv, orjson.dumps(obj), obj["metadata"])


def _event(kind: Kind, data: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.value.encode(), data)


def _bookmark(api_version: str, kind: str, rv: int, *, is_initial_end: bool = False) -> bytes:
    metadata: dict[str, object] = {"resourceVersion": str(rv), "creationTimestamp": None}
    if is_initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    obj = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


def _error(error: ApiError) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": error.status()}) + b"\n"


def _in_chunks(events: Iterable[bytes]) -> Iterator[bytes]:
    """Join events, so that a burst is a few writes and not thousands."""
    held: list[bytes] = []
    size = 0
    for event in events:
        held.append(event)
        size += len(event)
        if size >= _CHUNK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
