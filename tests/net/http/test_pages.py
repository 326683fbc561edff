"""Small applications of HTTP: what a handler gets, and what bounds its clients."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from unisono.net.http.messages import Limits, Response
from unisono.net.http.pages import PageApplication, PageRequest, text
from unisono.net.http.server import serving
from unisono.net.listener import Connections, bound

SECONDS = 10


async def handle(request: PageRequest) -> Response:
    """Answer by what the path says."""
    match request.path:
        case "/mistake":
            raise ValueError("a mistake of ours")
        case "/slow":
            await asyncio.Event().wait()
            raise AssertionError
        case "/stream":
            return Response(chunks=_numbers(), content_type="text/plain")
        case _:
            return text(200, f"{request.method} {dict(request.query)} {request.body.decode()}")


async def _numbers() -> AsyncIterator[bytes]:
    for number in range(3):
        yield b"%d\n" % number


@contextlib.asynccontextmanager
async def listener(limits: Limits, answer_seconds: float = SECONDS) -> AsyncIterator[int]:
    application = PageApplication(handle, limits, answer_seconds=answer_seconds, most_fields=4)
    sock = bound("127.0.0.1", 0)
    async with serving(application, sock, counted=Connections(8)):
        yield sock.getsockname()[1]


async def ask(port: int, line: str, body: bytes = b"", *more: str) -> bytes:
    """Send one request on a connection of its own, and read until the listener closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (line + " HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more, "", "")
    writer.write("\r\n".join(head).encode() + body)
    try:
        return await reader.read()
    finally:
        writer.close()


def told(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with asyncio.timeout(SECONDS):
            await story()

    asyncio.run(run())


ONCE = Limits(body_bytes=8, keeps_alive=False)


def test_a_handler_gets_the_whole_request() -> None:
    async def story() -> None:
        async with listener(ONCE) as port:
            answer = await ask(port, "POST /a?x=1", b"hello")
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert answer.endswith(b"POST {'x': '1'} hello")
            assert b"connection: close" in answer

    told(story)


@pytest.mark.parametrize(
    ("line", "body", "code"),
    [
        ("POST /a", b"123456789", 413),
        ("GET /a?" + "&".join(f"k{at}=v" for at in range(9)), b"", 400),
        ("GET /mistake", b"", 500),
        ("GET /slow", b"", 503),
    ],
)
def test_bounds_and_mistakes_are_answered(line: str, body: bytes, code: int) -> None:
    async def story() -> None:
        async with listener(ONCE, answer_seconds=0.01) as port:
            assert (await ask(port, line, body)).startswith(f"HTTP/1.1 {code} ".encode())

    told(story)


def test_a_head_beyond_the_bound_is_refused() -> None:
    async def story() -> None:
        async with listener(Limits(head_bytes=512, keeps_alive=False)) as port:
            answer = await ask(port, "GET /a", b"", "X: " + "y" * 600)
            assert answer.startswith(b"HTTP/1.1 431 ")

    told(story)


def test_a_connection_that_is_kept_carries_many_requests() -> None:
    async def story() -> None:
        async with listener(Limits()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(3):
                writer.write(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = await reader.readuntil(b"0\r\n\r\n")
                assert answer.endswith(b"2\r\n0\n\r\n2\r\n1\n\r\n2\r\n2\n\r\n0\r\n\r\n")
            writer.close()

    told(story)
