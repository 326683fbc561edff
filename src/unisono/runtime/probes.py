"""A small HTTP listener for probes and metrics: a few pages, GET only, nothing secret.

A Kubernetes kubelet and a Prometheus ask short questions on connections of their own, so each
connection has one answer, and whoever does not ask in time is sent away. Whoever asks for a name
that is not ours is refused (`web.hosts`): no web site gets at the figures through a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from unisono.engine.model.errors import UnisonoError
from unisono.net.listener import bound, listening, streams
from unisono.web.allowed_hosts import Hosts

_MOST_HEADER_BYTES = 8_192
_PATIENCE_S = 5.0
# A page of eight thousand devices takes its time; Prometheus itself gives up after ten seconds.
_PATIENCE_FOR_PAGE_S = 10.0
_WORTH_PACKING_BYTES = 16_384
_GZIP = 31  # zlib's way to say it
_PHRASES = {
    200: "OK",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}
_NOT_OURS = "the header Host names somebody else; ask by address, or tell the name by --host\n"
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"


class CannotListen(UnisonoError):
    """The address is taken, or not one of this machine."""


class Asked(NamedTuple):
    """What somebody wants, as far as pages differ by it."""

    method: str
    path: str
    accept: str = ""
    takes_gzip: bool = False
    host: str = ""


class Page(NamedTuple):
    """What is answered."""

    code: int
    text: str
    content_type: str = _PLAIN


Pages = Mapping[str, Callable[[Asked], Page | Awaitable[Page]]]


@contextlib.asynccontextmanager
async def probes(
    host: str, port: int, pages: Pages, *, names: Iterable[str] = ()
) -> AsyncIterator[str]:
    """Answer while the block lasts; yields the address. `names` are further ones of this host."""
    hosts = Hosts(host, names)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    asked = _asked(await reader.readuntil(b"\r\n\r\n"))
                async with asyncio.timeout(_PATIENCE_FOR_PAGE_S):
                    writer.write(await _answer(asked, pages, hosts))
                    await writer.drain()
            except asyncio.LimitOverrunError:
                pass  # nobody needs headers that long
            finally:
                writer.close()

    try:
        sock = bound(host, port)
    except OSError as error:
        reason = error.strerror or error
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}; see --listen") from error
    async with listening(sock, streams(answer, limit=_MOST_HEADER_BYTES)):
        taken = sock.getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{taken}"


def _asked(head: bytes) -> Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    return Asked(
        method,
        rest.partition(" ")[0].partition("?")[0],
        headers.get("accept", ""),
        "gzip" in headers.get("accept-encoding", ""),
        headers.get("host", ""),
    )


async def _answer(asked: Asked, pages: Pages, hosts: Hosts) -> bytes:
    page: Page | Awaitable[Page]
    if not hosts.know(asked.host):
        page = Page(403, _NOT_OURS)
    elif asked.method not in ("GET", "HEAD"):
        page = Page(405, "only GET\n")
    elif asked.path not in pages:
        page = Page(404, f"there are {', '.join(pages)}\n")
    else:
        page = pages[asked.path](asked)
    if not isinstance(page, Page):
        page = await page
    body = page.text.encode()
    is_packed = asked.takes_gzip and len(body) >= _WORTH_PACKING_BYTES
    if is_packed:
        body = await asyncio.to_thread(_packed, body)
    lines = (
        f"HTTP/1.1 {page.code} {_PHRASES[page.code]}",
        f"Content-Type: {page.content_type}",
        *(("Content-Encoding: gzip",) if is_packed else ()),
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*lines, "", "")).encode() + (b"" if asked.method == "HEAD" else body)


def _packed(body: bytes) -> bytes:
    return zlib.compress(body, 1, wbits=_GZIP)
