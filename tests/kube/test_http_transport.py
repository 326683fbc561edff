"""The real thing: sockets, TLS, certificates, compression, proxies, and connections that break."""

from __future__ import annotations

import asyncio
import random
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from tests.kube.certificates import Authority, Pair
from tests.kube.real_time import RealClock
from unisono.kinds.overriding import override
from unisono.kube import Dicts, Informer, Kind, connected
from unisono.kube.credentials import Credentials
from unisono.kube.errors import BadConfig, NotFound, Unreachable
from unisono.kube.http_transport import HttpTransport
from unisono.kube.kubeconfig import Access, ExecPlugin, Login

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@cache
def authority() -> Authority:
    return Authority()


@asynccontextmanager
async def server(
    handler: Handler, *, pair: Pair | None = None, tls: bool = True, port: int = 0
) -> AsyncIterator[str]:
    """Serve every path with one function; yields the URL."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    context = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_verify_locations(cadata=authority().certificate.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        _load(context, pair or authority().server("localhost"))
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
    await site.start()
    try:
        bound = runner.addresses[0][1]
        yield f"{'https' if tls else 'http'}://127.0.0.1:{bound}"
    finally:
        await runner.cleanup()


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)


@asynccontextmanager
async def transport(access: Access, **options: Any) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(access, Credentials(access, clock=RealClock(), **options))
    async with made:
        yield made


def access(url: str, login: Login = Login(), **options: Any) -> Access:  # noqa: B008  # frozen
    return Access(server=url, authority=authority().certificate, login=login, **options)


async def echo(request: web.Request) -> web.Response:
    """Answer with what was asked."""
    peer = request.transport.get_extra_info("peercert") if request.transport else None
    name = dict(pair for ((pair,),) in [(part,) for part in (peer or {}).get("subject", ())])
    return web.json_response(
        {
            "method": request.method,
            "path": request.raw_path,
            "headers": [[name, value] for name, value in request.headers.items()],
            "body": (await request.read()).decode(),
            "certificate": name.get("commonName", ""),
        },
        headers=[("Warning", '299 - "be \\"careful\\""'), ("Warning", '299 - "twice"')],
    )


def asked(test: Callable[[str], Awaitable[None]], handler: Handler = echo, **options: Any) -> None:
    async def main() -> None:
        async with server(handler, **options) as url:
            await test(url)

    asyncio.run(main())


def test_a_request_arrives_as_it_was_meant() -> None:
    async def test(url: str) -> None:
        login = Login(
            token="t", impersonation=(("Impersonate-Group", "a"), ("Impersonate-Group", "b"))
        )
        async with transport(access(f"{url}/prefix", login)) as made:
            answer = await made.request(
                "PATCH",
                "/api/v1/pods/a%2Fb",
                query={"labelSelector": "a in (b,c)", "x": "é&="},
                headers={"Content-Type": "application/merge-patch+json"},
                body=b"{}",
            )
        seen = orjson.loads(answer.body)
        assert (seen["method"], seen["body"]) == ("PATCH", "{}")
        assert seen["path"] == (
            "/prefix/api/v1/pods/a%2Fb?labelSelector=a+in+%28b%2Cc%29&x=%C3%A9%26%3D"
        )
        headers = seen["headers"]
        assert ["Authorization", "Bearer t"] in headers
        assert ["Impersonate-Group", "a"] in headers
        assert ["Impersonate-Group", "b"] in headers
        assert ["Content-Type", "application/merge-patch+json"] in headers
        assert ["Accept-Encoding", "gzip"] in headers
        assert dict(headers)["User-Agent"].startswith("unisono/")
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.warnings == ('be "careful"', "twice")

    asked(test)


def test_a_client_certificate_is_shown() -> None:
    async def test(url: str) -> None:
        jane = authority().client("jane")
        async with transport(
            access(url, Login(certificate=jane.certificate, key=jane.key))
        ) as made:
            seen = orjson.loads((await made.request("GET", "/")).body)
        assert seen["certificate"] == "jane"

    asked(test)


def test_a_certificate_file_that_is_replaced_is_used(tmp_path: Path) -> None:
    class ApiClient(RealClock):
        """A clock on which every look is a minute later."""

        minutes = 0

        @override
        def monotonic(self) -> float:
            self.minutes += 1
            return self.minutes * 61.0

    def write(pair: Pair) -> None:
        (tmp_path / "crt").write_bytes(pair.certificate)
        (tmp_path / "key").write_bytes(pair.key)

    async def test(url: str) -> None:
        login = Login(certificate=tmp_path / "crt", key=tmp_path / "key")
        wanted = access(url, login)
        async with HttpTransport(wanted, Credentials(wanted, clock=ApiClient())) as made:
            for name in ("jane", "joe"):
                write(authority().client(name))
                seen = orjson.loads((await made.request("GET", "/")).body)
                assert seen["certificate"] == name

    asked(test)


def test_an_unknown_authority_is_not_trusted_unless_told_so() -> None:
    async def test(url: str) -> None:
        wrong = Access(server=url, authority=Authority().certificate)
        async with transport(wrong) as made:
            with pytest.raises(BadConfig, match="certificate-authority-data"):
                await made.request("GET", "/")
            with pytest.raises(BadConfig, match="not to be trusted"):
                async with made.stream("GET", "/"):
                    raise AssertionError("must not open")
        async with transport(Access(server=url, skip_verify=True)) as made:
            assert (await made.request("GET", "/")).code == 200

    asked(test)


def test_a_server_with_another_name() -> None:
    async def test(url: str) -> None:
        async with transport(access(url)) as made:
            with pytest.raises(BadConfig, match="tls-server-name"):
                await made.request("GET", "/")
        async with transport(access(url, server_name="kube.internal")) as made:
            assert (await made.request("GET", "/")).code == 200

    asked(test, pair=authority().server("kube.internal", address=""))


def test_nonsense_for_a_certificate() -> None:
    async def main() -> None:
        nonsense = Access(server="https://127.0.0.1:1", authority=b"nonsense")
        async with transport(nonsense) as made:
            with pytest.raises(BadConfig, match="not usable"):
                await made.request("GET", "/")

    asyncio.run(main())


def test_compressed_answers_and_streams_are_read() -> None:
    text = b'{"type":"BOOKMARK"}\n' * 5000

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_compression(web.ContentCoding.gzip)
        await response.prepare(request)
        await response.write(text)
        return response

    async def test(url: str) -> None:
        async with transport(access(url)) as made:
            answer = await made.request("GET", "/")
            assert answer.headers["content-encoding"] == "gzip"
            assert answer.body == text
            async with made.stream("GET", "/") as stream:
                assert b"".join([chunk async for chunk in stream.chunks]) == text

    asked(test, handler)


def test_connections_are_kept() -> None:
    peers = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=b"{}")

    async def test(url: str) -> None:
        async with transport(access(url)) as made:
            for _ in range(5):
                await made.request("GET", "/")

    asked(test, handler)
    assert len(peers) == 1


def test_a_401_is_answered_with_a_new_token_once() -> None:
    runs = 0

    async def program(*_: Any, **__: Any) -> tuple[int, bytes, bytes]:
        nonlocal runs
        runs += 1
        status = {"token": f"token-{runs}"}
        api_version = "client.authentication.k8s.io/v1"
        answer = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
        return 0, orjson.dumps(answer), b""

    accepted = {"Bearer token-2"}

    async def handler(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization") in accepted
        return web.json_response({}, status=200 if known else 401)

    async def test(url: str) -> None:
        plugin = ExecPlugin(command="x", api_version="client.authentication.k8s.io/v1")
        async with transport(access(url, Login(plugin=plugin)), run=program) as made:
            assert (await made.request("GET", "/")).code == 200
            assert runs == 2
            async with made.stream("GET", "/") as stream:
                assert stream.code == 200
            accepted.clear()
            assert (await made.request("GET", "/")).code == 401
            assert runs == 3

    asked(test, handler)


def test_trouble_says_whether_the_request_was_sent() -> None:
    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def test(url: str) -> None:
        async with transport(access(url)) as made:
            with pytest.raises(Unreachable, match="POST /x: connection lost") as caught:
                await made.request("POST", "/x", body=b"{}")
            assert caught.value.sent

    asked(test, hang_up)

    async def refused() -> None:
        async with transport(Access(server="http://127.0.0.1:1")) as made:
            with pytest.raises(Unreachable) as caught:
                await made.request("GET", "/")
            assert not caught.value.sent
            assert str(caught.value) == "GET /: no connection to 127.0.0.1:1: Connection refused"

    asyncio.run(refused())


def test_an_answer_that_does_not_come_in_time() -> None:
    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    async def test(url: str) -> None:
        async with transport(access(url)) as made:
            with pytest.raises(Unreachable, match="in time") as caught:
                await made.request("GET", "/", timeout=0.05)
            assert caught.value.sent
            with pytest.raises(Unreachable, match="in time"):
                async with made.stream("GET", "/", timeout=0.05):
                    raise AssertionError("must not open")

    asked(test, slow)


def test_a_stream_that_breaks_and_one_that_is_left() -> None:
    left = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        if request.path == "/breaks":
            assert request.transport is not None
            request.transport.abort()
            return response
        try:
            await asyncio.sleep(30)
        finally:
            left.set()
        return response

    async def test(url: str) -> None:
        async with transport(access(url)) as made:
            async with made.stream("GET", "/breaks") as stream:
                assert await anext(stream.chunks) == b"one\n"
                with pytest.raises(Unreachable):
                    await anext(stream.chunks)
            async with made.stream("GET", "/stays") as stream:
                assert await anext(stream.chunks) == b"one\n"
            async with asyncio.timeout(5):
                await left.wait()

    asked(test, handler)


def test_a_proxy_is_used() -> None:
    tunnels: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readuntil(b"\r\n\r\n")
        target = line.split()[1].decode()
        tunnels.append(target)
        host, _, port = target.partition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while chunk := await source.read(65536):
                sink.write(chunk)
            sink.close()

        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    async def test(url: str) -> None:
        async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            async with transport(access(url, proxy=f"http://127.0.0.1:{port}")) as made:
                assert (await made.request("GET", "/")).code == 200
        assert tunnels == [url.removeprefix("https://")]

    asked(test)
    with pytest.raises(BadConfig, match="socks5"):
        HttpTransport(
            Access(server="https://x", proxy="socks5://p"),
            Credentials(Access(server="https://x"), clock=RealClock()),
        )


def test_the_whole_way_from_config_to_cache() -> None:
    pod = {"metadata": {"name": "p", "namespace": "a", "uid": "u", "resourceVersion": "7"}}
    mark = {
        "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
    }

    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            status = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "no such pod"}
            return web.json_response(status, status=404)
        response = web.StreamResponse()
        await response.prepare(request)
        for type_, each in (("ADDED", pod), ("BOOKMARK", mark)):
            await response.write(orjson.dumps({"type": type_, "object": each}) + b"\n")
        await asyncio.sleep(30)
        return response

    async def test(url: str) -> None:
        clock, random_source, kind = RealClock(), random.Random(1), Kind("v1", "Pod")
        async with connected(access(url), clock=clock, random_source=random_source) as client:
            with pytest.raises(NotFound, match="no such pod"):
                await client.get(kind, "x")
            made = Informer(
                client, kind, Dicts("v1", "Pod"), clock=clock, random_source=random_source
            )
            async with asyncio.TaskGroup() as group:
                task = group.create_task(made.run())
                async with asyncio.timeout(5):
                    await made.synced()
                task.cancel()
            assert made.store.get("p", "a") is not None

    asked(test, handler)
