"""A client that costs next to nothing, so that the server is measured and not the client."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

_LONGEST = 2**26


class PlainClient:
    """One connection; one request after the other."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> None:
        """Take an open connection and what stands in every request."""
        self._reader = reader
        self._writer = writer
        self._head = head

    @staticmethod
    async def connect(url: str, token: str) -> PlainClient:
        """Connect to a server of this machine, whose certificate is not checked."""
        host, port = urlsplit(url).hostname, urlsplit(url).port
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=_LONGEST)
        head = f"Host: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json"
        return PlainClient(reader, writer, head.encode())

    def send(self, method: str, path: str, body: bytes = b"", accept: str = "") -> None:
        """Send a request."""
        first = f"{method} {path} HTTP/1.1\r\nAccept: {accept or 'application/json'}\r\n".encode()
        length = b"\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._writer.write(b"".join((first, self._head, length, body)))

    async def ask(
        self, method: str, path: str, body: bytes = b"", accept: str = ""
    ) -> tuple[int, bytes]:
        """Send a request and return code and body of the answer."""
        self.send(method, path, body, accept)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head[9:12]), await self._reader.readexactly(length)

    async def some(self) -> bytes:
        """Return what arrives next."""
        return await self._reader.read(_LONGEST)

    def close(self) -> None:
        """Hang up at once: a farewell over TLS would outlive the loop that waits for its answer."""
        self._writer.transport.abort()
