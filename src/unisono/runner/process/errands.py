"""Commands that others run inside a container: `exec`, hooks, probes, and `ssh` between pods.

    whoever asks ──{argv, env, cwd} and three descriptors──▶ shim ──▶ a process in the same room
                 ◀───────────{code}──────────────────────────

Shims listen on sockets that have a name but no file (`unisono/ADDRESS/CONTAINER`), so that they are
reached from every room of this machine, by processes of the same user only: the one who runs the
instance, and the one whose container it is. Anybody may take a name first, so whoever asks looks at
who listens, too. Linux. Only the standard library.
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
_PATIENCE_SECONDS = 2.0
_MOST_BYTES = 1 << 20
_DESCRIPTORS = 3


class Errands:
    """The errands of one container, on the side of its shim."""

    def __init__(
        self,
        names: Sequence[str],
        begin: Callable[[Mapping[str, Any]], NoReturn],
        owners: Sequence[int] = (),
    ) -> None:
        """Listen under names; `begin` turns a new process into what was asked for.

        `owners` are the users who may ask besides ourselves and root.
        """
        self._begin = begin
        self._askers = frozenset((os.getuid(), 0, *owners))
        self.listeners: list[socket.socket] = []
        self._clients: dict[int, socket.socket] = {}  # pid → who waits for its end
        for name in names:
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listener.bind(_PREFIX + name)
                listener.listen(16)
                self.listeners.append(listener)
            except OSError:  # not this system, or somebody has the name: no errands then
                listener.close()

    def accept(self, listener: socket.socket) -> socket.socket | None:
        """Start what somebody asks for; return the connection, which ends if they lose interest."""
        client, _ = listener.accept()
        client.settimeout(_PATIENCE_SECONDS)
        if _peer(client) not in self._askers:
            client.close()
            return None
        try:
            wish, descriptors = _received(client)
        except (OSError, ValueError):
            client.close()
            return None
        pid = os.fork()
        if pid == 0:
            self._become(wish, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._clients[pid] = client
        return client

    def _become(self, wish: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
        code = 126
        try:
            os.setsid()
            for target, descriptor in enumerate(descriptors):
                os.dup2(descriptor, target)
            if wish.get("tty"):
                _take_terminal()
            self._begin(wish)
        except FileNotFoundError as error:
            code = 127
            os.write(2, f"{wish['argv'][0]}: {error.strerror or 'not found'}\n".encode())
        except OSError as error:
            os.write(2, f"{wish['argv'][0]}: {error.strerror or error}\n".encode())
        os._exit(code)

    def ended(self, pid: int, status: int) -> None:
        """Tell who waits that a process has ended."""
        client = self._clients.pop(pid, None)
        if client is not None:
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError):
                client.sendall(json.dumps({"code": 128 - code if code < 0 else code}).encode())
                client.shutdown(socket.SHUT_RDWR)

    def lost_interest(self, client: socket.socket) -> None:
        """End what somebody asked for who is gone."""
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
        raise ValueError("an errand needs three descriptors")
    wish = json.loads(data)
    return wish, descriptors


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


# ---- whoever asks ------------------------------------------------------------------------------


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
        wish = {"argv": list(argv), "env": dict(env or {}), "cwd": cwd, "tty": tty}
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        data = json.dumps(wish).encode() + b"\n"
        sent = connection.sendmsg([data], rights)
        connection.sendall(data[sent:])
    except OSError:
        connection.close()
        raise
    return connection


def code_of(connection: socket.socket) -> int:
    """Wait for the end of a command; return its exit code, 137 if nobody says."""
    data = b""
    with connection:
        while more := connection.recv(4096):
            data += more
    try:
        return int(json.loads(data)["code"])
    except (ValueError, KeyError):
        return 137
