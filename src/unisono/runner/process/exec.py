"""`kubectl exec`: a command in a container of a process pod, driven over the API.

It runs through the container's exec socket. Its descriptors are pipes, or a terminal of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import socket
import struct
import termios
from collections.abc import Sequence

from unisono.control.actions import Json
from unisono.runner.process import exec_socket

_UNKNOWN_CODE = 137
# A container that has just been started does not listen yet.
_CONNECT_SECONDS = 10.0
_AGAIN_SECONDS = 0.05


class Command:
    """A running command; `close` ends it."""

    def __init__(
        self, connection: socket.socket, ends: tuple[int, int, int | None], *, tty: bool
    ) -> None:
        """Take the connection that says how it ends, and our ends of its descriptors."""
        self._connection = connection
        self._connection.setblocking(False)  # noqa: FBT003 (the only way to say it)
        self.ends = ends
        self._tty = tty
        self._open = {end for end in ends if end is not None}
        for end in self._open:
            os.set_blocking(end, False)

    async def ended(self) -> int:
        """Wait for its exit code; 137 if it is unknown."""
        loop = asyncio.get_running_loop()
        data = b""
        with contextlib.suppress(OSError):
            while more := await loop.sock_recv(self._connection, 4096):
                data += more
        try:
            return int(json.loads(data)["code"])
        except (ValueError, KeyError):
            return _UNKNOWN_CODE

    def close_input(self) -> None:
        """Let it read the end of its input; a terminal's user types that himself."""
        if not self._tty:
            self._close(self.ends[0])

    def resize(self, columns: int, rows: int) -> None:
        """Say how large the terminal is."""
        if self._tty:
            size = struct.pack("HHHH", min(rows, 0xFFFF), min(columns, 0xFFFF), 0, 0)
            with contextlib.suppress(OSError):
                fcntl.ioctl(self.ends[0], termios.TIOCSWINSZ, size)

    def close(self) -> None:
        """Let go of it; one that still runs is ended."""
        self._connection.close()
        for end in tuple(self._open):
            self._close(end)

    def _close(self, end: int) -> None:
        if end in self._open:
            self._open.discard(end)
            os.close(end)


async def enter(pod: Json, container: str, command: Sequence[str], *, tty: bool) -> Command:
    """Start a command; raises OSError if the container does not run."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _CONNECT_SECONDS
    while True:
        try:
            return _entered(pod, container, command, tty=tty)
        except ConnectionRefusedError:
            if not _is_running(pod, container) or loop.time() > deadline:
                raise
        await asyncio.sleep(_AGAIN_SECONDS)


def _is_running(pod: Json, container: str) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(one["name"] == container and "running" in one["state"] for one in statuses)


def _entered(pod: Json, container: str, command: Sequence[str], *, tty: bool) -> Command:
    address = (pod.get("status") or {}).get("podIP") or ""
    name = f"{address}/{container}"
    if tty:
        ours, theirs = pty.openpty()
        return _started(name, command, (theirs,) * 3, (ours, ours, None), tty=True)
    their_input, our_input = os.pipe()
    our_output, their_output = os.pipe()
    our_errors, their_errors = os.pipe()
    theirs_all = (their_input, their_output, their_errors)
    return _started(name, command, theirs_all, (our_input, our_output, our_errors), tty=False)


def _started(
    name: str,
    command: Sequence[str],
    theirs: tuple[int, int, int],
    ours: tuple[int, int, int | None],
    *,
    tty: bool,
) -> Command:
    env = {"TERM": "xterm"} if tty else None
    try:
        connection = exec_socket.send(name, command, theirs, env=env, tty=tty)
    except OSError:
        for end in {one for one in ours if one is not None}:
            os.close(end)
        raise
    finally:
        for end in set(theirs):
            os.close(end)
    return Command(connection, ours, tty=tty)
