"""`exec` over a WebSocket: a client on a socket, a command of this machine behind it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

import orjson
import pytest

from tests.net.http.test_connection import Cluster, answer, request, told
from tests.net.http.test_websocket import masked
from unisono.apiserver.objects import Json
from unisono.net.http.websocket import BINARY, CLOSE

PODS = "/api/v1/namespaces/default/pods"


class Local:
    """A command that runs here, for the tests' containers."""

    def __init__(self, command: Sequence[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.ends = (process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno())
        for end in self.ends:
            os.set_blocking(end, False)
        self.size = (0, 0)

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait)

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        self.size = columns, rows

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class Containers:
    """Starts what is asked for, and remembers it."""

    def __init__(self) -> None:
        self.started: list[Local] = []

    async def __call__(
        self, pod: Json, container: str, command: Sequence[str], *, tty: bool
    ) -> Local:
        if command[0] == "gone":
            raise ConnectionRefusedError("nothing listens")
        self.started.append(Local(command))
        return self.started[-1]


async def make_pod(there: Cluster) -> None:
    containers = [{"name": "main", "image": "busybox"}]
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    body = orjson.dumps({**made, "spec": {"containers": containers}})
    reader, writer = await there.connect()
    writer.write(request("POST", PODS, "Content-Type: application/json", body=body))
    assert (await answer(reader))[0] == 201
    writer.close()


def asking(*command: str, protocol: str = "v5.channel.k8s.io", **flags: str) -> bytes:
    """Return the request of a kubectl."""
    query = urlencode([*(("command", word) for word in command), *flags.items()])
    return request(
        "GET",
        f"{PODS}/p/exec?{query}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: {protocol}",
    )


async def received(reader: asyncio.StreamReader) -> dict[int, bytes]:
    """Return everything up to the goodbye, by channel."""
    found: dict[int, bytes] = {}
    while True:
        head = await reader.readexactly(2)
        size = head[1]
        if size >= 126:
            size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
        content = await reader.readexactly(size)
        if head[0] & 0x0F == CLOSE:
            return found
        found[content[0]] = found.get(content[0], b"") + content[1:]


def test_output_errors_and_exit_code_come_back(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        there.api.start_exec = Containers()
        await make_pod(there)
        reader, writer = await there.connect()
        writer.write(asking("sh", "-c", "echo out; echo err >&2; exit 3", stdout="true"))
        code, headers, _ = await answer(reader)
        assert (code, headers["sec-websocket-protocol"]) == (101, "v5.channel.k8s.io")
        assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        found = await received(reader)
        assert (found[1], found[2]) == (b"out\n", b"err\n")
        ending = orjson.loads(found[3])
        assert ending["reason"] == "NonZeroExitCode"
        assert ending["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
        assert await reader.read() == b""  # and the connection is over
        writer.close()

    told(story, tmp_path)


def test_input_arrives_up_to_its_end(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        containers = there.api.start_exec = Containers()
        await make_pod(there)
        reader, writer = await there.connect()
        writer.write(asking("cat", stdin="true", stdout="true"))
        assert (await answer(reader))[0] == 101
        writer.write(masked(BINARY, b'\x04{"Width":80,"Height":24}'))
        text = b"line\n" * 100_000  # more than a pipe holds
        for at in range(0, len(text), 30_000):
            writer.write(masked(BINARY, b"\x00" + text[at : at + 30_000]))
        writer.write(masked(BINARY, b"\xff\x00"))
        found = await received(reader)
        assert found[1] == text
        assert orjson.loads(found[3])["status"] == "Success"
        assert containers.started[0].size == (80, 24)
        writer.close()

    told(story, tmp_path)


def test_a_command_without_input_is_not_left_waiting_for_some(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        there.api.start_exec = Containers()
        await make_pod(there)
        reader, writer = await there.connect()
        writer.write(asking("cat", stdout="true", protocol="v4.channel.k8s.io"))
        assert (await answer(reader))[0] == 101
        assert orjson.loads((await received(reader))[3])["status"] == "Success"
        writer.close()

    told(story, tmp_path)


@pytest.mark.parametrize("goodbye", [masked(CLOSE, b"\x03\xe8"), b"no websocket at all", None])
def test_a_client_that_leaves_takes_its_command_along(
    goodbye: bytes | None, tmp_path: Path
) -> None:
    async def story(there: Cluster) -> None:
        containers = there.api.start_exec = Containers()
        await make_pod(there)
        reader, writer = await there.connect()
        writer.write(asking("sleep", "1000", stdin="true"))
        assert (await answer(reader))[0] == 101
        if goodbye is None:
            writer.transport.abort()
        else:
            writer.write(goodbye)
        while containers.started[0].process.poll() is None:
            await asyncio.sleep(0.001)
        writer.close()

    told(story, tmp_path)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (asking("gone"), "container main of pod p does not run here: nothing listens"),
        (asking("ls", container="other"), "container other is not valid for pod p"),
        (asking(), "at least 1 command"),
        (asking("ls", protocol="channel.k8s.io"), "use kubectl 1.30 or newer"),
        (request("POST", f"{PODS}/p/exec?command=ls", "Upgrade: SPDY/3.1"), "kubectl 1.30"),
        (request("GET", f"{PODS}/p/portforward?ports=80"), "port-forward is not served"),
        (request("POST", f"{PODS}/p/attach"), "`kubectl logs -f` follows"),
    ],
)
def test_a_refused_exec_says_why(sent: bytes, words: str, tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        there.api.start_exec = Containers()
        await make_pod(there)
        reader, writer = await there.connect()
        writer.write(sent)
        code, _, body = await answer(reader)
        assert code == 400
        assert words in orjson.loads(body)["message"]
        writer.close()

    told(story, tmp_path)


def test_a_simulated_pod_has_nothing_to_enter(tmp_path: Path) -> None:
    async def story(there: Cluster) -> None:
        await make_pod(there)
        reader, writer = await there.connect()
        writer.write(asking("ls"))
        code, _, body = await answer(reader)
        assert code == 400
        assert "pod p is simulated" in orjson.loads(body)["message"]
        writer.close()

    told(story, tmp_path)
