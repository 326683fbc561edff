"""The API over HTTPS on a socket, for as long as a block lasts."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from unisono.apiserver.asgi import Front
from unisono.kinds.overriding import override

# Watches are told to end; whoever does not listen is cut off after this.
_LAST_WORDS_SECONDS = 2


class PortTaken(Exception):
    """Somebody else listens there."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files that prove to clients who we are."""

    chain: Path
    key: Path


class _Server(uvicorn.Server):
    """A server whose signals are somebody else's business."""

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs us."""
        yield

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Hang up on who is idle, and on who does not end in time.

        A polite TLS goodbye waits for an answer, and whoever keeps a connection open for later does
        not listen. Requests that are under way are finished first.
        """
        self._hang_up(only_idle=True)
        await super().shutdown(sockets)
        self._hang_up(only_idle=False)
        await asyncio.sleep(0)  # transports that were cut are told so in the next turn

    def _hang_up(self, *, only_idle: bool) -> None:
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            is_idle = cycle is None or cycle.response_complete
            if is_idle or not only_idle:
                connection.transport.abort()


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio would not switch Nagle's delay off for it.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise PortTaken(f"{host}:{port}: {error.strerror}") from error
    sock.setblocking(False)  # noqa: FBT003 (the only way to say it)
    return sock


@contextlib.asynccontextmanager
async def serving(
    front: Front, sock: socket.socket, certificate: Certificate | None
) -> AsyncIterator[None]:
    """Serve on a socket until the block ends; then finish open requests and close."""
    config = uvicorn.Config(
        front,
        lifespan="off",
        http="httptools",
        ws="none",
        loop="none",
        interface="asgi3",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # nobody stands between, and what a client says of itself is not asked
        h11_max_incomplete_event_size=64 * 1024,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=_LAST_WORDS_SECONDS,
        ssl_certfile=certificate.chain if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as tasks:
        serve = tasks.create_task(server.serve(sockets=[sock]))
        try:
            while not server.started and not serve.done():
                await asyncio.sleep(0.001)
            if not serve.done():  # else the group raises what went wrong
                yield
        finally:
            front.api.watches.stop()
            server.should_exit = True
