"""A small HTTP listener for probes and metrics: a few pages, GET only, nothing secret.

A Kubernetes kubelet and a Prometheus ask short questions on connections of their own, so each
connection has one answer, and a client that does not ask in time is cut off. A request for a name
that is not ours is refused (`allowed_hosts`): no web site gets at the figures through a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from unisono.net.allowed_hosts import Hosts
from unisono.net.http.messages import Limits, Response
from unisono.net.http.pages import PageApplication, PageRequest, text
from unisono.net.http.server import serving
from unisono.net.listener import bound

_LIMITS = Limits(head_bytes=8_192, body_bytes=0, head_seconds=5.0, keeps_alive=False)
# A page of eight thousand devices takes its time; Prometheus itself gives up after ten seconds.
_ANSWER_S = 10.0
_WORTH_PACKING_BYTES = 16_384
_GZIP = 31  # zlib's way to say it
_NOT_OURS = "the header Host names another host; ask by address, or tell the name by --host\n"
_PLAIN = "text/plain; version=0.0.4; charset=utf-8"


class Asked(NamedTuple):
    """What a client wants, as far as pages differ by it."""

    path: str
    accept: str = ""


class Page(NamedTuple):
    """What is answered."""

    code: int
    text: str
    content_type: str = _PLAIN


Pages = Mapping[str, Callable[[Asked], Page | Awaitable[Page]]]


@contextlib.asynccontextmanager
async def probes(
    host: str, port: int, pages: Pages, *, names: Iterable[str] = (), option: str = "--listen"
) -> AsyncIterator[str]:
    """Answer while the block lasts; yields the address. `names` are further ones of this host.

    `option` is the one that chooses the address, for the message that it is taken.
    """
    hosts = Hosts(host, names)

    async def answer(request: PageRequest) -> Response:
        return await _answer(request, pages, hosts)

    sock = bound(host, port, option)
    application = PageApplication(answer, _LIMITS, answer_seconds=_ANSWER_S)
    async with serving(application, sock):
        taken = sock.getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{taken}"


async def _answer(request: PageRequest, pages: Pages, hosts: Hosts) -> Response:
    page: Page | Awaitable[Page]
    asked = Asked(request.path, request.headers.get("accept", ""))
    if not hosts.know(request.headers.get("host", "")):
        page = Page(403, _NOT_OURS)
    elif request.method not in ("GET", "HEAD"):
        page = Page(405, "only GET\n")
    elif asked.path not in pages:
        page = Page(404, f"there are {', '.join(pages)}\n")
    else:
        page = pages[asked.path](asked)
    if not isinstance(page, Page):
        page = await page
    response = text(page.code, page.text, page.content_type)
    if request.takes_gzip and len(response.body) >= _WORTH_PACKING_BYTES:
        response.body = await asyncio.to_thread(_packed, response.body)
        response.headers["content-encoding"] = "gzip"
    return response


def _packed(body: bytes) -> bytes:
    return zlib.compress(body, 1, wbits=_GZIP)
