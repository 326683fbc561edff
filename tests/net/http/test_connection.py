"""HTTP as clients speak it, well or badly: order, limits, ends of streams."""

from __future__ import annotations

import asyncio
import random
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.errors import ApiError
from unisono.apiserver.http_entry import Admit, HttpEntry
from unisono.apiserver.request import User
from unisono.apiserver.rest.pod_logs import LogFiles
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.net.http.connection import Connection
from unisono.net.http.messages import MAX_BODY_BYTES, MAX_HEAD_BYTES
from unisono.net.http.server import serving
from unisono.net.listener import Connections, listen

ADMIN = User(name="admin", groups=("system:masters",))
MAPS = "/api/v1/namespaces/default/configmaps"
SECONDS = 10


@dataclass
class Cluster:
    """An API on a socket, without TLS."""

    api: Api
    port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)

    async def make(self, name: str, size: int = 0) -> None:
        reader, writer = await self.connect()
        writer.write(post(name, size))
        assert (await answer(reader))[0] == 201
        writer.close()


@asynccontextmanager
async def cluster(folder: Path, most: int = 100) -> AsyncIterator[Cluster]:
    store = Store(Database(":memory:"))
    random_source = random.Random(1)
    try:
        outside = Environment(
            clock=lambda: 1_767_258_000.0,
            new_uid=lambda: str(uuid.UUID(int=random_source.getrandbits(128), version=4)),
            random_source=random_source,
            logs=LogFiles(folder),
        )
        api = Api(store, outside)
        await bootstrap(api)
        sock = listen("127.0.0.1", 0)
        counted = Connections(most)
        async with serving(HttpEntry(api, lambda *_: ADMIN), sock, None, counted=counted):
            yield Cluster(api, sock.getsockname()[1])
    finally:
        store.close()


