"""What to ask an API so that a cache follows it, and what the answers mean: a state machine.

    BEGIN ──WatchList──▶ FILLING ──bookmark "initial events end"──▶ FOLLOWING
      │                    │ 422, ERROR, or silence for 10 s            │
      └──────no WatchList──▶ LISTING ──last page──────────────────▶ FOLLOWING
    any state: 410 → BEGIN (list again); connection lost → the same state after a pause

It does no I/O and has no loop. A driver (`informer`, or a test by hand) repeats:

    reflector.ask(now)  →  Pause: wait
                           Page:  list one page, hand it to `page(…)`
                           Watch: open the stream, hand its bytes to `received(…)`, until it is over

and tells what went wrong with `refused`, `lost`, `closed` or `expired`. `now` is monotonic time.
What comes back are changes for a `Store`; a relist is one `Replace`, so the store never shows half
of it. Spec: kube-api.md, 4.3.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import msgspec

from unisono.kube.cache import Change, Remove, Replace, Upsert
from unisono.kube.errors import BadResponse, read_status
from unisono.kube.form import Form, Key
from unisono.kube.rate_limit import Backoff
from unisono.kube.transport import (
    INITIAL_EVENTS_END,
    BookmarkMeta,
    Lines,
    RawEvent,
    read_bookmark,
    read_events,
)

T = TypeVar("T")

# Every page costs the server one range read; 500 is what kubectl asks for.
PAGE_SIZE = 500
# A watch is renewed this often, at different times for different clients.
SHORTEST_WATCH_S = 300
LONGEST_WATCH_S = 600
# How long after the last initial event we wait for the bookmark that ends them. Servers before 1.27
# ignore the wish for it and would let us wait for ever.
PATIENCE_FOR_THE_END_S = 10.0
# Until the first byte of an answer. The server may have to bring its cache up to date first.
PATIENCE_FOR_THE_HEAD_S = 30.0
# Servers send a bookmark about once a minute; after two and a half the stream counts as dead.
PATIENCE_FOR_A_SIGN_S = 150.0
PATIENCE_AFTER_TIMEOUT_S = 30.0
PAUSES = Backoff(first_s=0.8, most_s=30.0, jitter=1.0)
HEALTHY_AFTER_S = 120.0
# A stream that ends sooner than this is a refusal in other words; asking again at once could go on
# for ever.
SHORT_STREAM_S = 1.0
# Less than this is rounding, not time.
_TICK_S = 0.001


@dataclass(frozen=True, slots=True)
class Pause:
    """Ask again in so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Page:
    """List, with this query."""

    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Watch:
    """Open a stream with this query."""

    query: Mapping[str, str]


Ask = Pause | Page | Watch


class Received(msgspec.Struct, Generic[T], frozen=True):
    """What some bytes meant; `over` says that nothing more will be made of the stream."""

    changes: tuple[Change[T], ...] = ()
    over: bool = False
    error: BadResponse | None = None  # why, if it made no sense


class Phase(Enum):
    """Where we are."""

    BEGIN = "begin"
    FILLING = "filling"  # from the initial events of a watch
    LISTING = "listing"  # from pages
    FOLLOWING = "following"


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: tuple[msgspec.Raw, ...] | None = ()


_decode_list = msgspec.json.Decoder(_List).decode


