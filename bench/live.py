"""Live gangs on the embedded cluster: from a submitted job to pods that run (simulated)."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from bench.harness import Finding, Scale, figures, target
from unisono.apiserver.api import Api
from unisono.cli.embedded import Choices, running
from unisono.cli.instance import Instance
from unisono.cli.stories import gang
from unisono.cli.stories.stage import own_client
from unisono.kube.client import Client
from unisono.provision.nodes import nodes_of
from unisono.provision.shapes import parse_shape

NODES: dict[Scale, int] = {"full": 1000, "quick": 100, "tiny": 4}
JOBS: dict[Scale, int] = {"full": 1000, "quick": 100, "tiny": 2}
ALONE: dict[Scale, int] = {"full": 20, "quick": 5, "tiny": 1}
_PATIENCE_S = 600.0

Json = dict[str, Any]


def measure(scale: Scale) -> Iterator[Finding]:
    """Submit gangs one by one, then many at once."""
    alone, rate = uvloop.run(_measure(scale))
    started = figures("submitted to running, alone", 8, "pods", alone, "ms")
    yield started
    yield target("8-pod gang to running", started, 300, scale=scale, better="below")
    many = figures("gangs of 2 committed a second, all at once", JOBS[scale], "jobs", [rate], "1/s")
    yield many
    yield target("gangs a second", many, 100, scale=scale, better="above")


async def _measure(scale: Scale) -> tuple[list[float], float]:
    shape = parse_shape(f"{NODES[scale]}x{{gpu=8,cpu=96,memory=512Gi}}")
    with tempfile.TemporaryDirectory() as directory:
        instance = Instance(Path(directory) / "data")
        instance.prepare()
        nodes = list(nodes_of(shape, now="2026-01-01T00:00:00Z"))
        async with running(instance, Choices(), nodes) as cluster:
            client = own_client(cluster.api)
            for obj in gang.queue("1000000"):
                await client.create(obj)
            await asyncio.sleep(0.5)
            alone = [await _alone(cluster.api, client, number) for number in range(ALONE[scale])]
            return alone, await _crowd(cluster.api, client, JOBS[scale])


async def _alone(api: Api, client: Client, number: int) -> float:
    began = time.perf_counter()
    await client.create(gang.job(f"alone{number}", pods=8, gpus=1, seconds=1))
    await _until(lambda: _running(api, f"alone{number}-") == 8)
    return (time.perf_counter() - began) * 1e3


async def _crowd(api: Api, client: Client, count: int) -> float:
    began = time.perf_counter()

    async def submit(first: int) -> None:
        for number in range(first, count, 16):
            await client.create(gang.job(f"crowd{number}", pods=2, gpus=1, seconds=3600))

    await asyncio.gather(*(submit(first) for first in range(16)))
    await _until(lambda: _committed(api) >= count)
    return count / (time.perf_counter() - began)


def _running(api: Api, prefix: str) -> int:
    return sum(
        record.name.startswith(prefix) and b'"phase":"Running"' in record.data
        for record in api.store.listing("/pods")
    )


def _committed(api: Api) -> int:
    return sum(
        b"job-crowd" in record.data and b'"reason":"Committed"' in record.data
        for record in api.store.listing("kueue.x-k8s.io/workloads")
    )


async def _until(is_so: Any) -> None:
    deadline = time.perf_counter() + _PATIENCE_S
    while not is_so():
        assert time.perf_counter() < deadline, "the gangs do not start"
        await asyncio.sleep(0.005)
