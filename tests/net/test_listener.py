"""Connections beyond what the process can have: which get in, and which end."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from unisono.kinds.overriding import override
from unisono.net import listener
from unisono.net.listener import (
    FEWEST_CONNECTIONS,
    MOST_CONNECTIONS,
    MOST_ENDING,
    RESERVED_DESCRIPTORS,
    Accepted,
    Connections,
    bound,
    listening,
    most_connections,
)

SECONDS = 10
Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Echo(asyncio.Protocol):
    """Answers what it gets with the same; from then on it is at work."""

    def __init__(self, accepted: Accepted) -> None:
        self._accepted = accepted
        self._transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._accepted.work()
        assert self._transport is not None
        self._transport.write(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._accepted.leave()


@contextlib.asynccontextmanager
async def served(most: int, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve `echo` on a port, to so many."""
    sock = bound("127.0.0.1", 0)
    async with listening(sock, Echo, connections=Connections(most), context=context):
        yield sock.getsockname()[1]


def told(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story, which must not hang; then close whatever it connected."""

    async def run() -> None:
        try:
            async with asyncio.timeout(SECONDS):
                await story()
        finally:
            while _writers:
                _writers.pop().close()
            for _ in range(20):
                await asyncio.sleep(0)

    asyncio.run(run())


_writers: list[Writer] = []


async def connect(port: int) -> tuple[Reader, Writer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    _writers.append(writer)
    return reader, writer


async def ask(reader: Reader, writer: Writer) -> bytes:
    writer.write(b"hello\n")
    return await reader.readline()


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (20, FEWEST_CONNECTIONS),
        (64, 64 - RESERVED_DESCRIPTORS),
        (1024, 768),
        (1_048_576, MOST_CONNECTIONS),
        (resource.RLIM_INFINITY, MOST_CONNECTIONS),
    ],
)
def test_descriptors_stay_in_reserve(
    limit: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert most_connections() == most


def test_silent_connections_make_room_for_requests() -> None:
    async def story() -> None:
        async with served(8) as port:
            idle = [await connect(port) for _ in range(40)]
            for _ in range(5):
                assert await ask(*await connect(port)) == b"hello\n"
            # The oldest ended first.
            assert await idle[0][0].read() == b""

    told(story)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "before a handshake"])
def test_connections_that_end_keep_to_the_reserve(
    is_tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is told to end has its descriptor until it is closed, a turn of the loop later."""
    most = 8
    there: list[int] = []
    admit = listener._Listener._admit

    def counting(self: Any, sock: socket.socket) -> None:
        there.append(len(os.listdir("/proc/self/fd")))
        admit(self, sock)

    monkeypatch.setattr(listener._Listener, "_admit", counting)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if is_tls else None

    async def story() -> None:
        async with served(most, context) as port:
            at_first = len(os.listdir("/proc/self/fd"))
            clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
            before = at_first + len(clients)
            while len(there) < len(clients):
                await asyncio.sleep(0)
            for one in clients:
                one.close()
            while len(os.listdir("/proc/self/fd")) > at_first:  # all of them are closed here, too
                await asyncio.sleep(0)
            assert max(there) - before <= most + MOST_ENDING + 1

    told(story)


def test_connections_at_work_stay_and_the_newcomer_hears_why() -> None:
    async def story() -> None:
        async with served(3) as port:
            working = [await connect(port) for _ in range(3)]
            for reader, writer in working:
                assert await ask(reader, writer) == b"hello\n"
            reader, _ = await connect(port)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.endswith(b"too many connections are open; try again\n")
            for reader, writer in working:
                assert await ask(reader, writer) == b"hello\n"
            working[0][1].close()
            await working[0][1].wait_closed()
            while (await ask(*await connect(port))) != b"hello\n":
                await asyncio.sleep(0)

    told(story)


def test_the_oldest_idle_connection_ends_first_and_strangers_before_users() -> None:
    async def story() -> None:
        ended: list[str] = []
        connections = Connections(4)

        def make(name: str) -> Accepted | None:
            return connections.take(lambda: ended.append(name))

        watch, user, another, stranger = (make(name) for name in ("watch", "user", "2", "stranger"))
        assert watch is not None
        assert user is not None
        assert another is not None
        assert stranger is not None
        watch.rest(is_known=True)
        watch.work()
        user.rest(is_known=True)
        another.rest(is_known=True)
        for name in ("a", "b"):
            assert make(name) is not None
        assert ended == ["stranger", "a"]
        newest = make("c")
        assert newest is not None
        newest.work()
        assert make("d") is not None
        assert ended == ["stranger", "a", "b", "user"]

    told(story)


def test_running_out_of_descriptors_ends_neither_the_listener_nor_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "_PAUSE_SECONDS", 0.001)
    failures = [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOBUFS, errno.EPERM]

    class Failing:
        """A listening socket whose first calls fail."""

        def __init__(self, sock: socket.socket) -> None:
            self._sock = sock

        def accept(self) -> Any:
            if failures:
                raise OSError(failures.pop(0), "no")
            return self._sock.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._sock, name)

    async def story() -> None:
        sock: Any = Failing(bound("127.0.0.1", 0))
        async with listening(sock, Echo, connections=Connections(4)):
            assert await ask(*await connect(sock.getsockname()[1])) == b"hello\n"
        assert not failures

    told(story)


def test_an_unfinished_handshake_makes_room() -> None:
    async def story() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        async with served(4, context) as port:
            # None sends a byte of TLS; each of them holds a place until others want it.
            silent = [await connect(port) for _ in range(12)]
            assert await silent[0][0].read() == b""
            assert await silent[7][0].read() == b""

    told(story)
