"""Listening sockets: how many connections at once, and which one ends to make room.

Descriptors belong to the whole process, and every client that connects takes one. So all
listeners of a process share one count (`Connections`) that leaves a reserve for files, pods and the
sockets of our own requests. When it is full, the connection that is least missed ends: the oldest
that never authenticated, else the one that has been idle for longest. If all are at work, as
watches of known users are, the newcomer gets 503.

Connections are accepted here and not by the event loop's own server, which neither tells of one
before its TLS handshake is over nor survives for long once it has no descriptors left.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import cast

from unisono.engine.model.errors import UnisonoError
from unisono.kinds.overriding import override

# Kept for everything that is no connection: the databases, logs, pipes of pods, sockets of our own.
# An idle instance has some thirty descriptors open.
RESERVED_DESCRIPTORS = 48
# Each costs some tens of kilobytes, most of it for TLS; thousands of watchers are no mistake yet.
MOST_CONNECTIONS = 4096
# Less is of no use: a person, a watch, a probe, a scrape.
FEWEST_CONNECTIONS = 4
# Newcomers beyond the limit that are told so; further ones are just closed.
_MOST_REFUSALS = 8
HANDSHAKE_SECONDS = 10.0
_BACKLOG = 1024
# Told to end and not closed yet: each still has its descriptor, which the reserve has to pay for.
MOST_ENDING = 8
# Accepted in one turn of the loop, so that a flood leaves time for others.
_AT_ONCE = 64
# Without any descriptor left the socket stays readable; looking again at once would take all time.
_PAUSE_SECONDS = 0.1
# Until the connections that were told to end are closed, which takes a turn or two.
_BEHIND_SECONDS = 0.005
_NOTHING_LEFT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
# A client whose machine is gone is noticed after some two minutes.
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 15), (socket.TCP_KEEPCNT, 4))
_SORRY = b"too many connections are open; try again\n"
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nretry-after: 1\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_SORRY), _SORRY)
)


def most_connections() -> int:
    """Return how many connections this process may have: three quarters of its descriptors.

    Of a small limit it is less, so that the reserve stays.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    left = limit - max(RESERVED_DESCRIPTORS, limit // 4)
    return max(FEWEST_CONNECTIONS, min(left, MOST_CONNECTIONS))


class Accepted:
    """One connection as the limit sees it."""

    __slots__ = ("_connections", "end", "idle_since", "is_known")

    def __init__(self, connections: Connections, end: Callable[[], None]) -> None:
        """Begin idle; `end` cuts the connection."""
        self._connections = connections
        self.end = end
        self.is_known = False  # whether its client authenticated
        self.idle_since: float | None = asyncio.get_running_loop().time()  # None: at work

    def work(self) -> None:
        """Note that something was asked, which is answered now."""
        self.idle_since = None

    def rest(self, *, is_known: bool) -> None:
        """Note that the answer has left; `is_known` if the client authenticated."""
        self.is_known = is_known
        self.idle_since = asyncio.get_running_loop().time()

    def leave(self) -> None:
        """Note that it is closed."""
        self._connections.forget(self)


class Connections:
    """Every connection of a process, over all of its listeners."""

    def __init__(self, most: int = 0) -> None:
        """Take how many there may be; by default what the limit of descriptors allows."""
        self._most = most
        self._open: dict[Accepted, None] = {}  # oldest first
        self._ending: dict[Accepted, float] = {}  # since when

    def __len__(self) -> int:
        return len(self._open)

    def take(self, end: Callable[[], None]) -> Accepted | None:
        """Take a place for a new connection; None if all are taken by others at work."""
        if len(self._open) >= (self._most or most_connections()) and not self.make_room():
            return None
        accepted = Accepted(self, end)
        self._open[accepted] = None
        return accepted

    def forget(self, accepted: Accepted) -> None:
        """Give back the place of a connection that is closed."""
        self._open.pop(accepted, None)
        self._ending.pop(accepted, None)

    @property
    def is_behind(self) -> bool:
        """Whether many connections that were told to end are still open."""
        if len(self._ending) >= MOST_ENDING:
            # One that never says that it is closed must not keep all others out.
            longest = asyncio.get_running_loop().time() - HANDSHAKE_SECONDS
            self._ending = {one: since for one, since in self._ending.items() if since > longest}
        return len(self._ending) >= MOST_ENDING

    def make_room(self) -> bool:
        """End the connection that is least missed; say whether there was one to end."""
        idle = [one for one in self._open if one.idle_since is not None]
        if not idle:
            return False
        least = min(idle, key=lambda one: (one.is_known, one.idle_since or 0.0))
        self.forget(least)
        self._ending[least] = asyncio.get_running_loop().time()
        least.end()
        return True


OF_PROCESS = Connections()

# Makes what speaks with one client.
Serve = Callable[[Accepted], asyncio.BaseProtocol]


@contextlib.asynccontextmanager
async def listening(
    sock: socket.socket,
    serve: Serve,
    *,
    context: ssl.SSLContext | None = None,
    connections: Connections = OF_PROCESS,
) -> AsyncIterator[None]:
    """Accept connections on a listening socket while the block lasts; then close the socket.

    Connections that are open then are left to what serves them.
    """
    listener = _Listener(sock, serve, context, connections)
    listener.start()
    try:
        yield
    finally:
        listener.stop()


class _Listener:
    def __init__(
        self,
        sock: socket.socket,
        serve: Serve,
        context: ssl.SSLContext | None,
        connections: Connections,
    ) -> None:
        self._sock = sock
        self._serve = serve
        self._context = context
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._refusals = 0
        self._pause: asyncio.TimerHandle | None = None
        sock.setblocking(False)  # noqa: FBT003 (the only way to say it)
        sock.listen(_BACKLOG)

    def start(self) -> None:
        self._pause = None
        self._loop.add_reader(self._sock, self._accept)

    def stop(self) -> None:
        if self._pause is None:
            self._loop.remove_reader(self._sock)
        else:
            self._pause.cancel()
        self._sock.close()
        for task in self._tasks:
            task.cancel()

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            if self._connections.is_behind:
                self._loop.remove_reader(self._sock)
                self._pause = self._loop.call_later(_BEHIND_SECONDS, self.start)
                return
            try:
                sock, _address = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                # Whatever it is (a client that is gone already, no memory), the next may come in.
                if error.errno in _NOTHING_LEFT:
                    self._connections.make_room()
                    self._loop.remove_reader(self._sock)
                    self._pause = self._loop.call_later(_PAUSE_SECONDS, self.start)
                    return
                continue
            self._admit(sock)

    def _admit(self, sock: socket.socket) -> None:
        sock.setblocking(False)  # noqa: FBT003 (as above)
        if sock.family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # of a client that is gone already
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option, value in _KEEP_ALIVE:
                    sock.setsockopt(socket.IPPROTO_TCP, option, value)
        accepted = self._connections.take(lambda: _shut(sock))
        if accepted is None:
            self._refuse(sock)
            return
        self._run(self._connect(sock, accepted))

    def _refuse(self, sock: socket.socket) -> None:
        if self._refusals >= _MOST_REFUSALS:
            sock.close()
            return
        self._refusals += 1
        self._run(self._answer_busy(sock))

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, sock: socket.socket, accepted: Accepted) -> None:
        try:
            transport = await self._connected(sock, lambda: self._serve(accepted))
        except (OSError, TimeoutError):  # the handshake failed, or took too long
            accepted.leave()
            sock.close()
        except asyncio.CancelledError:
            accepted.leave()
            sock.close()
            raise
        else:
            if transport.is_closing():
                accepted.leave()  # it was told to end before it was served
            accepted.end = transport.abort

    async def _answer_busy(self, sock: socket.socket) -> None:
        try:
            await self._connected(sock, _Busy)
        except (OSError, TimeoutError):
            sock.close()
        finally:
            self._refusals -= 1

    async def _connected(
        self, sock: socket.socket, make: Callable[[], asyncio.BaseProtocol]
    ) -> asyncio.Transport:
        transport, _ = await self._loop.connect_accepted_socket(
            make,
            sock,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._context is not None else None,
        )
        return transport


