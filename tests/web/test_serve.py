"""The listener of the page: who gets what."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable

import pytest

from tests.monitor import objects
from unisono.monitor.books import NODE, Books, fill
from unisono.web.picture import Painter
from unisono.web.serve import CannotServe, Site, serving

TOKEN = "a-token"


def site() -> tuple[Site, Books]:
    books = Books()
    fill(books, NODE, (objects.node("n1"),))
    return Site(Painter(books), TOKEN, now=lambda: 0.0, ticks=lambda: 0.0), books


async def ask(address: str, path: str, *headers: str, method: str = "GET", host: str = "") -> str:
    port = address.rstrip("/").rpartition(":")[2]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", *headers, "", "")
    writer.write("\r\n".join(lines).encode())
    answer = await reader.read()
    writer.close()
    return answer.decode("latin-1")


def run(story: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        made, _ = site()
        async with serving(made, "127.0.0.1", 0) as address:
            await story(address)

    asyncio.run(main())


@pytest.mark.parametrize("path", ["/", "/app.js", "/style.css", "/icon.svg"])
def test_the_page_and_its_files_need_no_token(path: str) -> None:
    async def story(address: str) -> None:
        answer = await ask(address, path)
        assert answer.startswith("HTTP/1.1 200 ")
        assert "Content-Security-Policy: default-src 'none';" in answer
        assert "http://" not in answer.replace("http://www.w3.org/2000/svg", "")

    run(story)


def test_the_picture_needs_the_token() -> None:
    async def story(address: str) -> None:
        assert (await ask(address, "/picture.json")).startswith("HTTP/1.1 401 ")
        wrong = await ask(address, "/picture.json", "Authorization: Bearer wrong")
        assert wrong.startswith("HTTP/1.1 401 ")
        assert (await ask(address, "/changes")).startswith("HTTP/1.1 401 ")
        right = await ask(address, "/picture.json", f"Authorization: Bearer {TOKEN}")
        assert json.loads(right.partition("\r\n\r\n")[2])["gpus"]["there"] == 8
        packed = await ask(
            address, "/picture.json", f"Authorization: Bearer {TOKEN}", "Accept-Encoding: gzip"
        )
        body = packed.encode("latin-1").partition(b"\r\n\r\n")[2]
        assert json.loads(gzip.decompress(body))["gpus"]["there"] == 8

    run(story)


def test_others_are_turned_away() -> None:
    async def story(address: str) -> None:
        rebound = await ask(address, "/", host="evil.example:80")
        assert rebound.startswith("HTTP/1.1 403 ")
        assert (await ask(address, "/", method="POST")).startswith("HTTP/1.1 405 ")
        assert (await ask(address, "/../secret")).startswith("HTTP/1.1 404 ")
        assert await ask(address, "/" + "x" * 100_000) == ""

    run(story)


def test_visitors_hear_of_changes() -> None:
    async def main() -> None:
        made, books = site()
        async with serving(made, "127.0.0.1", 0) as address:
            port = int(address.rstrip("/").rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"GET /changes HTTP/1.1\r\nHost: localhost:{port}\r\n"
            writer.write(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            first = int(await reader.readline())
            fill(books, NODE, (objects.node("n2"),))
            async with asyncio.timeout(10):
                while int(await reader.readline()) <= first:
                    pass
            answer = await ask(address, "/picture.json", f"Authorization: Bearer {TOKEN}")
            assert json.loads(answer.partition("\r\n\r\n")[2])["gpus"]["there"] == 16
            writer.close()

    asyncio.run(main())


def test_a_port_that_is_taken_is_told() -> None:
    async def story(address: str) -> None:
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(CannotServe, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serving(site()[0], "127.0.0.1", port):
                raise AssertionError("two on one port")

    run(story)
