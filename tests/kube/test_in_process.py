"""The client and the embedded API in one process and in virtual time: hours in milliseconds."""

from __future__ import annotations

import asyncio
import math
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.kube.virtual import VirtualClock, run, settle
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import SYSTEM, bootstrap
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.kube import Client, Delta, Dicts, Informer, Kind, Lanes, client_over
from unisono.kube.errors import Conflict
from unisono.kube.form import Json
from unisono.runtime.embedded.in_process import InProcess

CONFIG = Kind("v1", "ConfigMap")


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    """Yield a client of a new, empty API."""
    store = Store(Database(":memory:"))
    random_source = random.Random(1)
    clock = VirtualClock()
    outside = Environment(
        clock=clock.now,
        new_uid=lambda: str(uuid.UUID(int=random_source.getrandbits(128), version=4)),
        random_source=random_source,
    )
    api = Api(store, outside)
    await bootstrap(api)
    try:
        yield client_over(
            InProcess(api, SYSTEM),
            clock=clock,
            random_source=random_source,
            lanes=Lanes(clock, rate=math.inf),
        )
        await store.committed()
    finally:
        store.close()


def config(name: str, **content: Any) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def test_a_cache_follows_for_hours() -> None:
    told: list[tuple[str, str]] = []

    def handler(delta: Delta[Json]) -> None:
        told.append((delta.what, delta.key.name))

    async def main() -> None:
        async with client() as made, asyncio.TaskGroup() as group:
            await made.create(config("a"))
            informer = Informer(
                made,
                CONFIG,
                Dicts(*CONFIG),
                clock=VirtualClock(),
                random_source=random.Random(1),
                fields="metadata.name!=kube-root-ca.crt",
            )
            informer.on_change(handler)
            task = group.create_task(informer.run())
            await informer.synced()
            for hour in range(5):
                await VirtualClock().sleep(3600)
                await made.apply(config("b", data={"hour": str(hour)}))
                await settle()
            await made.delete(CONFIG, "a", "default")
            await settle()
            task.cancel()
            assert informer.reflector.relists == 1
            assert informer.errors == 0
            assert informer.silent_for() < 1

    run(main())
    assert told == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        *[("MODIFIED", "b")] * 4,
        ("DELETED", "a"),
    ]


def test_two_writers_of_one_state_cannot_both_win() -> None:
    async def main() -> None:
        async with client() as made:
            read = await made.create(config("a"))
            await made.update({**read, "data": {"winner": "one"}})
            with pytest.raises(Conflict):
                await made.update({**read, "data": {"winner": "two"}})

    run(main())


def test_runs_are_the_same() -> None:
    async def main() -> list[Json]:
        async with client() as made:
            for name in "abc":
                await made.create(config(name))
            return (await made.list(CONFIG)).items

    assert run(main()) == run(main())
