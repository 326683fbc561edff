"""Requests as they arrive, responses as they leave, and what an application has to offer.

Connection ──begin, take, answer──▶ Application (the API, or `pages`)
           ◀────── Response ───────
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qsl

import httptools

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 3 * 1024 * 1024


class UnreadableAddress(ValueError):
    """What stands in the first line of a request is no address."""


class Tunnel(Protocol):
    """What a connection becomes when it changes protocols: bytes both ways, until one side ends."""

    @property
    def is_full(self) -> bool:
        """Whether the client should wait with more."""

    def feed(self, data: bytes) -> list[bytes]:
        """Take what the client sent; return what it is to be told at once."""

    async def run(
        self, send: Callable[[bytes], Awaitable[None]], has_room: Callable[[], None]
    ) -> None:
        """Work until one side ends; `has_room` says that the client may send on."""


class PulledBody:
    """A body that a connection reads whenever there is news and the client has room for it.

    It may stay silent for as long as it likes.
    """

    is_over = False

    def start(self, wake: Callable[[], None]) -> None:
        """Begin; `wake` is called when there is something to read."""
        raise NotImplementedError

    def read(self) -> bytes:
        """Return the next piece; nothing if there is none yet, or at the end (`is_over`)."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of it."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class Response:
    """An answer: bytes at once, chunks as they come (watch, logs), or another protocol (exec)."""

    code: int = 200
    body: bytes = b""
    chunks: AsyncIterator[bytes] | None = None
    tunnel: Tunnel | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much and how slowly a client of one listener may send and read."""

    head_bytes: int = MAX_HEAD_BYTES
    body_bytes: int = MAX_BODY_BYTES
    # Between a connection or the first byte of a request and the end of its head.
    head_seconds: float = 10.0
    # Between the end of a head and the end of its body: three megabytes over a slow line.
    body_seconds: float = 60.0
    # Between two requests of a client that authenticated, and of one that did not.
    known_idle_seconds: float = 120.0
    idle_seconds: float = 10.0
    # Without reading a byte of an answer; a pulled body may sleep for as long as it likes.
    stalled_seconds: float = 60.0
    keeps_alive: bool = True  # one connection may carry many requests


@dataclass(slots=True, kw_only=True)
class Call:
    """What a client sends, and what is known of it before it is whole."""

    method: str
    path: str
    target: bytes = b""  # as it stands in the first line
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    user: object = None  # as the application authenticated the client; None if it was refused
    refusal: Response | None = None  # decided already; the body is not looked at
    keeps_open: bool = True
    is_encrypted: bool = False
    # As they came: a header that is given several times is several pairs here.
    fields: Sequence[tuple[bytes, bytes]] = ()
    client_name: str = ""  # of the certificate that the client showed, where one was asked for
    most_bytes: int = MAX_BODY_BYTES
    body: list[bytes] = field(default_factory=list)
    size: int = 0
    held: int = 0  # bytes of the body that count among those of all requests
    flight: str = ""  # the place it holds among those at work

    def take(self, data: bytes) -> bool:
        """Take a part of the body; say whether that is still within bounds."""
        self.size += len(data)
        if self.refusal is None and self.size <= self.most_bytes:
            self.body.append(data)
            return True
        self.body.clear()
        return self.size <= self.most_bytes


class Application(Protocol):
    """What answers the requests of one or more listeners."""

    @property
    def limits(self) -> Limits:
        """How much and how slowly clients may send and read."""

    def begin(
        self, method: str, target: bytes, headers: Mapping[str, str], known: object = None
    ) -> Call:
        """Look at the head of a request; `known` sent the same headers on this connection."""

    def lasting(self, call: Call) -> object:
        """Return the user of a call if the same headers mean the same user the next time, too."""

    def is_known(self, call: Call) -> bool:
        """Say whether the client of a call authenticated."""

    def take(self, call: Call, data: bytes) -> bool:
        """Take a part of a call's body; say no if nothing more of it is wanted."""

    def drop(self, call: Call) -> None:
        """Forget a call's body: it was handled, or never will be."""

    def answer(self, call: Call) -> Response | Coroutine[Any, Any, Response]:
        """Answer a whole request, or return the work that will; `leave` must follow."""

    def failure(self) -> Response:
        """Return the answer to a request that could not be answered by a mistake of ours."""

    def leave(self, call: Call) -> None:
        """Note that the answer to a call has left, or that its client is gone."""

    def stop(self) -> None:
        """End what would go on for ever: the listener stops."""


def address_of(target: bytes, *, most_fields: int | None = None) -> tuple[str, dict[str, str]]:
    """Return path and query of what stands in a request's first line."""
    path, _, query = target.partition(b"?")
    if not path.startswith(b"/"):
        try:
            url = httptools.parse_url(target)
        except httptools.HttpParserInvalidURLError as error:
            raise UnreadableAddress("the address of the request cannot be read") from error
        path, query = url.path or b"/", url.query or b""
    if not query:
        return path.decode("latin-1"), {}
    try:
        fields = parse_qsl(
            query.decode("latin-1"), keep_blank_values=True, max_num_fields=most_fields
        )
    except ValueError as error:
        raise UnreadableAddress("the query of the request has too many fields") from error
    return path.decode("latin-1"), dict(fields)


# ---- as bytes of HTTP/1.1 ------------------------------------------------------------------------
#
# Answers as bytes of HTTP/1.1.

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_STATUS = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}
# An answer in which a header ends early would be two answers.
_LINE_ENDS = str.maketrans("\r\n\0", "   ")


_USUAL = _STATUS[200] + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"


def head_of(response: Response, *, length: int | None, keeps_open: bool) -> bytes:
    """Return everything before the body; without a length the body comes in chunks."""
    if length is not None and keeps_open and response.code == 200 and not response.headers:
        if response.content_type == "application/json":
            return _USUAL % length
    lines = [
        _STATUS.get(response.code) or f"HTTP/1.1 {response.code} \r\n".encode(),
    ]
    if response.content_type:
        lines.append(b"content-type: %b\r\n" % response.content_type.encode("latin-1", "replace"))
    for name, value in response.headers.items():
        lines.append(f"{name}: {value.translate(_LINE_ENDS)}\r\n".encode("latin-1", "replace"))
    if length is not None:
        lines.append(b"content-length: %d\r\n" % length)
    elif keeps_open:
        lines.append(b"transfer-encoding: chunked\r\n")
    if not keeps_open:
        lines.append(b"connection: close\r\n")
    lines.append(b"\r\n")
    return b"".join(lines)


def switching(response: Response) -> bytes:
    """Return the head after which another protocol begins."""
    lines = [f"{name}: {value.translate(_LINE_ENDS)}" for name, value in response.headers.items()]
    return _STATUS[101] + "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


def chunk_of(piece: bytes) -> bytes:
    """Return a piece of a body as a chunk."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)
