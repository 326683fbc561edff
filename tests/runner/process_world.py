"""A cluster in one process whose pods are real processes, on the real clock."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import SYSTEM, bootstrap
from unisono.apiserver.request import User
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.store import Store
from unisono.control.assembly import EMBEDDED_KINDS, INDEXES, LANES, embedded
from unisono.control.names import POD
from unisono.control.reconciling.workers import LiveControllers
from unisono.kinds.policy.settings import DEFAULTS
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.errors import NotFound
from unisono.kube.form import Json, Key
from unisono.kube.mapping import Kind
from unisono.kube.priority_lanes import Lanes
from unisono.runner.addresses import Addresses
from unisono.runner.logs import LogFolder
from unisono.runner.process.kubelet import KubeletOptions
from unisono.runner.process.launch import Alias, Tier
from unisono.runner.process.machine import has_sandbox
from unisono.runner.process.runner import process_runner
from unisono.runner.simulated.kubelet import SimulatedKubelet, Simulation
from unisono.runtime.clock import RealClock
from unisono.runtime.embedded.in_process import InProcess
from unisono.runtime.ids import new_uid

HAS_ROOMS = has_sandbox()
# What a loaded machine may take for a few processes.
_PATIENCE_SECONDS = 60.0


class ProcessWorld:
    """The API, the controllers and the machine."""

    def __init__(
        self, directory: Path, tier: Tier, aliases: tuple[Alias, ...] = (), **more: Any
    ) -> None:
        self.directory = directory
        self.errors: list[Exception] = []
        self.clock = RealClock()
        self._addresses = Addresses()
        self.runner = process_runner(
            directory,
            directory / "logs",
            now=self.clock.now,
            env=os.environ,
            addresses=self._addresses,
            options=KubeletOptions(lost_after_s=1.0, asks_after_s=0.2),
            host_paths=(str(directory / "host"),),
            aliases=aliases,
            tier=tier,
            is_root=os.geteuid() == 0,
            **more,
        )
        self.machine = self.runner.machine

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ProcessWorld]:
        """Run it while the block lasts; processes live on afterwards."""
        self.store = Store(Database(self.directory / "state.db", is_power_safe=False))
        api = Api(
            self.store,
            Environment(clock=self.clock.now, new_uid=new_uid, random_source=random.Random(7)),
        )
        await bootstrap(api)
        self._api = api
        self.client: Client = client_over(
            InProcess(api, SYSTEM),
            clock=self.clock,
            random_source=random.Random(7),
            lanes=Lanes(self.clock, rate=math.inf),
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(self._work())
                yield self
                work.cancel()
        finally:
            await self.store.committed()
            self.store.close()
        assert not self.errors, self.errors

    async def _work(self) -> None:
        live = LiveControllers(
            self.client,
            EMBEDDED_KINDS,
            clock=self.clock,
            random_source=random.Random(7),
            indexes=INDEXES,
            report=lambda task, error: self.errors.append(error),
        )
        self.simulated = SimulatedKubelet(
            Simulation(default="process"),
            addresses=self._addresses,
            logs=LogFolder(self.directory / "logs"),
        )
        assembly = embedded(live.view, DEFAULTS)
        ours = (self.runner.kubelet, self.runner.checkpoints, self.simulated)
        driver = live.driver((*assembly.controllers, *ours), LANES)
        self.recovered = self.runner.begin(
            lambda namespace, pod: driver.want("process-kubelet", Key(namespace, pod))
        )
        await live.run(driver)

    def acting_as(self, name: str) -> Client:
        """Return a client of one of several people."""
        return client_over(
            InProcess(self._api, User(name=name)),
            clock=self.clock,
            random_source=random.Random(7),
            lanes=Lanes(self.clock, rate=math.inf),
        )

    # ---- looking ------------------------------------------------------------------------------

    async def get(self, kind: Kind, name: str) -> Json | None:
        with contextlib.suppress(NotFound):
            return await self.client.get(kind, name, "default")
        return None

    async def pod(self, name: str, holds: Callable[[Json | None], bool]) -> Json:
        """Wait until something holds of a pod."""
        return await self.until(POD, name, holds)

    async def until(self, kind: Kind, name: str, holds: Callable[[Json | None], bool]) -> Json:
        """Wait until something holds of an object."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            found = await self.get(kind, name)
            if holds(found):
                return found or {}
            if self.errors:
                raise self.errors[0]
            if time.monotonic() > end:
                raise AssertionError(f"{kind.kind} {name} after a long wait: {found}")
            await asyncio.sleep(0.02)

    async def ended(self, name: str) -> Json:
        """Wait for the end of a pod."""
        return await self.pod(name, lambda pod: phase(pod) in ("Succeeded", "Failed"))

    async def ran(self, manifest: Json) -> Json:
        """Create a pod and wait for its end."""
        await self.client.create(manifest)
        return await self.ended(manifest["metadata"]["name"])

    def log(self, pod: Json, container: str = "main", *, previous: bool = False) -> str:
        """Return what a container wrote, without times."""
        ending = ".previous.log" if previous else ".log"
        metadata = pod["metadata"]
        path = self.directory / "logs" / "default" / metadata["uid"] / f"{container}{ending}"
        return "".join(line.partition(" ")[2] for line in path.read_text().splitlines(True))


def phase(pod: Json | None) -> str:
    """Return the phase of a pod; `gone` if there is none."""
    return str(pod["status"].get("phase")) if pod is not None else "gone"


def state(pod: Json, container: str = "main") -> Json:
    """Return the state of a container."""
    statuses = [
        *(pod["status"].get("initContainerStatuses") or ()),
        *(pod["status"].get("containerStatuses") or ()),
    ]
    found: Json = next(one["state"] for one in statuses if one["name"] == container)
    return found
