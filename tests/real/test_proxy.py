"""The page behind nginx, set up as docs/reference/web.md says."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.real.control_plane import free_ports
from tests.web.test_server import SIGNED_IN, TOKEN, CookieDoor, site
from unisono.apiserver.access.tls import fresh_certificate
from unisono.net.allowed_hosts import Hosts
from unisono.runtime.clock import seconds_now
from unisono.web.server import serving

pytestmark = [pytest.mark.real, pytest.mark.slow]

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "web.md"
_NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
_NAME = "gpu.example"
# A process of its own in the foreground, with nothing of the machine's.
_AROUND = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{server}
}}
"""


def _recipe() -> str:
    found = re.search(r"```nginx\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@asynccontextmanager
async def _proxied(folder: Path) -> AsyncIterator[tuple[int, ssl.SSLContext]]:
    """Serve the page, put nginx before it, and yield its port and how to trust it."""
    assert _NGINX is not None
    made, _ = site(CookieDoor(), Hosts("0.0.0.0", [_NAME]))
    fresh = fresh_certificate(now=seconds_now(), hosts=[_NAME])
    (folder / "tls.crt").write_bytes(fresh.certificate)
    (folder / "tls.key").write_bytes(fresh.key)
    trusting = ssl.create_default_context(cadata=fresh.authority.decode())
    (port,) = free_ports(1)
    async with serving(made, "127.0.0.1", 0) as address:
        server = (
            _recipe()
            .replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
            .replace("/etc/nginx/", f"{folder}/")
            .replace("http://127.0.0.1:8081", address.rstrip("/"))
        )
        (folder / "nginx.conf").write_text(_AROUND.format(folder=folder, server=server))
        command = [_NGINX, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        nginx = subprocess.Popen([*command, "-p", str(folder)])
        try:
            yield port, trusting
        finally:
            nginx.terminate()
            nginx.wait(10)


async def _connected(
    port: int, trusting: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            return await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting, server_hostname=_NAME
            )
        except ConnectionError:
            await asyncio.sleep(0.1)


@asynccontextmanager
async def _asked(
    port: int, trusting: ssl.SSLContext, request: str
) -> AsyncIterator[asyncio.StreamReader]:
    """Ask, as soon as nginx listens; yield what the answer is read from."""
    reader, writer = await _connected(port, trusting)
    writer.write(request.encode())
    yield reader
    writer.transport.abort()


async def _answer(port: int, trusting: ssl.SSLContext, request: str) -> str:
    async with _asked(port, trusting, request) as reader:
        return (await reader.read()).decode()


@pytest.mark.skipif(_NGINX is None, reason="there is no nginx here (Debian: nginx-light)")
def test_the_recipe_signs_people_in_and_passes_lines_on_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), _proxied(tmp_path) as (port, trusting):
            host = f"Host: {_NAME}:{port}"
            origin = f"Origin: https://{_NAME}:{port}"
            end = "Connection: close\r\n\r\n"
            signing = f"POST /session HTTP/1.1\r\n{host}\r\n{origin}\r\n{SIGNED_IN}\r\n{end}"
            answer = await _answer(port, trusting, signing)
            assert answer.startswith("HTTP/1.1 200 "), answer
            assert f"={TOKEN}; Path=/; HttpOnly; SameSite=Strict; Secure\r\n" in answer
            cookie = f"Cookie: unisono-token={TOKEN}"
            looking = f"GET /live?page=overview HTTP/1.1\r\n{host}\r\n{cookie}\r\n{end}"
            async with _asked(port, trusting, looking) as reader:
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ")
                # The answer goes on for as long as a reader is connected; its first line is here
                # already.
                while not (line := (await reader.readline()).strip()).startswith(b"{"):
                    pass
                assert "head" in json.loads(line)

    asyncio.run(main())


@pytest.mark.skipif(_NGINX is None, reason="there is no nginx here (Debian: nginx-light)")
def test_other_sites_cannot_sign_users_in_or_rebind_their_name(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), _proxied(tmp_path) as (port, trusting):
            end = f"{SIGNED_IN}\r\nConnection: close\r\n\r\n"
            for host, origin in (
                (f"{_NAME}:{port}", "https://evil.example"),
                ("evil.example", "https://evil.example"),
            ):
                request = f"POST /session HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n{end}"
                answer = await _answer(port, trusting, request)
                assert answer.startswith("HTTP/1.1 403 "), answer
                assert "Set-Cookie" not in answer

    asyncio.run(main())
