"""The servers that the suite runs against."""

from __future__ import annotations

import asyncio
import base64
import json
import queue
import random
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.certificates import write_certificates
from tests.real.control_plane import ControlPlane
from unisono import __version__
from unisono.apiserver.access.authorize import Authorizer
from unisono.apiserver.access.filters import Authenticator, RequestFilter, hash_token
from unisono.apiserver.access.reviews import RoleBasedAccess
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import bootstrap
from unisono.apiserver.http_entry import HttpEntry
from unisono.apiserver.request import User
from unisono.apiserver.rest.pod_logs import LogFiles
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.net.http.server import Certificate, serving
from unisono.net.listener import listen

_TOKEN = "admin-token-of-one-test-run"
_ADMINISTRATOR = User(name="admin", groups=("system:masters", "system:authenticated"))
_GUEST_TOKEN = "guest-token-of-one-test-run"
_GUEST = User(name="guest", groups=("system:authenticated",))
_SECONDS_TO_START = 30


@dataclass(frozen=True)
class Server:
    """Where a server listens, how to log in, and what else can be done to it."""

    name: str
    url: str
    ca_file: Path
    token: str
    guest_token: str | None  # a user who may do nothing, where there can be several
    has_controllers: bool
    forget_history: Callable[[], None]  # as if everything so far had happened long ago
    stop: Callable[[], object]


@contextmanager
def embedded(directory: Path) -> Iterator[Server]:
    """Run the embedded server in this process, in a thread with an event loop of its own."""
    write_certificates(directory)
    started: queue.SimpleQueue[Server | BaseException] = queue.SimpleQueue()
    thread = threading.Thread(target=asyncio.run, args=(_serve(directory, started),))
    thread.start()
    server = started.get(timeout=_SECONDS_TO_START)
    if isinstance(server, BaseException):
        raise server
    try:
        yield server
    finally:
        server.stop()
        thread.join()


async def _serve(directory: Path, started: queue.SimpleQueue[Server | BaseException]) -> None:
    """Serve until told to stop; report where, or what went wrong."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    store = Store(Database(directory / "state.db", is_power_safe=False))
    try:
        random_source = random.Random(1)
        authenticator = Authenticator(
            {hash_token(_TOKEN): _ADMINISTRATOR, hash_token(_GUEST_TOKEN): _GUEST}
        )
        authorizer = Authorizer(
            every=lambda kind: (record.load() for record in store.listing(kind)),
            version=lambda: store.rv,
        )
        reviews = RoleBasedAccess(authorizer, authenticator)
        outside = Environment(
            clock=time.time,
            new_uid=lambda: str(uuid.UUID(int=random_source.getrandbits(128), version=4)),
            random_source=random_source,
            version=__version__,
            logs=LogFiles(directory / "logs"),
            reviews=reviews,
        )
        api = Api(store, outside)
        await bootstrap(api)
        listener = listen("127.0.0.1", 0)
        certificate = Certificate(directory / "server.crt", directory / "server.key")
        gate = RequestFilter(
            authenticator, hosts=("127.0.0.1",), may_impersonate=reviews.may_impersonate
        )
        async with serving(HttpEntry(api, gate.admit), listener, certificate):
            started.put(
                Server(
                    name="embedded",
                    url=f"https://127.0.0.1:{listener.getsockname()[1]}",
                    ca_file=directory / "ca.crt",
                    token=_TOKEN,
                    guest_token=_GUEST_TOKEN,
                    has_controllers=True,
                    forget_history=lambda: asyncio.run_coroutine_threadsafe(
                        _forget(api), loop
                    ).result(),
                    stop=lambda: loop.call_soon_threadsafe(stopped.set),
                )
            )
            await stopped.wait()
        await store.committed()
    except BaseException as problem:
        started.put(problem)
        raise
    finally:
        store.close()


async def _forget(api: Api) -> None:
    for kind, _ in api.store.kinds():
        api.store.history(kind).forget(api.store.rv)
    api._reader._open.clear()  # lists that were read in part


def real(plane: ControlPlane) -> Server:
    """Return the server of a real control plane."""
    return Server(
        name="real",
        url=plane.url,
        ca_file=plane.ca_file,
        token=plane.token,
        guest_token=plane.guest_token,
        has_controllers=plane.has_controllers,
        forget_history=lambda: _compact(plane.etcd_url),
        stop=lambda: None,  # it ends with the control plane
    )


def _compact(etcd_url: str) -> None:
    """Let etcd forget every revision but the last."""
    everything = {"key": base64.b64encode(b"\0").decode(), "limit": 1}
    revision = _etcd(etcd_url, "/v3/kv/range", everything)["header"]["revision"]
    _etcd(etcd_url, "/v3/kv/compaction", {"revision": revision, "physical": True})


def _etcd(url: str, path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
    request = urllib.request.Request(url + path, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        read: dict[str, dict[str, str]] = json.loads(answer.read())
        return read
