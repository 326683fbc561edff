"""The listener of the page: what each client gets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import hashlib
import json
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.monitor import objects
from unisono.apiserver.access.tls import fresh_certificate
from unisono.kinds.overriding import override
from unisono.kube.tls import show
from unisono.monitor.cache import NODE, ClusterCache, fill
from unisono.net.allowed_hosts import Hosts
from unisono.net.listener import CannotListen
from unisono.runtime.clock import seconds_now
from unisono.web import server
from unisono.web.auth import Authenticator, Permissions, TokenAuthenticator, everything, token_of
from unisono.web.dashboard import Dashboard
from unisono.web.pages import File, Pages
from unisono.web.server import Site, serving

TOKEN = "a-token"
SIGNED_IN = f"Authorization: Bearer {TOKEN}"
MODULES = (
    *(
        "actions",
        "alerts",
        "app",
        "colours",
        "details",
        "dom",
        "gang",
        "live",
        "map",
        "node",
        "nodes",
    ),
    *("overview", "parts", "queues", "reports", "timeline", "words", "workloads"),
)


class CookieDoor:
    """Knows one person, by a cookie."""

    uses_cookie = True

    async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
        return Permissions(name="kim") if token_of(headers) == TOKEN else None

    async def may_see_pods(self, permissions: Permissions, namespace: str) -> Permissions:
        return permissions


async def a_report(since: int, until: int, form: str) -> File:
    return File(f"usage.{form}", "text/csv", f"{since},{until}".encode())


def site(
    authenticator: Authenticator | None = None, hosts: Hosts | None = None
) -> tuple[Site, ClusterCache]:
    cache = ClusterCache()
    fill(cache, NODE, (objects.node("n1"),))
    pages = Pages(Dashboard(cache), now=lambda: 0.0, report=a_report)
    ticking = iter(range(1_000_000))
    made = Site(
        pages,
        authenticator or TokenAuthenticator(TOKEN),
        now=lambda: float(next(ticking)),
        ticks=lambda: 0.0,
        hosts=hosts,
    )
    return made, cache


async def ask(address: str, path: str, *headers: str, method: str = "GET", host: str = "") -> str:
    port = address.rstrip("/").rpartition(":")[2]
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    lines = (f"{method} {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", *headers, "", "")
    writer.write("\r\n".join(lines).encode())
    answer = await reader.read()
    writer.close()
    return answer.decode("latin-1")


@contextlib.asynccontextmanager
async def listening(address: str, path: str, *headers: str) -> AsyncIterator[asyncio.StreamReader]:
    """Ask for lines that go on; yield what they are read from, behind the head."""
    port = int(address.rstrip("/").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = (f"GET {path} HTTP/1.1", f"Host: localhost:{port}", *headers, "", "")
    writer.write("\r\n".join(lines).encode())
    await reader.readuntil(b"\r\n\r\n")
    yield reader
    writer.close()


def run(
    story: Callable[[str], Awaitable[None]],
    authenticator: Authenticator | None = None,
    hosts: Hosts | None = None,
    context: ssl.SSLContext | None = None,
) -> None:
    async def main() -> None:
        made, _ = site(authenticator, hosts)
        async with serving(made, "127.0.0.1", 0, context) as address:
            await story(address)

    asyncio.run(main())


FILES = ("/", "/icon.svg", *(f"/{one}.js" for one in MODULES))


def test_the_page_and_its_files_need_no_token() -> None:
    async def story(address: str) -> None:
        for path in FILES:
            answer = await ask(address, path)
            assert answer.startswith("HTTP/1.1 200 "), path
            for header in (
                "Content-Security-Policy: default-src 'none'; script-src 'self';",
                "X-Content-Type-Options: nosniff",
                "Referrer-Policy: no-referrer",
            ):
                assert header in answer
            body = answer.partition("\r\n\r\n")[2].replace("http://www.w3.org/2000/svg", "")
            assert "http://" not in body
            assert "https://" not in body

    run(story)


def test_the_styles_are_in_the_page_and_no_others_may_be() -> None:
    async def story(address: str) -> None:
        head, _, body = (await ask(address, "/")).partition("\r\n\r\n")
        styles = body.partition("<style>")[2].partition("</style>")[0]
        assert "prefers-color-scheme" in styles
        digest = hashlib.sha256(styles.encode("latin-1")).digest()
        assert f"style-src 'sha256-{base64.b64encode(digest).decode()}';" in head
        assert 'rel="stylesheet"' not in body
        assert (await ask(address, "/style.css")).startswith("HTTP/1.1 404 ")

    run(story)


def test_a_file_that_is_known_already_is_not_sent_again() -> None:
    async def story(address: str) -> None:
        first = await ask(address, "/app.js", "Accept-Encoding: gzip")
        head, _, body = first.partition("\r\n\r\n")
        assert "Content-Encoding: gzip" in head
        assert b"import" in gzip.decompress(body.encode("latin-1"))
        tag = next(line for line in head.split("\r\n") if line.startswith("ETag: "))[6:]
        again = await ask(address, "/app.js", f"If-None-Match: {tag}")
        assert again.startswith("HTTP/1.1 304 ")
        assert again.endswith("\r\n\r\n")

    run(story)


@pytest.mark.parametrize("path", ["/live?page=overview", "/report/csv?since=1&until=2"])
def test_what_the_cluster_does_needs_the_token(path: str) -> None:
    async def story(address: str) -> None:
        assert (await ask(address, path)).startswith("HTTP/1.1 401 ")
        wrong = await ask(address, path, "Authorization: Bearer wrong")
        assert wrong.startswith("HTTP/1.1 401 ")
        # On loopback a cookie would be sent to a server on another port.
        cookie = await ask(address, path, f"Cookie: other={TOKEN}")
        assert cookie.startswith("HTTP/1.1 401 ")

    run(story)


def test_a_page_is_sent_and_then_what_became_different() -> None:
    async def main() -> None:
        made, cache = site()
        async with (
            serving(made, "127.0.0.1", 0) as address,
            listening(address, "/live?page=map", SIGNED_IN) as reader,
        ):
            first = json.loads(await reader.readline())
            assert first["order"] == ["n1"]
            assert first["set"]["n1"]["by"] == [["", 8]]
            fill(cache, NODE, (objects.node("n2"),))
            async with asyncio.timeout(10):
                second: dict[str, Any] = {}
                while "set" not in second:
                    second = json.loads(await reader.readline())
            assert second["order"] == ["n1", "n2"]
            assert list(second["set"]) == ["n2"]

    asyncio.run(main())


def test_lines_may_be_packed() -> None:
    async def story(address: str) -> None:
        packed = "Accept-Encoding: gzip, br"
        unpacking = zlib.decompressobj(31)
        text = b""
        async with (
            asyncio.timeout(10),
            listening(address, "/live?page=overview", SIGNED_IN, packed) as reader,
        ):
            while b"\n" not in text:
                text += unpacking.decompress(await reader.read(65_536))
        assert json.loads(text.partition(b"\n")[0])["head"]["gpus"]["there"] == 8

    run(story)


def test_a_user_without_access_is_signed_out() -> None:
    class Forgetful(CookieDoor):
        asked = 0

        @override
        async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
            self.asked += 1
            return everything("kim") if self.asked == 1 else None

    async def main() -> None:
        cache = ClusterCache()
        clock = iter(range(0, 10_000, 61))  # more than a minute at every look
        made = Site(
            Pages(Dashboard(cache), now=lambda: 0.0),
            Forgetful(),
            now=lambda: float(next(clock)),
            ticks=lambda: 0.0,
        )
        async with (
            asyncio.timeout(10),
            serving(made, "127.0.0.1", 0) as address,
            listening(address, "/live?page=overview", SIGNED_IN) as reader,
        ):
            lines = (await reader.read()).splitlines()
            assert json.loads(lines[-1]) == {"signedOut": True}

    asyncio.run(main())


class NamedDoor(CookieDoor):
    """Knows every person by a token that is the name."""

    @override
    async def admit(self, headers: Mapping[str, str]) -> Permissions | None:
        return everything(token_of(headers))


def test_one_user_cannot_take_all_pages_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_VISITORS", 4)
    page = "/live?page=overview"

    async def main() -> None:
        made, _ = site(NamedDoor())
        async with contextlib.AsyncExitStack() as open_pages:
            await open_pages.enter_async_context(asyncio.timeout(20))
            address = await open_pages.enter_async_context(serving(made, "127.0.0.1", 0))

            async def opened(user: str) -> asyncio.StreamReader:
                looking = listening(address, page, f"Authorization: Bearer {user}")
                reader = await open_pages.enter_async_context(looking)
                await reader.readline()
                return reader

            greedy = [await opened("greedy") for _ in range(4)]
            assert " 503 " in await ask(address, page, "Authorization: Bearer greedy")
            for _ in range(2):
                await opened("quiet")
            for reader in greedy[:2]:
                await reader.read()  # sent away, so that it ends
            assert {user: len(found) for user, found in made._visitors.items()} == {
                "greedy": 2,
                "quiet": 2,
            }
            assert " 503 " in await ask(address, page, "Authorization: Bearer quiet")

    asyncio.run(main())


def test_others_are_turned_away() -> None:
    async def story(address: str) -> None:
        rebound = await ask(address, "/", host="evil.example:80")
        assert rebound.startswith("HTTP/1.1 403 ")
        assert (await ask(address, "/", method="POST")).startswith("HTTP/1.1 405 ")
        assert (await ask(address, "/../secret")).startswith("HTTP/1.1 404 ")
        assert (await ask(address, "/live?page=none", SIGNED_IN)).startswith("HTTP/1.1 404 ")
        assert (await ask(address, "/" + "x" * 100_000)).startswith("HTTP/1.1 431 ")
        many = "&".join(f"a{at}=1" for at in range(99))
        assert (await ask(address, f"/live?{many}")).startswith("HTTP/1.1 400 ")

    run(story)


def test_reports_are_files_to_keep() -> None:
    async def story(address: str) -> None:
        good = await ask(address, "/report/csv?since=100&until=200", SIGNED_IN)
        assert good.startswith("HTTP/1.1 200 ")
        assert 'Content-Disposition: attachment; filename="usage.csv"' in good
        assert good.endswith("\r\n\r\n100,200")
        for bad in ("exe?since=1&until=2", "csv?since=x&until=2", "csv?since=3&until=2", "csv"):
            answer = await ask(address, f"/report/{bad}", SIGNED_IN)
            assert answer.startswith("HTTP/1.1 400 "), bad

    run(story)


# ---- signing in ----------------------------------------------------------------------------------


def test_on_loopback_there_is_no_cookie() -> None:
    async def story(address: str) -> None:
        about = await ask(address, "/session", SIGNED_IN)
        assert json.loads(about.partition("\r\n\r\n")[2])["name"] == "the owner"
        signed_in = await ask(address, "/session", SIGNED_IN, method="POST")
        assert signed_in.startswith("HTTP/1.1 200 ")
        assert "Set-Cookie" not in signed_in

    run(story)


@pytest.mark.parametrize(
    ("host", "is_secure"),
    [
        ("localhost:8081", False),  # a forwarded port
        ("[::1]:8081", False),
        ("10.0.0.7:8081", True),
        ("page.example", True),
        ("page.example:8443", True),
    ],
)
def test_off_loopback_a_cookie_is_for_tls_only_whatever_a_proxy_says(
    host: str, is_secure: bool
) -> None:
    async def story(address: str) -> None:
        for says in ((), ("X-Forwarded-Proto: http",)):
            for method in ("POST", "DELETE"):
                answer = await ask(address, "/session", SIGNED_IN, *says, method=method, host=host)
                cookie = next(one for one in answer.split("\r\n") if one.startswith("Set-Cookie: "))
                assert "; HttpOnly; SameSite=Strict" in cookie
                assert ("; Secure" in cookie) == is_secure

    run(story, CookieDoor(), Hosts("0.0.0.0", ["page.example"]))


def test_a_site_that_points_its_name_here_gets_nothing_on_a_cluster_either() -> None:
    async def story(address: str) -> None:
        for path in ("/", "/session", "/live?page=overview", "/report/csv?since=1&until=2"):
            answer = await ask(address, path, SIGNED_IN, host="rebound.example:8081")
            assert answer.startswith("HTTP/1.1 403 "), path

    run(story, CookieDoor(), Hosts("0.0.0.0", ["page.example"]))


def test_the_page_is_served_over_tls_and_its_cookies_are_for_tls() -> None:
    fresh = fresh_certificate(now=seconds_now(), hosts=["127.0.0.1"])
    client, server = (ssl.create_default_context(one) for one in ssl.Purpose)
    show(server, fresh.certificate, fresh.key)
    client.load_verify_locations(cadata=fresh.authority.decode())

    async def story(address: str) -> None:
        assert address.startswith("https://127.0.0.1:")
        port = int(address.rstrip("/").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client)
        lines = ("POST /session HTTP/1.1", f"Host: 127.0.0.1:{port}", SIGNED_IN, "", "")
        writer.write("\r\n".join(lines).encode())
        answer = (await reader.read()).decode()
        writer.close()
        assert answer.startswith("HTTP/1.1 200 ")
        assert "; HttpOnly; SameSite=Strict; Secure\r\n" in answer

    run(story, CookieDoor(), context=server)


def test_on_a_cluster_a_cookie_keeps_the_user_signed_in() -> None:
    async def story(address: str) -> None:
        about = await ask(address, "/session")
        assert json.loads(about.partition("\r\n\r\n")[2])["name"] == ""
        assert (
            await ask(address, "/session", "Authorization: Bearer no", method="POST")
        ).startswith("HTTP/1.1 401 ")
        signed_in = await ask(address, "/session", SIGNED_IN, method="POST")
        cookie = next(one for one in signed_in.split("\r\n") if one.startswith("Set-Cookie: "))
        assert cookie.endswith(f"={TOKEN}; Path=/; HttpOnly; SameSite=Strict")
        secure = await ask(
            address, "/session", SIGNED_IN, "X-Forwarded-Proto: https", method="POST"
        )
        assert "SameSite=Strict; Secure\r\n" in secure
        kept = f"Cookie: {cookie[12:].partition(';')[0]}"
        again = await ask(address, "/session", kept)
        assert json.loads(again.partition("\r\n\r\n")[2])["name"] == "kim"
        async with listening(address, "/live?page=overview", kept) as reader:
            assert json.loads(await reader.readline())["head"]["gpus"] is None
        gone = await ask(address, "/session", kept, method="DELETE")
        assert "Max-Age=0" in gone

    run(story, CookieDoor())


def test_no_other_site_signs_a_user_in_or_out() -> None:
    async def story(address: str) -> None:
        for header in ("Origin: https://evil.example", "Sec-Fetch-Site: cross-site"):
            for method in ("POST", "DELETE"):
                answer = await ask(address, "/session", SIGNED_IN, header, method=method)
                assert answer.startswith("HTTP/1.1 403 "), (header, method)
                assert "Set-Cookie" not in answer
        form = await ask(address, "/session", f"Cookie: unisono-token={TOKEN}", method="POST")
        assert form.startswith("HTTP/1.1 400 ")
        long = await ask(address, "/session", f"Authorization: Bearer {'x' * 4000}", method="POST")
        assert long.startswith("HTTP/1.1 413 ")
        no_reports = await ask(address, "/report/csv?since=1&until=2", SIGNED_IN)
        assert no_reports.startswith("HTTP/1.1 403 ")

    run(story, CookieDoor())


def test_reports_a_port_that_is_in_use() -> None:
    async def story(address: str) -> None:
        port = int(address.rstrip("/").rpartition(":")[2])
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}: .*; choose another --web$"):
            async with serving(site()[0], "127.0.0.1", port):
                raise AssertionError("two on one port")

    run(story)
