"""A small HTTP listener for probes and metrics: three pages, GET only, nothing secret.

A Kubernetes kubelet and a Prometheus ask short questions on connections of their own, so each
connection has one answer, and whoever does not ask in time is sent away.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple

from unisono.engine.model.errors import UnisonoError

_MOST_HEADER_BYTES = 8_192
_PATIENCE_S = 5.0
_PHRASES = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class CannotListen(UnisonoError):
    """The address is taken, or not one of this machine."""


class Page(NamedTuple):
    """What is answered."""

    code: int
    text: str


Pages = Mapping[str, Callable[[], Page]]


@contextlib.asynccontextmanager
async def probes(host: str, port: int, pages: Pages) -> AsyncIterator[str]:
    """Answer while the block lasts; yields the address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_answer(head, pages))
                    await writer.drain()
            except asyncio.LimitOverrunError:
                pass  # nobody needs headers that long
            finally:
                writer.close()

    try:
        server = await asyncio.start_server(answer, host, port, limit=_MOST_HEADER_BYTES)
    except OSError as error:
        reason = error.strerror or error
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}; see --listen") from error
    async with server:
        taken = server.sockets[0].getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{taken}"


def _answer(head: bytes, pages: Pages) -> bytes:
    method, _, rest = head.decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if method not in ("GET", "HEAD"):
        page = Page(405, "only GET\n")
    elif path not in pages:
        page = Page(404, f"there are {', '.join(pages)}\n")
    else:
        page = pages[path]()
    body = page.text.encode()
    lines = (
        f"HTTP/1.1 {page.code} {_PHRASES[page.code]}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + (b"" if method == "HEAD" else body)
