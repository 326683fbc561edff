"""Bytes of a watch to events: lines out of chunks, and an envelope out of each line.

The object inside stays bytes here. The
reader makes a dictionary of it, or a struct with three fields; what it does not need is not built.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from unisono.kube.errors import BadResponse

# The largest object an API server accepts is 3 MiB; indented for people it may be several times
# that. A line longer than this is not an event.
MOST_LINE_BYTES = 32 * 1024 * 1024

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


class Bookmark(msgspec.Struct, frozen=True):
    """The object of a BOOKMARK event."""

    metadata: BookmarkMeta


_decode_envelope = msgspec.json.Decoder(RawEvent).decode
_decode_mark = msgspec.json.Decoder(Bookmark).decode


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
        if self._size > MOST_LINE_BYTES:
            raise BadResponse(f"a watch sent a line of more than {MOST_LINE_BYTES} bytes")
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