def _shut(sock: socket.socket) -> None:
    """Cut a connection whose transport is not there yet."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


class _Busy(asyncio.Protocol):
    """Says that there is no room, and goes."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast("asyncio.Transport", transport)
        made.write(_BUSY)
        made.close()


class CannotListen(UnisonoError):
    """The address is taken, or not one of this machine."""


def bound(host: str, port: int, option: str = "") -> socket.socket:
    """Return a socket at an address, of which port 0 is any free one.

    Raises CannotListen with the option of the command that chooses another address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio would not switch Nagle's delay off for it.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _cannot(host, port, error, option) from error
    return sock


def listen(host: str, port: int, option: str = "") -> socket.socket:
    """Return a listening socket; port 0 takes any free one."""
    sock = bound(host, port, option)
    try:
        sock.listen()  # from now on it is ours; the listener says how many may wait
    except OSError as error:
        sock.close()
        raise _cannot(host, port, error, option) from error
    return sock


def _cannot(host: str, port: int, error: OSError, option: str) -> CannotListen:
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    advice = f"; choose another {option}" if option else ""
    return CannotListen(f"cannot listen on {where}: {error.strerror or error}{advice}")


def local_socket(path: Path) -> socket.socket | None:
    """Return a socket that listens at a file, for its owner alone; None where none can be.

    Its name may be too long, or the disk of a kind without sockets: then clients use the port.
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
