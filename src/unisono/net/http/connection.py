"""One connection of a client: requests in, answers out, one after the other.

Our own on llhttp and not a general server, because between a general server and its application
more is spent than on most answers (ADR 0010): an answer that is there at once leaves in the same
turn of the loop, by one write; a watch is written from the store's history whenever there is news
and room.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httptools

from unisono.kinds.overriding import override
from unisono.net.http.messages import (
    CONTINUE,
    LAST_CHUNK,
    Application,
    Call,
    PulledBody,
    Response,
    Tunnel,
    chunk_of,
    head_of,
    switching,
)
from unisono.net.listener import Accepted

# A head that does not end may share what was read at once with whole requests before it.
_READ_AT_ONCE = 256 * 1024
# Of a body that is too large so many times its bound are read and thrown away, so that its sender
# is told why.
_MOST_DISCARDED = 8
_AT_ONCE_BYTES = 256 * 1024
_LENGTH = b"content-length"
_LONG_HEAD = b"the head of the request is too long\n"


class _Slices:
    """A long body, piece by piece; nothing is copied before there is room for it."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self.is_over = False

    def read(self) -> bytes:
        """Return the next piece; nothing at the end."""
        piece, self._body = self._body[:_AT_ONCE_BYTES], self._body[_AT_ONCE_BYTES:]
        self.is_over = not piece
        return bytes(piece)


@dataclass(slots=True)
class _Head:
    """The headers of a request as they came, what they say, and their user if that lasts."""

    fields: list[tuple[bytes, bytes]]
    headers: Mapping[str, str]
    size: int  # bytes
    user: object = None

    @staticmethod
    def of(fields: list[tuple[bytes, bytes]]) -> _Head:
        """Read headers; what is given several times is joined by commas."""
        headers: dict[str, str] = {}
        for name, value in fields:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            headers[key] = f"{headers[key]},{text}" if key in headers else text
        return _Head(fields, headers, sum(len(name) + len(value) for name, value in fields))


