"""The API over HTTPS on a socket, for as long as a block lasts; and beside it on a file.

Programs of this machine that live for a moment come in through the file (`door`): whoever may open
it needs no certificate to know whom they talk to, and TLS would take most of their time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from unisono.apiserver.http.connection import Connection
from unisono.apiserver.http_entry import HttpEntry
from unisono.net.listener import OF_PROCESS, Accepted, Connections, bound, listening

# Watches are told to end; whoever does not listen is cut off after this.
_LAST_WORDS_SECONDS = 2.0
_SWEEP_SECONDS = 5.0  # between two looks for clients that take too long


class PortTaken(Exception):
    """Somebody else listens there."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files that prove to clients who we are."""

    chain: Path
    key: Path


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one."""
    try:
        sock = bound(host, port)
    except OSError as error:
        raise PortTaken(f"{host}:{port}: {error.strerror}") from error
    try:
        sock.listen()  # from now on nobody else gets it; whoever serves says how many may wait
    except OSError as error:
        sock.close()
        raise PortTaken(f"{host}:{port}: {error.strerror}") from error
    return sock


def door(path: Path) -> socket.socket | None:
    """Return a socket that listens at a file, for its owner alone; None where none can be.

    Its name may be too long, or the disk of a kind without sockets: then everybody uses the other.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)  # of a process that ended without a word
        sock.bind(str(path))
        path.chmod(0o600)
        sock.listen()
    except OSError:
        sock.close()
        return None
    return sock


@contextlib.asynccontextmanager
async def serving(
    front: HttpEntry,
    sock: socket.socket,
    certificate: Certificate | None,
    beside: socket.socket | None = None,
    counted: Connections | None = None,
) -> AsyncIterator[None]:
    """Serve on a socket until the block ends; then finish open requests and close.

    `beside` is another one, for this machine (`door`); `counted` bounds how many connections there
    are, by default those of the process.
    """
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()
    context = _context(certificate) if certificate else None

    def serve(accepted: Accepted) -> Connection:
        return Connection(front, connections, accepted)

    sweeping = loop.call_later(_SWEEP_SECONDS, lambda: None)

    def sweep() -> None:
        nonlocal sweeping
        for connection in tuple(connections):
            connection.check(loop.time())
        sweeping = loop.call_later(_SWEEP_SECONDS, sweep)

    sweep()
    try:
        async with contextlib.AsyncExitStack() as stack:
            count = counted or OF_PROCESS
            await stack.enter_async_context(
                listening(sock, serve, context=context, connections=count)
            )
            if beside is not None:
                await stack.enter_async_context(listening(beside, serve, connections=count))
            try:
                yield
            finally:
                front.api.watches.stop()
    finally:
        sweeping.cancel()
        await _say_goodbye(connections)


def _context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


async def _say_goodbye(connections: set[Connection]) -> None:
    """Hang up on who is idle, and on who does not end in time.

    A polite TLS goodbye waits for an answer, and whoever keeps a connection open for later does
    not listen. Requests that are under way are finished first.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + _LAST_WORDS_SECONDS
    while connections and loop.time() < end:
        for connection in tuple(connections):
            if connection.is_idle:
                connection.hang_up()
        await asyncio.sleep(0.005)
    for connection in tuple(connections):
        connection.hang_up()
    await asyncio.sleep(0)  # transports that were cut are told so in the next turn
