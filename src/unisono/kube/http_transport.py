"""The transport to a real API server: HTTP/1.1 over TLS, kept alive, compressed where it offers.

aiohttp was chosen by measurement (kube-api.md, 4.1). This module is the only one that imports it.
When a kept connection turns out to have been closed before anything was answered, aiohttp itself
sends a GET, PUT or DELETE once more on a new one; that is the only repetition besides a 401's.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

import unisono
from unisono.kube.credentials import Credentials, Proof
from unisono.kube.errors import BadConfig, Unreachable
from unisono.kube.kubeconfig import Access
from unisono.kube.tls import Contexts
from unisono.kube.transport import NOTHING, Answer, Stream

# The first word is also the name under which the API records what we write.
USER_AGENT = f"unisono/{unisono.__version__}"
TIMEOUT_S = 60.0
CONNECT_S = 10.0
# A dead peer is noticed after 30 s without a sign and a few probes, also under an idle watch.
TCP_KEEP_ALIVE_S = 30
TCP_PROBE_S = 10
TCP_PROBES = 3
# Idle connections are closed by servers after a while; we are first, so none is used just then.
IDLE_S = 75.0
# Bytes that may wait to be read: a list comes in fewer, larger pieces.
READ_BUFFER = 256 * 1024

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class HttpTransport:
    """One API over HTTP, as one user; use it as a context."""

    def __init__(self, access: Access, credentials: Credentials) -> None:
        """Prepare; nothing is opened before the context is entered."""
        if access.proxy.startswith("socks"):
            raise BadConfig(f"proxy-url {access.proxy}: only http:// and https:// proxies work")
        self._server = access.server
        self._proxy = access.proxy or None
        self._server_name = access.server_name or None
        self._credentials = credentials
        self._contexts = Contexts(skip_verify=access.skip_verify)
        self._is_tls = access.server.startswith("https://")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> HttpTransport:
        """Open a pool of connections; how many are used at once is for `lanes` to say."""
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=IDLE_S, socket_factory=_keep_alive_socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=True,
            read_bufsize=READ_BUFFER,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close all connections."""
        assert self._session is not None, "the transport was never opened"
        await self._session.close()
        await asyncio.sleep(0)  # connections that were cut are told so in the next turn of the loop
        self._session = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> Answer:
        """Ask and return the whole answer."""
        limit = aiohttp.ClientTimeout(total=timeout or TIMEOUT_S, sock_connect=CONNECT_S)
        with _errors_of(method, path):
            async with await self._send(method, path, query, headers, body, limit) as response:
                content = await response.read()
        return Answer(
            response.status, _lower(response.headers), content, _warnings(response.headers)
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> AsyncIterator[Stream]:
        """Ask and hand the answer out as it comes."""
        # No limit for the whole and none between bytes: the reader has its own patience.
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        with _errors_of(method, path):
            async with asyncio.timeout(timeout or TIMEOUT_S):
                response = await self._send(method, path, query, headers, body, limit)
        chunks = _chunks(response, path)
        try:
            yield Stream(response.status, _lower(response.headers), chunks)
        finally:
            await chunks.aclose()
            _hang_up(response)

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        limit: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send a request; after a 401 once more, if there are other credentials."""
        address = f"{self._server}{path}?{urlencode(query)}" if query else f"{self._server}{path}"
        url = URL(address, encoded=True)
        proof = await self._credentials.proof()
        response = await self._send_as(proof, method, url, headers, body, limit)
        if response.status == 401:
            other = await self._credentials.renewed(proof)
            if other is not None:
                await response.read()  # so that the connection can be used again
                return await self._send_as(other, method, url, headers, body, limit)
        return response

    async def _send_as(
        self,
        proof: Proof,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        body: bytes,
        limit: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        assert self._session is not None, "use the transport as a context"
        sent = CIMultiDict(headers)
        sent["User-Agent"] = USER_AGENT
        sent["Accept-Encoding"] = "gzip"
        sent.setdefault("Accept", "application/json")
        for name, value in proof.headers:  # a name may come several times: Impersonate-Group
            sent.add(name, value)
        return await self._session.request(
            method,
            url,
            headers=sent,
            data=body or None,
            timeout=limit,
            allow_redirects=False,
            ssl=self._contexts.context(proof) if self._is_tls else True,
            server_hostname=self._server_name,
            proxy=self._proxy,
        )


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Close a response in the midst of it, and its connection at once.

    A polite TLS goodbye would wait for a server that has more to say, long after we have left.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _chunks(response: aiohttp.ClientResponse, path: str) -> AsyncGenerator[bytes, None]:
    with _errors_of("GET", path):
        async for chunk in response.content.iter_any():
            yield chunk


@contextmanager
def _errors_of(method: str, path: str) -> Iterator[None]:
    """Tell in our words what aiohttp says in its own."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise BadConfig(
            f"the server's certificate is not to be trusted: {error.certificate_error}; "
            "check certificate-authority-data and tls-server-name in the kubeconfig"
        ) from error
    except aiohttp.ClientConnectorError as error:
        reason = f"no connection to {error.host}:{error.port}: {_in_words(error.os_error)}"
        raise Unreachable(f"{method} {path}: {reason}", sent=False) from error
    except (
        aiohttp.ConnectionTimeoutError,
        aiohttp.ClientHttpProxyError,
    ) as error:
        raise Unreachable(f"{method} {path}: no connection: {error}", sent=False) from error
    except aiohttp.InvalidURL as error:
        raise BadConfig(f"server {error} is no address") from error
    except TimeoutError as error:
        raise Unreachable(f"{method} {path}: no answer in time", sent=True) from error
    except (aiohttp.ClientError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise Unreachable(f"{method} {path}: connection lost: {reason}", sent=True) from error


def _in_words(error: OSError) -> str:
    """Say what the system says; asyncio repeats the address in its stead."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _keep_alive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", TCP_KEEP_ALIVE_S),
        ("TCP_KEEPINTVL", TCP_PROBE_S),
        ("TCP_KEEPCNT", TCP_PROBES),
    ):
        if hasattr(socket, option):  # not everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


def _lower(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _warnings(headers: CIMultiDictProxy[str]) -> tuple[str, ...]:
    """Return the texts of `Warning: 299 - "…"` headers."""
    return tuple(
        re.sub(r"\\(.)", r"\1", text)
        for header in headers.getall("Warning", ())
        for text in _WARNING.findall(header)
    )
