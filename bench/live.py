"""Live gangs on the embedded cluster: from a submitted job to pods that run (simulated)."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from bench.harness import Finding, Note, Scale, figures, target
from unisono.apiserver.api import Api
from unisono.apiserver.storage.record import Change
from unisono.cli.demo import stories
from unisono.cli.demo.stage import own_client
from unisono.control.actions import Steps
from unisono.control.scheduler.loop import Scheduler
from unisono.control.view import View
from unisono.kube.client import Client
from unisono.kube.form import Key
from unisono.provision.catalog.nodes import nodes_of, parse_shape
from unisono.runtime.embedded.server import Choices, running
from unisono.runtime.instance import Instance
from unisono.runtime.memory import calm_collector

NODES: dict[Scale, int] = {"full": 1000, "quick": 100, "tiny": 4}
JOBS: dict[Scale, int] = {"full": 1000, "quick": 100, "tiny": 2}
ALONE: dict[Scale, int] = {"full": 20, "quick": 5, "tiny": 1}
_PATIENCE_S = 600.0
_QUIET_S = 1.0


@dataclass(slots=True)
class Crowd:
    """What became of many jobs that were submitted at once."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    writes: Counter[str] = field(default_factory=Counter)  # by kind, all that was stored
    cycles_ms: list[float] = field(default_factory=list)  # how long the scheduler held the loop


def measure(scale: Scale) -> Iterator[Finding]:
    """Submit gangs one by one, then many at once."""
    alone, crowd = uvloop.run(_measure(scale))
    jobs = JOBS[scale]
    started = figures("submitted to running, alone", 8, "pods", alone, "ms")
    yield started
    yield target("8-pod gang to running", started, 300, better="below")
    rate = jobs / crowd.seconds
    many = figures("gangs of 2 committed a second, all at once", jobs, "jobs", [rate], "1/s")
    yield many
    yield target("gangs a second", many, 100, better="above")
    spent = crowd.cpu_seconds / jobs * 1e3
    yield figures("processor time for each of them", jobs, "jobs", [spent], "ms")
    yield figures("one go of the scheduler", jobs, "jobs", crowd.cycles_ms, "ms")
    longest = figures("the longest of them", jobs, "jobs", [max(crowd.cycles_ms)], "ms")
    yield longest
    yield target("no cycle longer than", longest, 100, better="below")
    total = sum(crowd.writes.values()) / jobs
    kinds = ", ".join(f"{count / jobs:.2f} {kind}" for kind, count in crowd.writes.most_common())
    p99 = sorted(crowd.cycles_ms)[len(crowd.cycles_ms) * 99 // 100]
    yield Note(f"99 of 100 goes of the scheduler take at most {p99:.1f} ms of processor time")
    yield Note(f"writes for each gang of 2: {total:.1f} ({kinds})")


async def _measure(scale: Scale) -> tuple[list[float], Crowd]:
    shape = parse_shape(f"{NODES[scale]}x{{gpu=8,cpu=96,memory=512Gi}}")
    with tempfile.TemporaryDirectory() as directory:
        instance = Instance(Path(directory) / "data")
        instance.prepare()
        nodes = list(nodes_of(shape, now="2026-01-01T00:00:00Z"))
        async with running(instance, Choices(), nodes) as cluster:
            client = own_client(cluster.api)
            for obj in stories.queue("1000000"):
                await client.create(obj)
            await _rest(cluster.api)
            calm_collector()  # as `unisono up` does once it is at work
            alone = [await _alone(cluster.api, client, number) for number in range(ALONE[scale])]
            await _rest(cluster.api)
            return alone, await _crowd(cluster.api, client, JOBS[scale])


async def _alone(api: Api, client: Client, number: int) -> float:
    name = f"alone{number}-"
    began = time.perf_counter()
    with _counting(api, "/pods", name, b'"phase":"Running"') as pods:
        await client.create(stories.job(f"alone{number}", pods=8, gpus=1, seconds=1))
        await _until(lambda: len(pods) == 8)
    return (time.perf_counter() - began) * 1e3


async def _crowd(api: Api, client: Client, count: int) -> Crowd:
    crowd = Crowd()

    async def submit(first: int) -> None:
        for number in range(first, count, 16):
            await client.create(stories.job(f"crowd{number}", pods=2, gpus=1, seconds=3600))

    def written(change: Change) -> None:
        crowd.writes[change.record.key[0].rpartition("/")[2]] += 1

    api.store.on_change.append(written)
    with (
        _timed_cycles(crowd.cycles_ms),
        _counting(api, "kueue.x-k8s.io/workloads", "job-crowd", b'"reason":"Committed"') as gangs,
    ):
        began, spent = time.perf_counter(), time.process_time()
        await asyncio.gather(*(submit(first) for first in range(16)))
        await _until(lambda: len(gangs) >= count)
        crowd.seconds = time.perf_counter() - began
        crowd.cpu_seconds = time.process_time() - spent
    await _rest(api)  # writes that come after the commit are this crowd's, too
    api.store.on_change.remove(written)
    return crowd


@contextlib.contextmanager
def _counting(api: Api, kind: str, prefix: str, text: bytes) -> Iterator[set[str]]:
    """Collect the names of objects of a kind that begin so and have had a text in their JSON."""
    found: set[str] = set()

    def look(change: Change) -> None:
        record = change.record
        if record.key[0] == kind and record.name.startswith(prefix) and text in record.data:
            found.add(record.name)

    api.store.on_change.append(look)
    try:
        yield found
    finally:
        api.store.on_change.remove(look)


@contextlib.contextmanager
def _timed_cycles(cycles_ms: list[float]) -> Iterator[None]:
    """Note how long the scheduler works each time before it lets others do something."""
    reconcile = Scheduler.reconcile

    def timed(self: Scheduler, key: Key, view: View, now: float) -> Steps:
        steps, result = reconcile(self, key, view, now), None
        while True:
            began = time.thread_time()  # whatever else the machine is busy with
            try:
                action = steps.send(result)
            except StopIteration:
                return
            finally:
                cycles_ms.append((time.thread_time() - began) * 1e3)
            result = yield action

    Scheduler.reconcile = timed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Scheduler.reconcile = reconcile  # type: ignore[method-assign]


async def _rest(api: Api) -> None:
    """Wait until nothing was written for a while."""
    seen, since = api.store.rv, time.perf_counter()
    while time.perf_counter() - since < _QUIET_S:
        await asyncio.sleep(0.05)
        if api.store.rv != seen:
            seen, since = api.store.rv, time.perf_counter()


async def _until(is_so: Callable[[], Any]) -> None:
    deadline = time.perf_counter() + _PATIENCE_S
    while not is_so():
        assert time.perf_counter() < deadline, "the gangs do not start"
        await asyncio.sleep(0.005)
