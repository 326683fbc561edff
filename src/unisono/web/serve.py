"""The listener of the page: on loopback, GET only, nothing without the token but the page itself.

    /                the page, and its files
    /picture.json    everything it shows; with the token
    /changes         a line whenever the picture changed, at most once a second; with the token

The token comes in a header, so a link from elsewhere cannot use it; it reaches the browser behind
the `#` of the address, which browsers do not send. Requests for another host's name are refused, so
a name that is made to point here does not help anybody either.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from typing import NamedTuple

import orjson

from unisono.engine.model.errors import UnisonoError
from unisono.web.picture import Json, Painter

_MOST_HEADER_BYTES = 16_384
_PATIENCE_S = 5.0
_MOST_VISITORS = 64
_GZIP = 31  # zlib's way to say it
_LEAST_PAUSE_S = 1.0
# A picture may take this part of a processor and no more; large clusters are painted less often.
_MOST_SHARE = 0.05
_KEEP_ALIVE_S = 15.0
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_HEADERS = (
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options: nosniff",
    "Referrer-Policy: no-referrer",
    "Cross-Origin-Resource-Policy: same-origin",
    "Cache-Control: no-store",
    "Connection: close",
)
_PHRASES = {
    200: "OK",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class CannotServe(UnisonoError):
    """The address is taken, or not one of this machine."""


class _Asked(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]


class Site:
    """Paints pictures when somebody looks, and tells visitors that there is a new one."""

    def __init__(
        self, painter: Painter, token: str, *, now: Callable[[], float], ticks: Callable[[], float]
    ) -> None:
        """Take who paints, and the token that visitors need; `ticks` measures how long it takes."""
        self._painter = painter
        self._token = token
        self._now = now
        self._ticks = ticks
        self._picture = b""
        self._packed = b""
        self._version = 0
        self._visitors = 0
        self._is_closing = False
        self._changed = asyncio.Condition()

    async def keep_painting(self) -> None:
        """Paint while somebody looks."""
        while True:
            pause = _LEAST_PAUSE_S
            if self._visitors:
                began = self._ticks()
                await self._paint()
                pause = max(pause, (self._ticks() - began) / _MOST_SHARE)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Send visitors away."""
        self._is_closing = True
        async with self._changed:
            self._changed.notify_all()

    async def _paint(self) -> None:
        made = self._painter.picture(self._now())
        picture = _written(made)
        if picture == self._picture:
            return
        self._picture = picture
        self._packed = b""
        async with self._changed:
            self._version += 1
            self._changed.notify_all()

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one visitor."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                await self._answer(_asked(head), writer)
            except asyncio.LimitOverrunError:
                pass  # nobody needs headers that long
            finally:
                writer.close()

    async def _answer(self, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        host = asked.headers.get("host", "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost", "[::1]"):
            writer.write(_answer(403, b"this is not the address of that host\n"))
        elif asked.method not in ("GET", "HEAD"):
            writer.write(_answer(405, b"only GET\n"))
        elif asked.path in _FILES:
            name, kind = _FILES[asked.path]
            body = (resources.files("unisono.web") / "pages" / name).read_bytes()
            writer.write(_answer(200, body, kind))
        elif asked.path not in ("/picture.json", "/changes"):
            writer.write(_answer(404, b"there is no such page\n"))
        elif not self._is_known(asked):
            writer.write(_answer(401, b"the token is missing or wrong\n"))
        elif asked.path == "/picture.json":
            await self._send_picture(asked, writer)
        elif self._visitors >= _MOST_VISITORS:
            writer.write(_answer(503, b"too many are looking already\n"))
        else:
            await self._tell_changes(writer)
        await writer.drain()

    def _is_known(self, asked: _Asked) -> bool:
        said = asked.headers.get("authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(said.encode(), self._token.encode())

    async def _send_picture(self, asked: _Asked, writer: asyncio.StreamWriter) -> None:
        if not self._visitors or not self._picture:
            await self._paint()  # nobody has been looking: what there is may be old
        kind = "application/json"
        if "gzip" not in asked.headers.get("accept-encoding", ""):
            writer.write(_answer(200, self._picture, kind))
            return
        if not self._packed:
            self._packed = await asyncio.to_thread(zlib.compress, self._picture, 1, _GZIP)
        writer.write(_answer(200, self._packed, kind, "Content-Encoding: gzip"))

    async def _tell_changes(self, writer: asyncio.StreamWriter) -> None:
        """Write a line for every new picture until the visitor goes."""
        writer.write(_head(200, "text/plain; charset=utf-8"))
        self._visitors += 1
        try:
            while not self._is_closing:
                writer.write(f"{self._version}\n".encode())
                await writer.drain()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_KEEP_ALIVE_S), self._changed:
                        await self._changed.wait()
        finally:
            self._visitors -= 1


@contextlib.asynccontextmanager
async def serving(site: Site, host: str, port: int) -> AsyncIterator[str]:
    """Serve the page while the block lasts; yields its address."""
    try:
        server = await asyncio.start_server(site.attend, host, port, limit=_MOST_HEADER_BYTES)
    except OSError as error:
        raise CannotServe(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    async with server, asyncio.TaskGroup() as tasks:
        painting = tasks.create_task(site.keep_painting())
        try:
            yield f"http://{host}:{server.sockets[0].getsockname()[1]}/"
        finally:
            painting.cancel()
            await site.close()


def _written(picture: Json) -> bytes:
    """Write a picture; its time is left out, or every one would be new."""
    return orjson.dumps({name: one for name, one in picture.items() if name != "now"})


def _asked(head: bytes) -> _Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    return _Asked(method, rest.partition(" ")[0].partition("?")[0], headers)


def _head(code: int, kind: str, *more: str) -> bytes:
    lines = (f"HTTP/1.1 {code} {_PHRASES[code]}", f"Content-Type: {kind}", *more, *_HEADERS, "", "")
    return "\r\n".join(lines).encode()


def _answer(code: int, body: bytes, kind: str = "text/plain; charset=utf-8", *more: str) -> bytes:
    return _head(code, kind, f"Content-Length: {len(body)}", *more) + body
