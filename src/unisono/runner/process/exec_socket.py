"""Commands that run inside a container from outside: `exec`, hooks, probes, and `ssh` between pods.

    client ──{argv, env, cwd} and three descriptors──▶ shim ──▶ a process in the same sandbox
           ◀───────────{code}──────────────────────────

Shims listen on abstract sockets (`unisono/ADDRESS/CONTAINER`), which every sandbox of this machine
reaches. Only two users may connect: the one that runs the instance, and the container's own. Any
process may bind a name first, so a client checks the listener's user as well. Linux. Only the
standard library.
"""

from __future__ import annotations

import array
import contextlib
import errno
import json
import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

_PREFIX = "\0unisono/"
_RECEIVE_SECONDS = 2.0
_MOST_BYTES = 1 << 20
_DESCRIPTORS = 3


class ExecServer:
    """The exec socket of one container, on the side of its shim."""

    def __init__(
        self,
        names: Sequence[str],
        begin: Callable[[Mapping[str, Any]], NoReturn],
        owners: Sequence[int] = (),
    ) -> None:
        """Listen under names; `begin` turns a new process into the command.

        `owners` are the users who may ask besides ourselves and root.
        """
        self._begin = begin
        self._askers = frozenset((os.getuid(), 0, *owners))
        self.listeners: list[socket.socket] = []
        self._clients: dict[int, socket.socket] = {}  # pid → the client that waits for its end
        for name in names:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(_PREFIX + name)
                listener.listen(16)
                self.listeners.append(listener)
            except OSError:  # another system, or the name is taken: no exec then
                listener.close()

    def accept(self, listener: socket.socket) -> socket.socket | None:
        """Start a client's command; return the connection, which the client closes to end it."""
        client, _ = listener.accept()
        client.settimeout(_RECEIVE_SECONDS)
        if _peer(client) not in self._askers:
            client.close()
            return None
        try:
            request, descriptors = _received(client)
        except (OSError, ValueError):
            client.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._become(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._clients[pid] = client
        return client

    def _become(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
        code = 126
        try:
            os.setsid()
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            if request.get("tty"):
                _take_terminal()
            self._begin(request)
        except FileNotFoundError as error:
            code = 127
            os.write(2, f"{request['argv'][0]}: {error.strerror or 'not found'}\n".encode())
        except OSError as error:
            os.write(2, f"{request['argv'][0]}: {error.strerror or error}\n".encode())
        os._exit(code)

    def ended(self, pid: int, status: int) -> None:
        """Send the exit code of a process to its client."""
        client = self._clients.pop(pid, None)
        if client is not None:
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                client.sendall(json.dumps({"code": 128 - code if code < 0 else code}).encode())
                client.shutdown(socket.SHUT_RDWR)

    def client_closed(self, client: socket.socket) -> None:
        """End the command of a client that has closed its connection."""
        for pid, other in list(self._clients.items()):
            if other is client:
                del self._clients[pid]
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
        client.close()


def _peer(client: socket.socket) -> int:
    raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[1])


def _received(client: socket.socket) -> tuple[Mapping[str, Any], list[int]]:
    """Return a wish and its descriptors."""
    numbers = array.array("i")
    size = _DESCRIPTORS * numbers.itemsize
    data, extra, _, _ = client.recvmsg(1 << 16, socket.CMSG_SPACE(size))
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    descriptors = list(numbers)
    while not data.endswith(b"\n") and len(data) < _MOST_BYTES:
        more = client.recv(1 << 16)
        if not more:
            break
        data += more
    if len(descriptors) != _DESCRIPTORS:
        for descriptor in descriptors:
            os.close(descriptor)
        raise ValueError("a command needs three descriptors")
    request = json.loads(data)
    return request, descriptors


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


# ---- clients -----------------------------------------------------------------------------------


def send(
    name: str,
    argv: Sequence[str],
    descriptors: Sequence[int],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str = "",
    tty: bool = False,
) -> socket.socket:
    """Have a command run in a container, by `ADDRESS/CONTAINER` or the address of a pod.

    Return a connection that says how it ended; closing it ends the command.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(_PREFIX + name)
        if _peer(connection) not in (os.getuid(), 0):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "another user listens there")
        request = {"argv": list(argv), "env": dict(env or {}), "cwd": cwd, "tty": tty}
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        data = json.dumps(request).encode() + b"\n"
        sent = connection.sendmsg([data], rights)
        connection.sendall(data[sent:])
    except OSError:
        connection.close()
        raise
    return connection


def code_of(connection: socket.socket) -> int:
    """Wait for the end of a command; return its exit code, 137 if it is unknown."""
    data = b""
    with connection:
        while more := connection.recv(4096):
            data += more
    try:
        return int(json.loads(data)["code"])
    except (ValueError, KeyError):
        return 137
