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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson
import yaml

from bench.harness import Finding, Scale, figures, target

CLIENTS = 16
WATCHERS = 100
CREATES: dict[Scale, int] = {"full": 10_000, "quick": 1_000, "tiny": 32}
NODES: dict[Scale, int] = {"full": 1_000, "quick": 100, "tiny": 2}
STARTS: dict[Scale, int] = {"full": 5, "quick": 2, "tiny": 1}

_PODS = "/api/v1/namespaces/default/pods"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True, slots=True)
class Server:
    """A running `unisono up`."""

    process: subprocess.Popen[str]
    url: str
    token: str
    seconds: float  # from the command to its first answer


def measure(scale: Scale) -> Iterator[Finding]:
    """Start servers, load one, ask it."""
    starts = [_start_seconds() for _ in range(STARTS[scale])]
    started = figures("start to the first answer", 1, "server", starts, "s")
    yield started
    yield target("start to the first answer", started, 2, scale=scale, better="below")
    with tempfile.TemporaryDirectory() as directory:
        server = _start(Path(directory) / "data", f"{NODES[scale]}x{{gpu=8,cpu=96}}")
        try:
            yield from asyncio.run(_measure(server, scale))
        finally:
            server.process.terminate()
            server.process.wait()
            _close(server)


def _start_seconds() -> float:
    with tempfile.TemporaryDirectory() as directory:
        server = _start(Path(directory) / "data", "2xg6e.48xlarge")
        server.process.terminate()
        server.process.wait()
        _close(server)
        return server.seconds


def _close(server: Server) -> None:
    assert server.process.stdout is not None
    server.process.stdout.close()


def _start(folder: Path, nodes: str) -> Server:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "unisono", "up", "--data-dir", str(folder), "--nodes", nodes],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "ready":
            break
    config = yaml.safe_load((folder / "kubeconfig").read_text(encoding="utf-8"))
    url = config["clusters"][0]["cluster"]["server"]
    token = config["users"][0]["user"]["token"]
    asyncio.run(_once(url, token))
    return Server(process, url, token, time.perf_counter() - began)


async def _once(url: str, token: str) -> None:
    async with _session(url, token) as session, session.get("/api/v1/nodes") as answer:
        await answer.read()


@asynccontextmanager
async def _session(url: str, token: str) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=False, limit=0)
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, headers=headers, connector=connector) as session:
        yield session


async def _measure(server: Server, scale: Scale) -> list[Finding]:
    found: list[Finding] = []
    count = CREATES[scale]
    async with _session(server.url, server.token) as session:
        rate, waits = await _create_all(session, count)
        created = figures("durable creates a second, 16 clients", count, "pods", [rate], "1/s")
        late = figures("create, 99th percentile", count, "pods", [_p99(waits)], "ms")
        found += [created, target("durable creates", created, 1000, scale=scale, better="above")]
        found += [late, target("create, p99", late, 50, scale=scale, better="below")]
        gets = figures("gets a second, 16 clients", count, "pods", [await _gets(session)], "1/s")
        found += [gets, target("gets", gets, 5000, scale=scale, better="above")]
        for name, accept, limit in (("JSON", "application/json", 0.5), ("Table", _TABLE, 0.5)):
            taken = [await _list(session, accept) for _ in range(3)]
            listed = figures(f"list as {name}", count, "pods", taken, "s")
            found += [listed, target(f"list as {name}", listed, limit, scale=scale, better="below")]
        await asyncio.sleep(3 if scale != "tiny" else 0)
        weight = figures("resident memory", count, "pods", [_resident(server.process.pid)], "B")
        found += [weight, target("memory", weight, 150e6, scale=scale, better="below")]
        idle = figures("idle processor time", count, "pods", [await _idle(server.process.pid)], "%")
        found += [idle, target("idle", idle, 2, scale=scale, better="below")]
        alone, _ = await _create_all(session, max(count // 10, 16), prefix="b")
        watched = await _with_watchers(server, session, max(count // 10, 16))
        found.append(figures("creates a second, nobody watches", count, "pods", [alone], "1/s"))
        found.append(figures("creates a second, 100 watch", count, "pods", [watched], "1/s"))
    return found


async def _create_all(
    session: aiohttp.ClientSession, count: int, prefix: str = "a"
) -> tuple[float, list[float]]:
    waits: list[float] = []

    async def client(number: int) -> None:
        for one in range(number, count, CLIENTS):
            began = time.perf_counter()
            async with session.post(_PODS, json=_pod(f"{prefix}-{one}")) as answer:
                assert answer.status == 201, await answer.text()
                await answer.read()
            waits.append(time.perf_counter() - began)

    return await _rate(client, count), waits


async def _gets(session: aiohttp.ClientSession) -> float:
    async def client(number: int) -> None:
        for _ in range(200):
            async with session.get(f"{_PODS}/a-{number}") as answer:
                await answer.read()

    return await _rate(client, 200 * CLIENTS)


async def _rate(client: Callable[[int], Awaitable[None]], count: int) -> float:
    began = time.perf_counter()
    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return count / (time.perf_counter() - began)


async def _list(session: aiohttp.ClientSession, accept: str) -> float:
    began = time.perf_counter()
    async with session.get("/api/v1/pods", headers={"Accept": accept}) as answer:
        orjson.loads(await answer.read())
    return time.perf_counter() - began


async def _with_watchers(server: Server, session: aiohttp.ClientSession, count: int) -> float:
    """Create while many watch; one of them never reads, which must harm nobody."""
    seen = [0] * WATCHERS
    query = {"watch": "true", "resourceVersion": "0", "fieldSelector": "metadata.name!=x"}

    async def watch(number: int) -> None:
        async with session.get(_PODS, params=query) as stream:
            if number == 0:
                await asyncio.sleep(3600)
            async for line in stream.content:
                seen[number] += len(line) > 1

    async with asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(watch(number)) for number in range(WATCHERS)]
        await asyncio.sleep(1)
        rate, _ = await _create_all(session, count, prefix="w")
        for task in watching:
            task.cancel()
    return rate


async def _idle(pid: int) -> float:
    before, began = _processor(pid), time.perf_counter()
    await asyncio.sleep(2)
    return (_processor(pid) - before) / (time.perf_counter() - began) * 100


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096.0


def _p99(waits: list[float]) -> float:
    return sorted(waits)[int(len(waits) * 0.99)] * 1e3


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
