"""A whole embedded cluster in a thread, with controllers and quick pods, for clients of others."""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from unisono.apiserver.times import timestamp
from unisono.provision.catalog.nodes import nodes_of, parse_shape
from unisono.runtime.clock import seconds_now
from unisono.runtime.embedded.server import Choices, running
from unisono.runtime.instance import Instance

_SECONDS_TO_START = 60
_SPEED = 20.0  # of simulated pods: what says `sleep 20` is over in a second
_namespaces = itertools.count(1)


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs, and how clients find it."""

    kubeconfig: Path


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run one cluster for all clients."""
    instance = Instance(tmp_path_factory.mktemp("cluster"))
    instance.directory.chmod(0o700)
    instance.prepare()
    started: queue.SimpleQueue[_Handle | BaseException] = queue.SimpleQueue()
    thread = threading.Thread(target=asyncio.run, args=(_serve(instance, started),))
    thread.start()
    handle = started.get(timeout=_SECONDS_TO_START)
    if isinstance(handle, BaseException):
        raise handle
    yield Cluster(instance.kubeconfig)
    handle.loop.call_soon_threadsafe(handle.stopped.set)
    thread.join()


@dataclass(frozen=True)
class _Handle:
    loop: asyncio.AbstractEventLoop
    stopped: asyncio.Event


async def _serve(instance: Instance, started: queue.SimpleQueue[_Handle | BaseException]) -> None:
    try:
        nodes = nodes_of(parse_shape("2xg6e.48xlarge"), now=timestamp(seconds_now()))
        choices = Choices(speed=_SPEED, is_power_safe=False)
        async with running(instance, choices, nodes):
            stopped = asyncio.Event()
            started.put(_Handle(asyncio.get_running_loop(), stopped))
            await stopped.wait()
    except BaseException as problem:
        started.put(problem)
        raise


@pytest.fixture
def namespace() -> str:
    """Return the name of a namespace that was never used; tests create it themselves."""
    return f"client-{next(_namespaces)}"
