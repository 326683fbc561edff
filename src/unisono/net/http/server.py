"""An application served on sockets for as long as a block lasts; then open requests are finished.

One process has several listeners, as many as TLS and exposure need; their connections are counted
together (`listener`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from unisono.net.http.connection import Connection
from unisono.net.http.messages import Application
from unisono.net.listener import OF_PROCESS, Accepted, Connections, listening

# Streams are told to end; a client that does not read the end is cut off after this.
_LAST_WORDS_SECONDS = 2.0
_SWEEP_SECONDS = 5.0  # between two looks for clients that take too long


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of our certificate and its key."""

    chain: Path
    key: Path


@contextlib.asynccontextmanager
async def serving(
    application: Application,
    sock: socket.socket,
    tls: Certificate | ssl.SSLContext | None = None,
    beside: socket.socket | None = None,
    counted: Connections | None = None,
) -> AsyncIterator[None]:
    """Serve on a socket until the block ends; then finish open requests and close.

    `beside` is another one, for this machine (`listener.local_socket`); `counted` bounds how many
    connections there are, by default those of the process.
    """
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()
    context = _context(tls) if isinstance(tls, Certificate) else tls

    def serve(accepted: Accepted) -> Connection:
        return Connection(application, connections, accepted)

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
                application.stop()
    finally:
        sweeping.cancel()
        await _hang_up(connections)


def _context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


async def _hang_up(connections: set[Connection]) -> None:
    """Hang up on idle connections, and on those that do not end in time.

    A polite TLS goodbye waits for an answer, and a client that keeps a connection for later does
    not read one. Requests that are under way are finished first.
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
