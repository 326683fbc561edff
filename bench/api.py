"""The embedded API over HTTPS, as clients feel it: a server in a process of its own.

Creates are durable (the default of `unisono up`), every client waits for its answer. Memory and
start-up are those of the whole program, controllers and all.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson
import uvloop
import yaml

from bench.harness import Finding, Scale, figures, target
from bench.plain_http import PlainClient

CLIENTS = 16
WATCHERS = 100
CREATES: dict[Scale, int] = {"full": 10_000, "quick": 1_000, "tiny": 32}
NODES: dict[Scale, int] = {"full": 1_000, "quick": 100, "tiny": 2}
STARTS: dict[Scale, int] = {"full": 5, "quick": 1, "tiny": 1}

_PODS = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True, slots=True)
class Server:
    """A running `unisono up`."""

    process: subprocess.Popen[str]
    url: str
    token: str
    seconds: float  # from the command to its first answer
    ready_seconds: float  # and until the controllers are at work, too


def measure(scale: Scale) -> Iterator[Finding]:
    """Start servers, load one, ask it."""
    starts = [_start_seconds() for _ in range(STARTS[scale])]
    answered = [first for first, _ in starts]
    started = figures("start to the first answer", 1, "server", answered, "s")
    yield started
    yield target("start to the first answer", started, 2, better="below")
    yield figures("start to controllers at work", 1, "server", [ready for _, ready in starts], "s")
    with tempfile.TemporaryDirectory() as directory:
        server = start(Path(directory) / "data", f"{NODES[scale]}x{{gpu=8,cpu=96}}")
        try:
            yield from uvloop.run(_measure(server, scale))
        finally:
            server.process.terminate()
            server.process.wait()
            close(server)


def _start_seconds() -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as directory:
        server = start(Path(directory) / "data", "2xg6e.48xlarge")
        server.process.terminate()
        server.process.wait()
        close(server)
        return server.seconds, server.ready_seconds


def close(server: Server) -> None:
    """Let go of what it printed."""
    assert server.process.stdout is not None
    server.process.stdout.close()


def start(folder: Path, nodes: str) -> Server:
    """Start `unisono up` and wait until its controllers are at work."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "unisono", "up", "--data-dir", str(folder), "--nodes", nodes],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    _read_until(process.stdout, "kubeconfig")  # printed when it answers
    config = yaml.safe_load((folder / "kubeconfig").read_text(encoding="utf-8"))
    url = config["clusters"][0]["cluster"]["server"]
    token = config["users"][0]["user"]["token"]
    asyncio.run(_once(url, token))
    answered = time.perf_counter() - began
    _read_until(process.stdout, "ready")
    return Server(process, url, token, answered, time.perf_counter() - began)


def _read_until(lines: IO[str], word: str) -> None:
    for line in lines:
        if line.startswith(word):
            return


async def _once(url: str, token: str) -> None:
    client = await PlainClient.connect(url, token)
    await client.ask("GET", "/api/v1/nodes")
    client.close()