class Reflector(Generic[T]):
    """Follows one collection of an API."""

    def __init__(
        self,
        form: Form[T],
        *,
        random_source: random.Random,
        selectors: Mapping[str, str] | None = None,
        watch_list: bool = True,
    ) -> None:
        """Begin with nothing; `selectors` are the query of every request."""
        self._form = form
        self._random_source = random_source
        self._selectors = dict(selectors or {})
        self._watch_list = watch_list
        self._paged = True
        self._phase = Phase.BEGIN
        self._lines = Lines()
        self._gathered: dict[Key, T] = {}
        self._continue = ""
        self._failures = 0
        self._not_before = 0.0
        self._opened_at: float | None = None
        self._byte_at = 0.0
        self._sign_at = 0.0
        self._watch_s = 0.0
        self.resource_version = ""
        self.relists = 0
        self.unreadable = 0  # objects that did not have the form; the cache keeps what it had

    @property
    def phase(self) -> Phase:
        """Where we are."""
        return self._phase

    @property
    def uses_watch_list(self) -> bool:
        """Whether the cache is filled from a stream, and not from pages."""
        return self._watch_list

    @property
    def last_sign_at(self) -> float:
        """When the server last showed that it follows: an event, a bookmark or a list."""
        return self._sign_at

    # --- what next -------------------------------------------------------------------------------

    def ask(self, now: float) -> Ask:
        """Say what to do next; what was going on before is over."""
        left = self._not_before - now
        if left > _TICK_S:
            return Pause(left)
        self._opened_at = None
        self._lines = Lines()
        match self._phase:
            case Phase.LISTING:
                return self._ask_page()
            case Phase.FOLLOWING:
                return self._ask_watch({"resourceVersion": self.resource_version})
            case Phase.BEGIN | Phase.FILLING:
                self._gathered = {}
                self._continue = ""
                if not self._watch_list:
                    self._phase = Phase.LISTING
                    return self._ask_page()
                self._phase = Phase.FILLING
                return self._ask_watch(
                    {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
                )

    def _ask_page(self) -> Page:
        query = dict(self._selectors)
        if self._paged:
            query["limit"] = str(PAGE_SIZE)
        if self._continue:
            query["continue"] = self._continue
        return Page(query)

    def _ask_watch(self, start: Mapping[str, str]) -> Watch:
        self._watch_s = float(self._random_source.randint(SHORTEST_WATCH_S, LONGEST_WATCH_S))
        return Watch(
            {
                **self._selectors,
                **start,
                "watch": "true",
                "allowWatchBookmarks": "true",
                "timeoutSeconds": f"{self._watch_s:.0f}",
            }
        )

    def deadline(self) -> float:
        """Return when the open stream counts as dead; what is heard only ever puts it off."""
        assert self._opened_at is not None, "no stream is open"
        if self._phase is Phase.FILLING:
            return max(self._opened_at, self._sign_at) + PATIENCE_FOR_THE_END_S
        return min(
            max(self._opened_at, self._byte_at) + self._watch_s + PATIENCE_AFTER_TIMEOUT_S,
            max(self._opened_at, self._sign_at) + PATIENCE_FOR_A_SIGN_S,
        )

    # --- what was answered -----------------------------------------------------------------------

    def opened(self, now: float) -> None:
        """The stream is accepted; bytes may follow."""
        self._opened_at = now

    def received(self, chunk: bytes, now: float) -> Received[T]:
        """Take in bytes of the stream; what came before nonsense still counts."""
        self._byte_at = now
        changes: list[Change[T]] = []
        try:
            over = self._receive(self._lines.feed(chunk), now, changes)
        except BadResponse as error:
            self.lost(now)
            return Received(tuple(changes), over=True, error=error)
        return Received(tuple(changes), over=over)

    def _receive(self, lines: list[bytes], now: float, changes: list[Change[T]]) -> bool:
        """Take in events, and say whether the stream is over."""
        last: T | None = None  # whose version is ours when the chunk is through
        try:
            for event in read_events(lines):
                if event.type == "ERROR":
                    self._error(event, now)
                    return True
                if event.type == "BOOKMARK":
                    changes += self._bookmark(read_bookmark(event.object), now)
                    last = None
                    continue
                self._sign_at = now
                if self._phase is Phase.FILLING:
                    self._gather(event)
                    continue
                each = self._read(event.object)
                if each is not None:
                    changes.append(_change(event.type, each))
                    last = each
            return False
        finally:
            if last is not None:
                version = self._form.identity(last).resource_version
                self.resource_version = version or self.resource_version

    def page(self, body: bytes, now: float) -> tuple[Change[T], ...]:
        """Take in one page of a list; the last one makes the change."""
        try:
            page = _decode_list(body)
        except msgspec.DecodeError as error:
            raise BadResponse(f"a list cannot be read: {error}") from error
        for raw in page.items or ():
            self._keep(raw)
        self._sign_at = now
        self._continue = page.metadata.continue_
        if self._continue:
            return ()
        return (self._complete(page.metadata.resource_version),)

    def closed(self, now: float) -> None:
        """The stream ended in an orderly way, as all of them do after a while."""
        opened = self._opened_at if self._opened_at is not None else now
        self._forget_failures(now)
        if now - opened < SHORT_STREAM_S:
            self._pause(now)

    def lost(self, now: float) -> None:
        """The connection broke, or what came made no sense: the same again after a pause."""
        self._forget_failures(now)
        self._pause(now)

    def expired(self, now: float) -> None:
        """The deadline has passed."""
        if self._phase is Phase.FILLING:
            self._fall_back()
        else:
            self.lost(now)

    def refused(self, code: int, now: float, *, retry_after_s: float | None = None) -> None:
        """The API answered with an error instead of a page or a stream."""
        self._forget_failures(now)
        if code == 410:
            self._start_over(now)
        elif self._phase is Phase.FILLING and code in (400, 422):
            self._fall_back()
        else:
            self._pause(now, at_least=retry_after_s or 0.0)

    # --- events ----------------------------------------------------------------------------------

    def _gather(self, event: RawEvent) -> None:
        """Take an initial event. An old server may mix live ones in, so all types are possible."""
        if event.type == "DELETED":
            gone = self._read(event.object)
            if gone is not None:
                self._gathered.pop(self._form.identity(gone).key, None)
        else:
            self._keep(event.object)

    def _keep(self, raw: msgspec.Raw) -> None:
        each = self._read(raw)
        if each is not None:
            self._gathered[self._form.identity(each).key] = each

    def _bookmark(self, mark: BookmarkMeta, now: float) -> Iterable[Change[T]]:
        if self._phase is Phase.FILLING:
            # Only the mark that ends the initial events counts, or an old server's ordinary ones
            # would keep us waiting for it.
            if mark.annotations.get(INITIAL_EVENTS_END) == "true":
                self._sign_at = now
                yield self._complete(mark.resource_version)
            return
        self._sign_at = now
        self.resource_version = mark.resource_version or self.resource_version

    def _read(self, raw: msgspec.Raw) -> T | None:
        try:
            return self._form.decode(raw)
        except BadResponse:
            # One odd object must not stop the others. The cache keeps the state it could read.
            self.unreadable += 1
            return None

    def _error(self, event: RawEvent, now: float) -> None:
        status = read_status(event.object)
        code = status.code if status is not None else 0
        self._forget_failures(now)
        if self._phase is Phase.FILLING:
            self._fall_back()
        elif code == 410:
            self._start_over(now)
        else:
            self._pause(now)

    # --- turns -----------------------------------------------------------------------------------

    def _complete(self, resource_version: str) -> Replace[T]:
        everything = tuple(self._gathered.values())
        self._gathered = {}
        self._paged = True
        self.resource_version = resource_version
        self.relists += 1
        self._phase = Phase.FOLLOWING
        return Replace(everything, resource_version)

    def _fall_back(self) -> None:
        """Fill from pages from now on: this server has no WatchList, or none that works."""
        self._watch_list = False
        self._phase = Phase.BEGIN

    def _start_over(self, now: float) -> None:
        if self._phase is Phase.LISTING:
            # The pages took longer than the server remembers: everything in one go.
            self._paged = False
        self._phase = Phase.BEGIN
        # The first time there is no reason to wait: the server is well, we were just too slow.
        self._failures += 1
        if self._failures > 1:
            self._not_before = now + PAUSES.delay(self._failures - 1, self._random_source)

    def _pause(self, now: float, *, at_least: float = 0.0) -> None:
        self._failures += 1
        delay = PAUSES.delay(self._failures, self._random_source)
        self._not_before = now + max(delay, at_least)

    def _forget_failures(self, now: float) -> None:
        """Forget earlier failures if the stream that just ended had been well for a while."""
        if self._opened_at is not None and now - self._opened_at >= HEALTHY_AFTER_S:
            self._failures = 0


def _change(type_: str, each: T) -> Change[T]:
    match type_:
        case "ADDED" | "MODIFIED":
            return Upsert(each)
        case "DELETED":
            return Remove(each)
        case other:
            raise BadResponse(f"a watch sent an event of the unknown type {other!r}")
