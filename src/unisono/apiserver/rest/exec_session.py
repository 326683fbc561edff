"""Commands inside containers (`kubectl exec`, `kubectl cp`), over WebSocket.

    kubectl ──[channel][bytes]──▶ Session ──input──▶ the command
            ◀─────────────────────────────output,errors─

The first byte of a message is its channel: 0 input, 1 output, 2 errors, 3 how it ended (a Status),
4 the size of the terminal; 255 closes another channel, and only version 5 of the protocol has it.
The pod runner starts the command (`ExecStarter`); this module connects it. kubectl speaks this from
1.30 on. The older SPDY is not served.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import orjson

from unisono.apiserver.errors import ApiError, bad_request
from unisono.apiserver.objects import Json
from unisono.apiserver.request import Request
from unisono.apiserver.rest.pod_logs import container_of
from unisono.net.http.messages import Response
from unisono.net.http.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    Broken,
    Messages,
    accepted,
    frame,
    goodbye,
)

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_INPUT, _OUTPUT, _ERRORS, _ENDING, _SIZE, _CLOSES = 0, 1, 2, 3, 4, 255
_PIECE_BYTES = 32 * 1024
# What a client may send ahead of a command that does not read.
_MOST_AHEAD_BYTES = 1024 * 1024
# A command that is over may have left child processes that hold its output open.
_DRAIN_SECONDS = 2.0

Send = Callable[[bytes], Awaitable[None]]


class ExecProcess(Protocol):
    """A command that runs in a container; its ends are descriptors, and closed by `close`."""

    @property
    def ends(self) -> tuple[int, int, int | None]:
        """Where its input goes, its output comes from, and its errors; None with a terminal."""

    async def ended(self) -> int:
        """Wait for its exit code."""

    def close_input(self) -> None:
        """Let it read the end of its input."""

    def resize(self, columns: int, rows: int) -> None:
        """Say how large the terminal is."""

    def close(self) -> None:
        """Let go of it; one that still runs is ended."""


class ExecStarter(Protocol):
    """Starts a command in a container of a pod; raises OSError if there is no way in."""

    async def __call__(
        self, pod: Json, container: str, command: Sequence[str], *, tty: bool
    ) -> ExecProcess:
        """Start it."""


async def enter(request: Request, pod: Json, begin: ExecStarter | None) -> Response:
    """Answer a request for `exec` by a session; raises ApiError where there is none to be had."""
    name = pod["metadata"]["name"]
    container = container_of(request, pod)
    if begin is None:
        raise bad_request(
            f"pod {name} is simulated: there is no process to enter; `unisono up --pods process` "
            "runs commands"
        )
    if not request.command:
        raise no_command()
    offered = request.headers.get("sec-websocket-protocol", "").replace(" ", "").split(",")
    protocol = next((one for one in _PROTOCOLS if one in offered), None)
    if request.headers.get("upgrade", "").lower() != "websocket" or protocol is None:
        raise bad_request("exec is done over WebSocket; use kubectl 1.30 or newer")
    try:
        inside = await begin(pod, container, request.command, tty=request.flag("tty"))
    except OSError as error:
        raise ApiError(
            400, "BadRequest", f"container {container} of pod {name} does not run here: {error}"
        ) from error
    if not request.flag("stdin"):
        inside.close_input()  # none will be sent
    headers = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": accepted(request.headers.get("sec-websocket-key", "")),
        "sec-websocket-protocol": protocol,
    }
    return Response(code=101, headers=headers, tunnel=Session(inside))


def no_command() -> ApiError:
    """Say that there is nothing to run."""
    return bad_request("you must specify at least 1 command for the container")


def instead_of(part: str) -> None:
    """Refuse what is not there of a pod, and say what is; other names are not ours to refuse."""
    words = {
        "attach": "attach is not served; `kubectl logs -f` follows the output of a container, and "
        "`kubectl exec` runs a command in it",
        "portforward": "port-forward is not served; with `unisono up --pods process` a pod listens "
        "on this machine at its own address, which `kubectl get pod -o wide` shows",
        "ephemeralcontainers": "containers cannot be added to a pod that runs; `kubectl exec` runs "
        "a command in one that it has",
    }
    if part in words:
        raise bad_request(words[part])


class Session:
    """One command and one client."""

    def __init__(self, inside: ExecProcess) -> None:
        """Take a command that runs."""
        self._inside = inside
        self._messages = Messages()
        self._ahead: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._ahead_bytes = 0
        self._over = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether the client should wait with more."""
        return self._ahead_bytes > _MOST_AHEAD_BYTES

    def feed(self, data: bytes) -> list[bytes]:
        """Take what the client sent; return what it is to be told at once."""
        replies: list[bytes] = []
        try:
            for opcode, content in self._messages.feed(data):
                if opcode == PING:
                    replies.append(frame(PONG, content))
                elif opcode == CLOSE:
                    self._over.set()
                elif opcode == BINARY and content:
                    self._take(content[0], content[1:])
        except Broken as error:
            replies.append(goodbye(error.code))
            self._over.set()
        return replies

    def _take(self, channel: int, content: bytes) -> None:
        if channel == _INPUT and content:
            self._ahead_bytes += len(content)
            self._ahead.put_nowait(content)
        elif channel == _CLOSES and content[:1] == bytes([_INPUT]):
            self._ahead.put_nowait(None)
        elif channel == _SIZE:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                size = orjson.loads(content)
                self._inside.resize(int(size["Width"]), int(size["Height"]))

    async def run(self, send: Send, has_room: Callable[[], None]) -> None:
        """Carry bytes until the command or the client is gone."""
        _, output, errors = self._inside.ends
        feeding = asyncio.ensure_future(self._feed_input(has_room))
        gone = asyncio.ensure_future(self._over.wait())
        ended = asyncio.ensure_future(self._inside.ended())
        readers = [asyncio.ensure_future(_copy(output, _OUTPUT, send))]
        if errors is not None:
            readers.append(asyncio.ensure_future(_copy(errors, _ERRORS, send)))
        try:
            await asyncio.wait((ended, gone), return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
                await send(_message(_ENDING, orjson.dumps(_status(ended.result()))))
            await send(goodbye())
        finally:
            for task in (feeding, gone, ended, *readers):
                task.cancel()
            await asyncio.gather(feeding, gone, ended, *readers, return_exceptions=True)
            self._inside.close()

    async def _feed_input(self, has_room: Callable[[], None]) -> None:
        where = self._inside.ends[0]
        while (content := await self._ahead.get()) is not None:
            rest = memoryview(content)
            while rest:
                await _ready(where, is_for_writing=True)
                try:
                    rest = rest[os.write(where, rest) :]
                except BlockingIOError:
                    continue
                except OSError:
                    break  # it does not read any more
            self._ahead_bytes -= len(content)
            if not self.is_full:
                has_room()
        self._inside.close_input()


async def _copy(source: int, channel: int, send: Send) -> None:
    """Send what a command writes until its end."""
    while True:
        await _ready(source)
        try:
            data = os.read(source, _PIECE_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return  # how a terminal says that the other end is closed
        if not data:
            return
        await send(_message(channel, data))


async def _ready(descriptor: int, *, is_for_writing: bool = False) -> None:
    """Wait until something can be read, or written."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def notify() -> None:
        if not ready.done():
            ready.set_result(None)

    listen, stop = (
        (loop.add_writer, loop.remove_writer)
        if is_for_writing
        else (loop.add_reader, loop.remove_reader)
    )
    listen(descriptor, notify)
    try:
        await ready
    finally:
        stop(descriptor)


def _message(channel: int, content: bytes) -> bytes:
    return frame(BINARY, bytes([channel]) + content)


def _status(code: int) -> dict[str, Any]:
    """Return how a command ended, as kubectl reads it."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
