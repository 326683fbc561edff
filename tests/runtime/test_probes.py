"""The small listener for probes and metrics."""

from __future__ import annotations

import asyncio
import gzip
import io
import json

import pytest

from unisono.net.listener import CannotListen
from unisono.runtime.log import Journal
from unisono.runtime.probes import Asked, Page, Pages, probes

LONG = "unisono_figure 1\n" * 2_000


async def later(asked: Asked) -> Page:
    """Answer after a while."""
    await asyncio.sleep(0)
    return Page(200, LONG, f"text/plain; asked={asked.accept}")


PAGES: Pages = {
    "/readyz": lambda asked: Page(503, "still reading\n"),
    "/healthz": lambda asked: Page(200, "ok\n"),
    "/metrics": later,
}


def ask(request: str, on: str = "127.0.0.1", names: tuple[str, ...] = ()) -> str:
    return ask_for_bytes(request, on, names).decode()


def ask_for_bytes(request: str, on: str = "127.0.0.1", names: tuple[str, ...] = ()) -> bytes:
    async def main() -> bytes:
        async with probes(on, 0, PAGES, names=names) as address:
            port = int(address.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.encode())
            answer = await reader.read()
            writer.close()
            return answer

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "code", "body"),
    [
        ("GET /healthz HTTP/1.1", 200, "ok\n"),
        ("GET /readyz?verbose=1 HTTP/1.1", 503, "still reading\n"),
        ("HEAD /healthz HTTP/1.1", 200, ""),
        ("GET / HTTP/1.1", 404, "there are /readyz, /healthz, /metrics\n"),
        ("POST /healthz HTTP/1.1", 405, "only GET\n"),
    ],
)
def test_questions_are_answered(line: str, code: int, body: str) -> None:
    head, _, found = ask(f"{line}\r\nHost: localhost\r\n\r\n").partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {code} ")
    assert found == body


def test_a_long_page_is_compressed_for_clients_that_accept_it() -> None:
    asked = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9401\r\n"
    plain = ask(f"{asked}Accept: text/x\r\n\r\n")
    assert plain.endswith(f"\r\n\r\n{LONG}")
    assert "content-type: text/plain; asked=text/x\r\n" in plain
    packed = ask_for_bytes(f"{asked}Accept-Encoding: deflate, gzip\r\n\r\n")
    head, _, body = packed.partition(b"\r\n\r\n")
    assert b"content-encoding: gzip" in head
    assert gzip.decompress(body).decode() == LONG


@pytest.mark.parametrize(
    ("host", "on", "code"),
    [
        ("rebound.example", "127.0.0.1", 403),  # a site that points its own name at us
        ("rebound.example:9401", "0.0.0.0", 403),
        ("localhost.rebound.example", "0.0.0.0", 403),
        ("", "0.0.0.0", 403),
        ("10.0.0.7:9401", "127.0.0.1", 403),  # no other address reaches loopback
        ("10.0.0.7:9401", "0.0.0.0", 200),  # a kubelet, a Prometheus
        ("[fd00::7]:9401", "0.0.0.0", 200),
        ("[fd00::7", "0.0.0.0", 403),
        ("127.0.0.1:9401", "127.0.0.1", 200),
        ("LOCALHOST:9401", "127.0.0.1", 200),
        ("unisono.home.svc:8080", "0.0.0.0", 200),
        ("Unisono.Home.svc.:8080", "0.0.0.0", 200),
        ("unisono.home.svc.rebound.example", "0.0.0.0", 403),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/healthz"])
def test_no_web_site_reads_the_pages_through_a_name_of_its_own(
    host: str, on: str, code: int, path: str
) -> None:
    answer = ask(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n", on, ("unisono.home.svc",))
    assert answer.startswith(f"HTTP/1.1 {code} ")
    assert ("--host" in answer) == (code == 403)


def test_endless_headers_are_cut_off() -> None:
    assert ask("GET /" + "x" * 100_000 + "\r\n\r\n").startswith("HTTP/1.1 431 ")


def test_reports_a_port_that_is_in_use() -> None:
    async def main() -> None:
        async with probes("127.0.0.1", 0, PAGES) as address:
            port = int(address.rpartition(":")[2])
            async with probes("127.0.0.1", port, PAGES):
                raise AssertionError("two on one port")

    with pytest.raises(CannotListen, match="choose another --listen"):
        asyncio.run(main())


def test_a_journal_is_for_machines_or_for_people() -> None:
    out = io.StringIO()
    Journal(out, lambda: 1_767_268_800.25).info("leader changed", holder="a")
    Journal(out, lambda: 1_767_268_800.25, "text").warning("leader changed", holder="a b")
    first, second = out.getvalue().splitlines()
    time = "2026-01-01T12:00:00.250Z"
    assert json.loads(first) == {
        "time": time,
        "level": "info",
        "event": "leader changed",
        "holder": "a",
    }
    assert second == f'{time} warning leader changed holder="a b"'
