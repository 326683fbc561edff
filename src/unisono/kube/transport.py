"""How a request reaches an API: the only thing that differs between a real cluster and our own.

Two implementations: `HttpTransport` speaks to any Kubernetes API over TLS; the embedded server is
called in the same process by an adapter in `runtime`. Tests script a third. To write another one:

- `path` begins with a slash and is already quoted; `query` and `headers` are plain text.
- Answers of any code are returned, not raised. Header names in answers are in lower case.
- No answer at all (refused, reset, too late) raises `errors.Unreachable`, with `sent=False` only
  if the API surely did not see the request.
- Authentication is the transport's business; so is asking once more after a 401 with new
  credentials. No other request is ever repeated here: `calls` decides that.
- A transport may be used by many tasks at once and never outlives the loop it was made in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import msgspec

from unisono.kube.errors import BadResponse, KubeError
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    code: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    warnings: tuple[str, ...] = ()  # texts of `Warning: 299` headers


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that comes piece by piece; the pieces end anywhere, also inside a line."""

    code: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    """What carries requests to one API, as one user."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> Answer:
        """Ask and return the whole answer; `timeout` is for all of it, in seconds."""

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        """Ask and hand out the answer as it comes; `timeout` is for its head alone.

        Leaving the context ends the stream on both sides. While it is read, a broken connection
        raises Unreachable; that nothing comes for a long time is for the reader to notice.
        """


# ---- an API in the same process ------------------------------------------------------------------


class WriteRequest(NamedTuple):
    """One write. The content of a patch is a JSON merge patch, of a binding a Binding."""

    verb: Literal["create", "patch", "bind"]
    kind: Kind
    namespace: str
    name: str
    content: Json
    subresource: str = ""
    # Says whether what was decided still holds; asked right before the write is sent.
    holds: Callable[[], bool] | None = None


class Stored(NamedTuple):
    """An object as it now is; it is shared, so it must not be changed.

    `raw` is the same as JSON if it is at hand. A binding over HTTP has no object.
    """

    obj: Json | None
    raw: bytes = b""


WriteResult = Stored | KubeError


@runtime_checkable
class InProcessTransport(Protocol):
    """A transport whose API takes objects as they are."""

    async def write(self, orders: Sequence[WriteRequest]) -> list[WriteResult]:
        """Carry writes out; each has a result of its own, trouble included."""


# ---- events of a watch ---------------------------------------------------------------------------
#
# Bytes of a watch to events: lines out of chunks, and an envelope out of each line.
#
# The object inside stays bytes here. The reader makes a dictionary of it, or a struct with three
# fields; what it does not need is not built.

# The largest object an API server accepts is 3 MiB; indented for people it may be several times
# that. A line longer than this is not an event.
_MOST_LINE_BYTES = 32 * 1024 * 1024

# The annotation that ends the initial events of a WatchList.
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class RawEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: what happened, and the object as it came."""

    type: str
    object: msgspec.Raw


class BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a bookmark."""

    resource_version: str = ""
    annotations: dict[str, str] = {}  # msgspec gives every struct its own copy


class _Bookmark(msgspec.Struct, frozen=True):
    """The object of a BOOKMARK event."""

    metadata: BookmarkMeta


_decode_envelope = msgspec.json.Decoder(RawEvent).decode
_decode_mark = msgspec.json.Decoder(_Bookmark).decode


class Lines:
    """Cuts a stream into lines; what has no end yet is kept for the next chunk."""

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        """Begin at the start of a line."""
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes."""
        first, *rest = chunk.split(b"\n")
        self._pieces.append(first)
        self._size += len(first)
        if self._size > _MOST_LINE_BYTES:
            raise BadResponse(f"a watch sent a line of more than {_MOST_LINE_BYTES} bytes")
        if not rest:
            return []
        lines = [b"".join(self._pieces), *rest[:-1]]
        self._pieces = [rest[-1]]
        self._size = len(rest[-1])
        return lines


def read_events(lines: Iterator[bytes] | list[bytes]) -> Iterator[RawEvent]:
    """Read events, one per line; empty lines are nothing."""
    for line in lines:
        if not line or line.isspace():
            continue
        try:
            yield _decode_envelope(line)
        except msgspec.DecodeError as error:
            raise BadResponse(f"a watch sent {line[:80]!r}, which is no event: {error}") from error


def read_bookmark(raw: msgspec.Raw) -> BookmarkMeta:
    """Read a bookmark's metadata."""
    try:
        return _decode_mark(raw).metadata
    except msgspec.DecodeError as error:
        raise BadResponse(f"a watch sent a bookmark that cannot be read: {error}") from error
