"""The embedded server for one transcript: over HTTPS, with a clock and dice of its own.

Nothing in it depends on the day or on chance, so the same commands print the same text. Time passes
only when a transcript says so.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import queue
import random
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.certificates import write_certificates
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

TOKEN = "token-of-one-transcript"
ALICE = User(name="alice", groups=("system:masters", "system:authenticated"))
START = 1_767_258_000.0  # 2026-01-01T09:00:00Z
_SECONDS_TO_START = 60


@dataclass
class Clock:
    """Time that only moves when it is told to."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Cluster:
    """A running server: its clock, and the environment in which kubectl finds it."""

    clock: Clock
    environment: Mapping[str, str]


@contextmanager
def running(directory: Path) -> Iterator[Cluster]:
    """Run a server in a thread until the block ends."""
    write_certificates(directory)
    clock = Clock()
    started: queue.SimpleQueue[_Handle | BaseException] = queue.SimpleQueue()
    thread = threading.Thread(target=asyncio.run, args=(_serve(directory, clock, started),))
    thread.start()
    handle = started.get(timeout=_SECONDS_TO_START)
    if isinstance(handle, BaseException):
        raise handle
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(handle.url, directory / "ca.crt")))
    environment = {
        "KUBECONFIG": str(kubeconfig),
        "KUBECACHEDIR": str(directory / "cache"),
        "HOME": str(directory),
        "LOGS": str(directory / "logs"),  # where a runner would keep what containers write
        "PATH": os.environ["PATH"],
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    try:
        yield Cluster(clock, environment)
    finally:
        handle.loop.call_soon_threadsafe(handle.stopped.set)
        thread.join()


@dataclass(frozen=True)
class _Handle:
    """How to reach the server's thread."""

    url: str
    loop: asyncio.AbstractEventLoop
    stopped: asyncio.Event


async def _serve(
    directory: Path, clock: Clock, started: queue.SimpleQueue[_Handle | BaseException]
) -> None:
    store = Store(Database(directory / "state.db", is_power_safe=False))
    try:
        dice = random.Random(1)
        authenticator = Authenticator({hash_token(TOKEN): ALICE})
        api = Api(
            store,
            Environment(
                clock=clock,
                new_uid=lambda: str(uuid.UUID(int=dice.getrandbits(128), version=4)),
                random_source=random.Random(2),
                logs=LogFiles(directory / "logs"),
                reviews=RoleBasedAccess(None, authenticator),
            ),
        )
        await bootstrap(api)
        listener = listen("127.0.0.1", 0)
        certificate = Certificate(directory / "server.crt", directory / "server.key")
        stopped = asyncio.Event()
        front = HttpEntry(api, RequestFilter(authenticator, hosts=("127.0.0.1",)).admit)
        async with serving(front, listener, certificate):
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            started.put(_Handle(url, asyncio.get_running_loop(), stopped))
            await stopped.wait()
        await store.committed()
    except BaseException as problem:
        started.put(problem)
        raise
    finally:
        store.close()


def _kubeconfig(url: str, authority: Path) -> dict[str, object]:
    trusted = base64.b64encode(authority.read_bytes()).decode()
    cluster = {"server": url, "certificate-authority-data": trusted}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": cluster}],
        "users": [{"name": "alice", "user": {"token": TOKEN}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "alice"}}],
        "current-context": "embedded",
    }
