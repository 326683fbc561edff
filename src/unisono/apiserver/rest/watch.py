"""WATCH: a stream of changes, from a version on, or from what there is now.

A watcher holds no queue. It remembers the version it has sent and reads the store's history from
there; when the history has moved past it, the stream ends and the client starts again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from unisono.apiserver.errors import ApiError, Cause, expired, invalid
from unisono.apiserver.request import Request
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.read import check_version
from unisono.apiserver.rest.route import Route
from unisono.apiserver.rest.selectors import Selection, number
from unisono.apiserver.storage.history import Wake
from unisono.apiserver.storage.record import Change, Kind, Record
from unisono.apiserver.storage.store import Store
from unisono.kinds.overriding import override
from unisono.net.http.messages import PulledBody

_BOOKMARK_SECONDS = 60.0
_LAST_BOOKMARK = 2.0  # this long before the stream ends
_DEFAULT_SECONDS = (1800, 3600)
_CHUNK_BYTES = 256 * 1024

Render = Callable[[Record], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """What a client wants to watch."""

    since: int | None  # None: begin with what there is
    sends_initial_end: bool
    bookmarks: bool
    seconds: float

    @staticmethod
    def of(request: Request, random_source: random.Random) -> WatchOptions:
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
        return WatchOptions(
            since=None if starts_fresh else int(text or 0),
            sends_initial_end=wants_initial,
            bookmarks=request.flag("allowWatchBookmarks"),
            seconds=float(allowed or random_source.uniform(*_DEFAULT_SECONDS)),
        )


class Rendering(Protocol):
    """Turns objects into what one client wants to see: JSON, or a Table of one row."""

    def event(self, record: Record) -> bytes:
        """Render the object of one event."""

    def event_key(self) -> Hashable:
        """Return what is the same for all watchers of the same events."""

    def event_sent(self) -> None:
        """Note that something was shown: only the first Table carries the columns."""


class Watches:
    """Opens streams, and ends them all when the server stops."""

    def __init__(self, server: ServerContext, random_source: random.Random) -> None:
        """Take the store; `random_source` spreads the ends of long streams."""
        self._server = server
        self._random_source = random_source
        self.has_stopped = False
        self.count = 0

    def stop(self) -> None:
        """End every stream cleanly."""
        self.has_stopped = True
        self._server.store.wake_all()

    def open(self, request: Request, route: Route, rendering: Rendering) -> Watch:
        """Check what is asked for, and return the stream."""
        options = WatchOptions.of(request, self._random_source)
        selection = Selection(request, route)
        return Watch(self, self._server.store, route, options, selection, rendering)


class Watch(PulledBody, AsyncIterator[bytes]):
    """One stream: what is wanted, and how much of it was sent.

    Over HTTP it is asked by `read`, whenever there is news and the client has room for it; a
    caller in the same process iterates.
    """

    def __init__(
        self,
        watches: Watches,
        store: Store,
        route: Route,
        options: WatchOptions,
        selection: Selection,
        rendering: Rendering,
    ) -> None:
        """Prepare; nothing is read before the first `read`."""
        self.is_over = False
        self._watches = watches
        self._store = store
        self._route = route
        self._options = options
        self._selection = selection
        self._rendering = rendering
        self._history = store.history(route.resource.key)
        self._seen = options.since or 0
        self._initial: Iterator[bytes] | None = (
            None if options.since is not None else self._present()
        )
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + options.seconds
        self._next_bookmark = self._loop.time()
        self._plan_bookmark()
        self._timer: asyncio.TimerHandle | None = None
        self._wake: Wake | None = None
        self._is_near = False
        self._waiter: asyncio.Future[None] | None = None

    # ---- the reader ----------------------------------------------------------------------------

    @override
    def start(self, wake: Wake, *, is_near: bool = False) -> None:
        """Call `wake` from now on, whenever it may be worth to `read`."""
        self._wake = wake
        self._is_near = is_near
        self._watches.count += 1
        if is_near:
            self._history.near[wake] = None
        else:
            self._history.watchers.join(wake)
        self._arm()

    @override
    def close(self) -> None:
        """End: the reader is gone."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._wake is None:
            return
        self._watches.count -= 1
        if self._is_near:
            self._history.near.pop(self._wake, None)
        else:
            self._history.watchers.leave(self._wake)
        self._wake = None

    @override
    def __aiter__(self) -> Watch:
        return self

    @override
    async def __anext__(self) -> bytes:
        if self._wake is None and not self.is_over:
            self.start(self._end_wait, is_near=True)
        while True:
            piece = self.read()
            if piece:
                return piece
            if self.is_over:
                self.close()
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None

    async def aclose(self) -> None:
        """End it, as an iteration is ended."""
        self.close()

    def _end_wait(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # ---- what there is to read -----------------------------------------------------------------

    @override
    def read(self) -> bytes:
        """Return the next piece; nothing means that there is none now, or that it is over."""
        if self._initial is not None:
            piece = next(self._initial, b"")
            if piece:
                return piece
            self._initial = None
        while not (self.is_over or self._watches.has_stopped):
            history = self._history
            if self._seen < history.complete_after:
                self.is_over = True
                message = f"too old resource version: {self._seen} ({history.complete_after + 1})"
                return _error(expired(message))
            changes = history.after(self._seen, _CHUNK_BYTES)
            if not changes:
                # Nothing of this kind happened up to here, whatever others did.
                self._seen = max(self._seen, self._store.rv)
                return self._moment()
            piece = self._events(changes)
            self._seen = changes[-1].rv
            if piece:
                return piece
        self.is_over = True
        return b""

    def _present(self) -> Iterator[bytes]:
        """Yield what there is now, as additions."""
        self._seen = self._store.rv
        matches, render = self._selection.matches, self._rendering
        listing = self._store.listing(self._route.resource.key)
        present = [record for record in listing if matches(record)]
        for chunk in _in_chunks(_event(Kind.ADDED, render.event(record)) for record in present):
            render.event_sent()
            yield chunk
        if self._options.sends_initial_end:
            served = self._route.resource.served
            yield _bookmark(served.api_version, served.kind, self._seen, is_initial_end=True)

    def _events(self, changes: Sequence[Change]) -> bytes:
        """Return changes as JSON lines; watchers of the same share the bytes."""
        rendering, selection = self._rendering, self._selection
        key = (self._seen, changes[-1].rv, selection.key, rendering.event_key())
        piece = self._history.watchers.shared(
            key, lambda: b"".join(_events_of(changes, selection, rendering.event))
        )
        if piece:
            rendering.event_sent()
        return piece

    # ---- what comes with time ------------------------------------------------------------------

    def _moment(self) -> bytes:
        """Look at the clock: the stream may be over, or a bookmark due."""
        now = self._loop.time()
        if now >= self._end:
            self.is_over = True
            return b""
        is_due = now >= self._next_bookmark
        if is_due:
            self._plan_bookmark()
        if is_due or self._timer is None:
            self._arm()
        if not (is_due and self._options.bookmarks):
            return b""
        served = self._route.resource.served
        return _bookmark(served.api_version, served.kind, self._seen)

    def _plan_bookmark(self) -> None:
        now = self._loop.time()
        last = self._end - _LAST_BOOKMARK
        self._next_bookmark = min(now + _BOOKMARK_SECONDS, last if last > now else self._end)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(min(self._next_bookmark, self._end), self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._wake is not None:
            self._wake()


def _events_of(changes: Iterable[Change], selection: Selection, render: Render) -> Iterator[bytes]:
    """Yield changes as a watcher sees them that only knows the selected objects."""
    for change in changes:
        seen = _seen_as(change, selection)
        if seen is None:
            continue
        kind, record = seen
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
