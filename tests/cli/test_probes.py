"""The small listener for probes and metrics."""

from __future__ import annotations

import asyncio
import io
import json

import pytest

from unisono.cli.journal import Journal
from unisono.cli.probes import CannotListen, Page, probes

PAGES = {"/readyz": lambda: Page(503, "still reading\n"), "/healthz": lambda: Page(200, "ok\n")}


def ask(request: str) -> str:
    async def main() -> str:
        async with probes("127.0.0.1", 0, PAGES) as address:
            port = int(address.rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.encode())
            answer = await reader.read()
            writer.close()
            return answer.decode()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "code", "body"),
    [
        ("GET /healthz HTTP/1.1", 200, "ok\n"),
        ("GET /readyz?verbose=1 HTTP/1.1", 503, "still reading\n"),
        ("HEAD /healthz HTTP/1.1", 200, ""),
        ("GET / HTTP/1.1", 404, "there are /readyz, /healthz\n"),
        ("POST /healthz HTTP/1.1", 405, "only GET\n"),
    ],
)
def test_questions_are_answered(line: str, code: int, body: str) -> None:
    head, _, found = ask(f"{line}\r\nHost: x\r\n\r\n").partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {code} ")
    assert found == body


def test_endless_headers_are_cut_off() -> None:
    assert ask("GET /" + "x" * 100_000 + "\r\n\r\n") == ""


def test_a_port_that_is_taken_is_told() -> None:
    async def main() -> None:
        async with probes("127.0.0.1", 0, PAGES) as address:
            port = int(address.rpartition(":")[2])
            async with probes("127.0.0.1", port, PAGES):
                raise AssertionError("two on one port")

    with pytest.raises(CannotListen, match="see --listen"):
        asyncio.run(main())


def test_a_journal_is_for_machines_or_for_people() -> None:
    out = io.StringIO()
    Journal(out, lambda: 1_767_268_800.25).info("who leads", holder="a")
    Journal(out, lambda: 1_767_268_800.25, "text").warning("who leads", holder="a b")
    first, second = out.getvalue().splitlines()
    time = "2026-01-01T12:00:00.250Z"
    assert json.loads(first) == {
        "time": time,
        "level": "info",
        "event": "who leads",
        "holder": "a",
    }
    assert second == f'{time} warning who leads holder="a b"'