async def _measure(server: Server, scale: Scale) -> list[Finding]:
    found: list[Finding] = []
    count, pid = CREATES[scale], server.process.pid
    clients = [await PlainClient.connect(server.url, server.token) for _ in range(CLIENTS)]
    made = await _create_all(clients, count, pid)
    created = figures("durable creates a second, 16 clients", count, "pods", [made.rate], "1/s")
    late = figures("create, 99th percentile", count, "pods", [made.p99_ms], "ms")
    found += [created, target("durable creates", created, 1000, better="above")]
    found += [late, target("create, p99", late, 50, better="below")]
    found.append(figures("create, processor time", count, "pods", [made.processor_us], "us"))
    read = await _gets(clients, pid)
    gets = figures("gets a second, 16 clients", count, "pods", [read.rate], "1/s")
    found += [gets, target("gets", gets, 5000, better="above")]
    found.append(figures("get, processor time", count, "pods", [read.processor_us], "us"))
    for name, accept in (("JSON", "application/json"), ("Table", _TABLE)):
        taken = [await _list(clients[0], accept) for _ in range(3)]
        # Until it has arrived: what a client then makes of it is the client's own time.
        listed = figures(f"list as {name}", count, "pods", [one[0] for one in taken], "s")
        what = f"list as {name}, the client's parsing"
        found.append(figures(what, count, "pods", [one[1] for one in taken], "s"))
        found += [listed, target(f"list as {name}", listed, 0.5, better="below")]
    await asyncio.sleep(3 if scale != "tiny" else 0)
    weight = figures("resident memory", count, "pods", [_resident(pid)], "B")
    found += [weight, target("memory", weight, 150e6, better="below")]
    idle = figures("idle processor time", count, "pods", [await _idle(pid)], "%")
    found += [idle, target("idle", idle, 2, better="below")]
    few = max(count // 10, 16)
    alone = await _create_all(clients, few, pid, prefix="b")
    watched = await _with_watchers(server, clients, few)
    for what, one in (("without watches", alone), ("100 watch", watched)):
        found.append(figures(f"creates a second, {what}", few, "pods", [one.rate], "1/s"))
        cost = figures(f"create, processor time, {what}", few, "pods", [one.processor_us], "us")
        found.append(cost)
    for client in clients:
        client.close()
    return found


@dataclass(frozen=True, slots=True)
class _Load:
    """What many requests took."""

    rate: float
    processor_us: float  # of the server, for one request
    p99_ms: float


async def _create_all(clients: list[PlainClient], count: int, pid: int, prefix: str = "a") -> _Load:
    async def work(client: PlainClient, number: int) -> None:
        body = orjson.dumps(_pod(f"{prefix}-{number}"))
        code, answer = await client.ask("POST", _PODS, body)
        assert code == 201, answer

    return await _load(clients, count, pid, work)


async def _gets(clients: list[PlainClient], pid: int) -> _Load:
    async def work(client: PlainClient, number: int) -> None:
        await client.ask("GET", f"{_PODS}/a-{number % CLIENTS}")

    return await _load(clients, 400 * CLIENTS, pid, work)


async def _load(
    clients: list[PlainClient],
    count: int,
    pid: int,
    work: Callable[[PlainClient, int], Awaitable[None]],
) -> _Load:
    """Have every client do its share, one request after the other."""
    waits: list[float] = []

    async def one(client: PlainClient, first: int) -> None:
        for number in range(first, count, CLIENTS):
            began = time.perf_counter()
            await work(client, number)
            waits.append(time.perf_counter() - began)

    used, began = processor(pid), time.perf_counter()
    await asyncio.gather(*(one(client, first) for first, client in enumerate(clients)))
    seconds = time.perf_counter() - began
    processor_us = (processor(pid) - used) / count * 1e6
    return _Load(count / seconds, processor_us, sorted(waits)[int(count * 0.99)] * 1e3)


async def _list(client: PlainClient, accept: str) -> tuple[float, float]:
    """Return the seconds until a list has arrived, and those to parse it."""
    began = time.perf_counter()
    _, body = await client.ask("GET", "/api/v1/pods", accept=accept)
    arrived = time.perf_counter()
    orjson.loads(body)
    return arrived - began, time.perf_counter() - arrived


async def _with_watchers(server: Server, clients: list[PlainClient], count: int) -> _Load:
    """Create while many watch; one of them never reads, which must not slow the others."""
    _, listed = await clients[0].ask("GET", f"{_PODS}?limit=1")
    since = orjson.loads(listed)["metadata"]["resourceVersion"]
    path = f"{_PODS}?watch=true&resourceVersion={since}&fieldSelector=metadata.name!%3Dx"
    seen = [0] * WATCHERS
    watchers = [await PlainClient.connect(server.url, server.token) for _ in range(WATCHERS)]
    for watcher in watchers:
        watcher.send("GET", path)

    async def watch(number: int) -> None:
        while True:
            seen[number] += (await watchers[number].some()).count(b'{"type":"ADDED"')

    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(watch(number)) for number in range(1, WATCHERS)]
        load = await _create_all(clients, count, server.process.pid, prefix="w")
        while min(seen[1:]) < count:
            await asyncio.sleep(0.01)
        for task in watching:
            task.cancel()
    for watcher in watchers:
        watcher.close()
    return load


async def _idle(pid: int) -> float:
    before, began = processor(pid), time.perf_counter()
    await asyncio.sleep(2)
    return (processor(pid) - before) / (time.perf_counter() - began) * 100


def processor(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096.0


def _pod(name: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", "86400"],
        "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}},
    }
    # Gated, so that nothing but the API is measured.
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {
            "restartPolicy": "Never",
            "schedulingGates": [{"name": "bench.unisono.dev/hold"}],
            "containers": [container],
        },
    }