class Connection(asyncio.Protocol):
    """Reads requests, has them answered, writes answers."""

    def __init__(
        self, application: Application, others: set[Connection], accepted: Accepted
    ) -> None:
        """Take what answers, the set of all connections, and what counts this one."""
        self._application = application
        self._limits = application.limits
        self._is_encrypted = False
        self._client_name = ""
        self._others = others
        self._accepted = accepted
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        # What arrives.
        self._target = b""
        self._fields: list[tuple[bytes, bytes]] = []
        self._head = _Head([], {}, 0)  # of the last request; most clients send the same again
        self._unfinished = 0
        self._head_since: float | None = None
        self._call: Call | None = None  # its head is here, its body is not
        self._waiting: deque[Call] = deque()
        self._is_reading = True
        # What leaves.
        self._current: Call | None = None
        self._writing: asyncio.Task[None] | None = None
        self._copying: asyncio.Task[None] | None = None
        self._source: PulledBody | _Slices | None = None
        self._tunnel: Tunnel | None = None  # from then on nothing else is spoken
        self._is_chunked = False
        self._has_room = True
        self._room: asyncio.Future[None] | None = None
        self._last_answer = self._loop.time()
        self._body_since: float | None = None
        self._full_since: float | None = None

    # ---- the socket ----------------------------------------------------------------------------

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        if self._is_encrypted:
            self._client_name = _common_name(transport.get_extra_info("peercert"))
        self._others.add(self)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        for call in (*self._waiting, *((self._call,) if self._call is not None else ())):
            self._application.drop(call)
        self._waiting.clear()
        self._call = None
        self.resume_writing()  # a writer that waits for room finds the client gone
        if self._copying is not None:
            self._copying.cancel()
        # A write goes on: it was decided, and others may have seen it already.
        if self._writing is None:
            self._end_answer()
        self._others.discard(self)
        self._accepted.leave()

    @override
    def eof_received(self) -> None:
        """Let the transport close: a client that half-closes does not want our answer."""

    @override
    def pause_writing(self) -> None:
        self._has_room = False
        self._full_since = self._loop.time()

    @override
    def resume_writing(self) -> None:
        self._has_room = True
        self._full_since = None
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self._pump()

    @override
    def data_received(self, data: bytes) -> None:
        if self._tunnel is not None:
            self._through(self._tunnel, data)
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # An upgrade that is refused is answered as any request, and then the connection ends.
            for call in self._waiting:
                call.keeps_open = False
        except httptools.HttpParserCallbackError:
            raise  # a mistake of ours
        except httptools.HttpParserError:
            self._refuse(400, b"the request is not HTTP/1.1\n")
            return
        if self._head_since is not None:
            self._unfinished += len(data)
            if self._unfinished > self._limits.head_bytes + _READ_AT_ONCE:
                self._refuse(431, _LONG_HEAD)
                return
        self._serve()

    def check(self, now: float) -> None:
        """Hang up on a client that takes too long to ask or to read, or has not asked for long."""
        if self._current is not None:
            is_stuck = self._full_since is not None and not isinstance(self._source, PulledBody)
            if is_stuck and now - (self._full_since or now) > self._limits.stalled_seconds:
                self.hang_up()
        elif self._head_since is not None:
            if now - self._head_since > self._limits.head_seconds:
                self.hang_up()
        elif self._body_since is not None:
            if now - self._body_since > self._limits.body_seconds:
                self.hang_up()
        elif now - self._last_answer > self._longest_idle():
            self.hang_up()

    def _longest_idle(self) -> float:
        if self._accepted.is_known:
            return self._limits.known_idle_seconds
        return self._limits.idle_seconds if self._head.fields else self._limits.head_seconds

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being asked or answered."""
        return self._current is None and self._call is None and not self._waiting

    def hang_up(self) -> None:
        """Close without a TLS goodbye, which would wait for an answer."""
        if self._transport is not None:
            self._transport.abort()

    # ---- what the parser finds -----------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._target = b""
        self._fields = []
        self._unfinished = 0
        self._head_since = self._loop.time()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; how long the body is, the parser knows."""
        if len(name) != len(_LENGTH) or name.lower() != _LENGTH:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Have the head looked at, before the body is read."""
        method = self._parser.get_method().decode("latin-1")
        head = self._head
        if self._fields != head.fields:
            head = self._head = _Head.of(self._fields)
        call = self._application.begin(method, self._target, head.headers, known=head.user)
        self._call, head.user = call, self._application.lasting(call)
        call.is_encrypted, call.client_name = self._is_encrypted, self._client_name
        call.fields = self._fields
        self._head_since = None
        self._body_since = self._loop.time()
        version = self._parser.get_http_version()
        call.keeps_open = (
            self._limits.keeps_alive and version != "1.0" and self._parser.should_keep_alive()
        )
        if head.size + len(self._target) > self._limits.head_bytes:
            call.refusal = Response(code=431, body=_LONG_HEAD, content_type="text/plain")
            call.keeps_open = False
        if head.headers.get("expect", "").lower() == "100-continue" and self._transport:
            self._transport.write(CONTINUE)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        call = self._call
        if call is None or self._application.take(call, body):
            return
        call.keeps_open = False
        if call.size > _MOST_DISCARDED * self._limits.body_bytes:
            self.hang_up()

    def on_message_complete(self) -> None:
        """Line up a request that is whole."""
        if self._call is not None:
            self._waiting.append(self._call)
            self._call = None
            self._body_since = None

    # ---- answering -----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Answer what waits, one after the other; read no further while a request waits."""
        while self._waiting and self._current is None and self._transport is not None:
            call = self._current = self._waiting.popleft()
            self._accepted.work()
            try:
                answer = self._application.answer(call)
            except Exception as mistake:  # noqa: BLE001 (ours; the next request may fare better)
                answer = self._failed(mistake)
            if isinstance(answer, Response):
                self._respond(call, answer)
            else:
                self._writing = self._loop.create_task(self._answer(call, answer))
        if self._transport is not None and self._is_reading == bool(self._waiting):
            self._is_reading = not self._waiting
            if self._is_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    async def _answer(self, call: Call, work: Coroutine[Any, Any, Response]) -> None:
        """Wait for an answer that takes its time; the client may be gone by then."""
        try:
            response = await work
        except Exception as mistake:  # noqa: BLE001 (as above)
            response = self._failed(mistake)
        finally:
            self._writing = None
        self._respond(call, response)
        self._serve()

    def _failed(self, mistake: Exception) -> Response:
        """Answer in spite of a mistake of ours, and let the operator know."""
        context = {"message": "a request could not be answered", "exception": mistake}
        self._loop.call_exception_handler(context)
        return self._application.failure()

    def _respond(self, call: Call, response: Response) -> None:
        transport = self._transport
        if transport is None:
            self._end_answer()
        elif response.chunks is not None:
            self._stream(call, response, response.chunks)
        elif response.tunnel is not None:
            transport.write(switching(response))
            self._tunnel = response.tunnel
            self._copying = self._loop.create_task(self._tunnelled(response.tunnel))
        else:
            body = b"" if call.method == "HEAD" else response.body
            head = head_of(response, length=len(response.body), keeps_open=call.keeps_open)
            if len(body) <= _AT_ONCE_BYTES:
                transport.write(head + body)
                self._end_answer()
            else:
                transport.write(head)
                self._is_chunked = False
                self._source = _Slices(body)
                self._pump()

    def _stream(self, call: Call, response: Response, chunks: AsyncIterator[bytes]) -> None:
        assert self._transport is not None
        self._transport.write(head_of(response, length=None, keeps_open=call.keeps_open))
        self._is_chunked = call.keeps_open
        if isinstance(chunks, PulledBody):
            self._source = chunks
            chunks.start(self._pump)
            self._pump()
        else:
            self._copying = self._loop.create_task(self._copy(chunks))

    def _pump(self) -> None:
        """Write what there is, as long as there is room."""
        source = self._source
        while source is not None and self._has_room and self._transport is not None:
            piece = source.read()
            if piece:
                self._transport.write(chunk_of(piece) if self._is_chunked else piece)
            elif source.is_over:
                self._end_stream()
                return
            else:
                return

    async def _copy(self, chunks: AsyncIterator[bytes]) -> None:
        """Write chunks as they come, until they end or the client goes away."""
        try:
            async for piece in chunks:
                while not self._has_room and self._transport is not None:
                    self._room = self._loop.create_future()
                    await self._room
                if self._transport is None:
                    break
                if piece:
                    self._transport.write(chunk_of(piece) if self._is_chunked else piece)
        finally:
            self._copying = None
            closing = getattr(chunks, "aclose", None)
            if closing is not None:
                await closing()
        self._end_stream()

    def _through(self, tunnel: Tunnel, data: bytes) -> None:
        assert self._transport is not None
        for reply in tunnel.feed(data):
            self._transport.write(reply)
        if tunnel.is_full:
            self._transport.pause_reading()

    async def _tunnelled(self, tunnel: Tunnel) -> None:
        """Let another protocol have the connection, then part."""

        async def send(data: bytes) -> None:
            while not self._has_room and self._transport is not None:
                self._room = self._loop.create_future()
                await self._room
            if self._transport is not None:
                self._transport.write(data)

        def has_room() -> None:
            if self._transport is not None and not self._transport.is_reading():
                self._transport.resume_reading()

        try:
            await tunnel.run(send, has_room)
        finally:
            self._copying = None
            self._end_answer()

    def _end_stream(self) -> None:
        if self._transport is not None and self._is_chunked:
            self._transport.write(LAST_CHUNK)
        self._end_answer()
        self._serve()

    def _end_answer(self) -> None:
        """Clean up after an answer, sent or not."""
        call, self._current = self._current, None
        source, self._source = self._source, None
        if isinstance(source, PulledBody):
            source.close()
        if call is None:
            return
        self._application.leave(call)
        self._accepted.rest(is_known=self._application.is_known(call))
        self._last_answer = self._loop.time()
        if not call.keeps_open and self._transport is not None:
            self._transport.close()

    def _refuse(self, code: int, text: bytes) -> None:
        """Say what is wrong and part: what follows on this connection makes no sense."""
        if self._transport is None:
            return
        if self._current is None:
            response = Response(code=code, body=text, content_type="text/plain")
            head = head_of(response, length=len(text), keeps_open=False)
            self._transport.write(head + text)
            self._transport.close()
        else:
            self._transport.abort()


def _common_name(certificate: Mapping[str, Any] | None) -> str:
    """Return the name in a client's certificate; empty if it showed none that was verified."""
    subject = (certificate or {}).get("subject", ())
    return next((str(value) for part in subject for key, value in part if key == "commonName"), "")