def told(story: Callable[[Cluster], Awaitable[None]], folder: Path) -> None:
    """Run a story against a cluster; it must not hang."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS), cluster(folder) as there:
            await story(there)

    asyncio.run(run())


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def post(name: str, size: int = 0) -> bytes:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    if size:
        made["data"] = {"a": "x" * size}
    return request("POST", MAPS, "Content-Type: application/json", body=orjson.dumps(made))


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:-2])
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(head[0].split()[1]), headers, body


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_requests_sent_together_are_answered_in_their_order(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        reader, writer = await there.connect()
        writer.write(post("a") + request("GET", f"{MAPS}/a") + request("GET", "/version"))
        writer.write(post("b") + request("GET", f"{MAPS}/c"))
        answers = [await answer(reader) for _ in range(5)]
        assert [code for code, _, _ in answers] == [201, 200, 200, 201, 404]
        assert answers[1][2] == answers[0][2]
        writer.close()

    told(story, tmp_path)


def test_a_body_in_chunks_after_a_continue(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        reader, writer = await there.connect()
        extra = ("Expect: 100-continue", "Transfer-Encoding: chunked")
        writer.write(request("POST", MAPS, "Content-Type: application/json", *extra))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        body = post("a").partition(b"\r\n\r\n")[2]
        for part in (body[:7], body[7:]):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await asyncio.sleep(0.01)
        writer.write(b"0\r\n\r\n")
        assert (await answer(reader))[0] == 201
        writer.close()

    told(story, tmp_path)


def test_only_the_head_of_an_answer_to_head(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        reader, writer = await there.connect()
        writer.write(request("HEAD", "/api/v1/pods") + request("GET", "/version"))
        assert b"405" in await reader.readuntil(b"\r\n\r\n")
        assert (await answer(reader))[0] == 200
        writer.close()

    told(story, tmp_path)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"this is not HTTP\r\n\r\n", 400),
        (request("GET", "/api/v1/pods", "X: " + "y" * MAX_HEAD_BYTES), 431),
        (b"GET /" + b"a" * (6 * MAX_HEAD_BYTES), 431),
        (request("POST", MAPS, body=b"x" * (MAX_BODY_BYTES + 1)), 413),
        (request("GET", "/version", "Connection: close"), 200),
        (request("GET", "/version", "Connection: Upgrade", "Upgrade: websocket"), 200),
        (b"GET /version HTTP/1.0\r\n\r\n", 200),
    ],
    ids=("no HTTP", "long head", "long address", "long body", "close", "upgrade", "HTTP/1.0"),
)
def test_what_cannot_go_on_is_answered_and_closed(sent: bytes, code: int, tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        reader, writer = await there.connect()
        writer.write(sent)
        found, headers, _ = await answer(reader)
        assert (found, headers["connection"]) == (code, "close")
        assert await reader.read() == b""
        writer.close()

    told(story, tmp_path)


def test_a_body_without_end_is_cut_off(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        _, writer = await there.connect()
        writer.write(request("POST", MAPS, f"Content-Length: {100 * MAX_BODY_BYTES}"))

        async def send() -> None:
            for _ in range(100):
                writer.write(b"x" * MAX_BODY_BYTES)
                await writer.drain()

        with pytest.raises(ConnectionError):
            await send()

    told(story, tmp_path)


def test_a_watch_ends_with_its_client(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        reader, writer = await there.connect()
        writer.write(request("GET", f"{MAPS}?watch=true&fieldSelector=metadata.name%3Da"))
        await reader.readuntil(b"\r\n\r\n")
        await there.make("a")
        assert b'"ADDED"' in await reader.readuntil(b"}\n\r\n")
        assert there.api.watches.count == 1
        writer.close()
        await until(lambda: there.api.watches.count == 0)

    told(story, tmp_path)


def test_an_old_client_watches_without_chunks(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        reader, writer = await there.connect()
        path = f"{MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Da"
        await there.make("a")
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        head, _, lines = (await reader.read()).partition(b"\r\n\r\n")
        assert b"chunked" not in head
        assert [orjson.loads(line)["type"] for line in lines.splitlines()] == ["ADDED"]
        writer.close()

    told(story, tmp_path)


def test_a_client_that_does_not_read_delays_no_other(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        for number in range(12):
            await there.make(f"big-{number}", 900_000)
        deaf = socket.create_connection(("127.0.0.1", there.port))
        deaf.sendall(request("GET", MAPS) + request("GET", "/version"))
        reader, writer = await there.connect()
        writer.write(request("GET", f"{MAPS}?watch=true"))
        await there.make("a")
        writer.write(request("GET", "/version"))  # waits behind the watch
        await reader.readuntil(b'"name":"a"')
        deaf.close()
        writer.close()

    told(story, tmp_path)


def test_a_long_answer_arrives_whole(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        for number in range(5):
            await there.make(f"big-{number}", 900_000)
        reader, writer = await there.connect()
        writer.write(request("GET", MAPS))
        _, headers, body = await answer(reader)
        assert len(body) == int(headers["content-length"]) > 4_500_000
        assert len(orjson.loads(body)["items"]) == 5
        writer.close()

    told(story, tmp_path)


@dataclass
class Pair:
    """A connection and the other end of its socket."""

    connection: Connection
    theirs: socket.socket
    open: set[Connection]

    async def sent(self, data: bytes) -> None:
        """Send something and let it arrive."""
        self.theirs.sendall(data)
        for _ in range(20):
            await asyncio.sleep(0)

    async def ends_after(self, seconds: float, *, not_after: float) -> None:
        """Check that it is hung up on after a while, and not before."""
        now = asyncio.get_running_loop().time()
        self.connection.check(now + not_after)
        await asyncio.sleep(0)
        assert self.open
        self.connection.check(now + seconds)
        await until(lambda: not self.open)
        self.theirs.close()


async def pair(there: Cluster, admit: Admit = lambda *_: ADMIN) -> Pair:
    connections: set[Connection] = set()
    front = HttpEntry(there.api, admit)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    accepted = Connections(10).take(ours.close)
    assert accepted is not None
    _, connection = await asyncio.get_running_loop().connect_accepted_socket(
        lambda: Connection(front, connections, accepted), ours
    )
    return Pair(connection, theirs, connections)


def _anonymous(*_: object) -> User:
    raise ApiError(401, "Unauthorized", "Unauthorized")


WHOLE = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("admit", "sent", "not_after", "seconds"),
    [
        (lambda *_: ADMIN, b"", 5, 20),
        (lambda *_: ADMIN, b"GET /version HTTP/1.1\r\nHo", 5, 20),
        (lambda *_: ADMIN, post("a", 100)[:-50], 50, 70),
        (lambda *_: ADMIN, WHOLE, 100, 130),
        (_anonymous, WHOLE, 5, 20),
    ],
    ids=["silent", "half a head", "half a body", "idle", "idle and unknown"],
)
def test_a_client_that_takes_too_long_to_ask_is_cut_off(
    admit: Admit, sent: bytes, not_after: float, seconds: float, tmp_path: Path
) -> None:
    async def story(there: Cluster) -> None:
        end = await pair(there, admit)
        await end.sent(sent)
        await end.ends_after(seconds, not_after=not_after)

    told(story, tmp_path)


def test_a_client_that_does_not_read_an_answer_is_cut_off(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        for number in range(5):
            await there.make(f"big-{number}", 900_000)
        end = await pair(there)
        await end.sent(request("GET", MAPS))
        await end.ends_after(70, not_after=50)

    told(story, tmp_path)


def test_idle_connections_go_before_watches(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(SECONDS), cluster(tmp_path, most=4) as there:
            watching, watcher = await there.connect()
            watcher.write(request("GET", f"{MAPS}?watch=true&resourceVersion=0"))
            await watching.readuntil(b"\r\n\r\n")
            known, user = await there.connect()
            user.write(request("GET", "/version"))
            assert (await answer(known))[0] == 200
            idle = [await there.connect() for _ in range(20)]
            await there.make("seen")
            assert b'"seen"' in await watching.readuntil(b"}\n")
            # Of those that are idle, strangers go first.
            user.write(request("GET", "/version"))
            assert (await answer(known))[0] == 200
            for _, writer in (*idle, (known, user), (watching, watcher)):
                writer.close()

    asyncio.run(run())


def test_a_watch_that_sleeps_stays(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        end = await pair(there)
        await end.sent(request("GET", f"{MAPS}?watch=true"))
        end.connection.check(asyncio.get_running_loop().time() + 100_000)
        await asyncio.sleep(0)
        assert end.open
        end.theirs.close()
        await until(lambda: not end.open)

    told(story, tmp_path)
