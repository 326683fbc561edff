"""A whole control plane in one process, step by step, on a clock that jumps.

    world = World()
    async with world.running():
        await world.create(job)
        await world.settle()                # until no controller has anything left to do
        await world.pass_time(60)           # the clock jumps; whoever waited for it wakes up
        world.get(JOB, "train")

The API is the embedded one, the controllers are the real ones; only the runner is the test's. Every
write is durable before the next step, so a test may throw the controllers away at any point
(`restart`) and go on with what is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from tests.support.least_privilege import AsInstalled, Declared
from unisono.apiserver.access.authenticate import Authenticator
from unisono.apiserver.access.authorize import authorizer_for
from unisono.apiserver.access.reviews import RoleBasedAccess
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import SYSTEM, bootstrap
from unisono.apiserver.rest.versions import shown
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.record import Kind as ChangeKind
from unisono.apiserver.storage.store import Store
from unisono.control.actions import Note
from unisono.control.assembly import INDEXES, KINDS, LANES, Assembly, embedded
from unisono.control.view import Index, Shelf, View
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.lanes import Lanes
from unisono.kube.mapping import Kind
from unisono.kube.transport import Transport
from unisono.runtime.embedded.in_process import InProcess

Json = dict[str, Any]
START = 1_700_000_000.0


class Jumping:
    """A clock that stands still unless somebody moves it."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class World:
    """The API, the view and the driver."""

    def __init__(
        self,
        *,
        settings: Settings = DEFAULTS,
        assemble: Callable[[View, Settings], Assembly] = embedded,
        kinds: Sequence[Kind] = KINDS,
        indexes: Mapping[Kind, Mapping[str, Index]] = INDEXES,
        wrap: Callable[[Transport], Transport] = lambda transport: transport,
        installed: Sequence[Json] = (),
    ) -> None:
        """`wrap` may put something between the controllers and the API, to disturb them.

        With roles and bindings that were `installed`, the API asks them about every request of a
        controller that works on real clusters (`tests.support.least_privilege`).
        """
        self._wrap = wrap
        self._installed = installed
        self.clock = Jumping()
        self.notes: list[Note] = []
        self._settings = settings
        self._assemble = assemble
        self._kinds = kinds
        self._indexes = indexes
        self._uid = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[World]:
        self.store = Store(Database(":memory:"))
        authorizer = authorizer_for(self.store) if self._installed else None
        self.api = Api(
            self.store,
            Environment(
                clock=self.clock.now,
                new_uid=self._new_uid,
                chance=random.Random(7),
                reviews=RoleBasedAccess(authorizer, Authenticator({})),
            ),
        )
        await bootstrap(self.api)
        plain = InProcess(self.api, SYSTEM, is_checked=True)
        self.client = self._client_over(plain)  # the test's own, which nothing disturbs
        for obj in self._installed:
            await self.client.create(obj)
        as_installed = AsInstalled(self.api, lambda: self.driver.at_work)
        self._controllers = self._client_over(
            as_installed if self._installed else self._wrap(plain)
        )
        self.restart()
        try:
            yield self
        finally:
            await self.store.landed()
            self.store.close()

    def _client_over(self, transport: Transport) -> Client:
        return client_over(
            transport,
            clock=self.clock,
            chance=random.Random(7),
            lanes=Lanes(self.clock, rate=math.inf),
        )

    def _new_uid(self) -> str:
        self._uid += 1
        return f"00000000-0000-4000-8000-{self._uid:012d}"

    def restart(self) -> None:
        """Forget everything in memory and begin with what is stored, as after a crash."""
        self.view = View(
            {kind: Shelf.of(kind, self._indexes.get(kind, {})) for kind in self._kinds}
        )
        self.assembly = self._assemble(self.view, self._settings)
        self.driver = Declared(
            self.assembly.controllers,
            self.view,
            self._controllers,
            clock=self.clock,
            notes=self.notes.append,
            lanes=LANES,
        )
        self._seen: dict[Kind, int] = {}
        for kind in self._kinds:
            resource = self._resource(kind)
            self._seen[kind] = self.store.rv
            for record in self.store.listing(resource.key):
                self.driver.changed(kind, self.view.upsert(kind, shown(record, resource)))

    def _resource(self, kind: Kind) -> Any:
        group, _, version = kind.api_version.rpartition("/")
        for served in self.api.catalogue.served():
            if (served.group, served.version, served.kind) == (group, version, kind.kind):
                return self.api.catalogue.find(group, version, served.plural)
        raise AssertionError(f"{kind} is not served")

    # ---- time and steps ----------------------------------------------------------------------

    def pump(self) -> bool:
        """Let the controllers see what was committed; say whether there was anything."""
        anything = False
        for kind in self._kinds:
            resource = self._resource(kind)
            for change in self.store.history(resource.key).after(self._seen[kind]):
                obj = shown(change.record, resource)
                gone = change.kind is ChangeKind.DELETED
                heard = self.view.remove(kind, obj) if gone else self.view.upsert(kind, obj)
                self.driver.changed(kind, heard)
                self._seen[kind] = change.rv
                anything = True
        return anything

    async def settle(self, most: int = 20_000) -> None:
        """Work until nobody has anything left to do at this time."""
        for _ in range(most):
            await self.store.landed()
            for _ in range(5):
                await asyncio.sleep(0)  # what follows from changes inside the API
            heard = self.pump()
            outcome = await self.driver.step()
            if outcome is None and not heard and self.api.garbage_collector.is_idle:
                await self.store.landed()
                if not self.pump():
                    return
        raise AssertionError(f"the controllers do not come to rest after {most} steps")

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, and let everybody react."""
        end = self.clock.time + seconds
        await self.settle()
        while True:
            due = self.driver.queue.next_due()
            if due is None or due > end:
                break
            self.clock.time = max(self.clock.time, due)
            await self.settle()
        self.clock.time = end
        await self.settle()

    # ---- objects -----------------------------------------------------------------------------

    async def create(self, *objects: Json) -> None:
        for obj in objects:
            await self.client.create(obj)
            self.clock.time += 1  # one after the other, as people do

    def get(self, kind: Kind, name: str, namespace: str = "default") -> Json:
        resource = self._resource(kind)
        place = namespace if resource.served.namespaced else ""
        record = self.store.get((resource.key, place, name))
        assert record is not None, f"there is no {kind.kind} {name}"
        return shown(record, resource)

    def every(self, kind: Kind) -> list[Json]:
        resource = self._resource(kind)
        return [shown(record, resource) for record in self.store.listing(resource.key)]

    async def set_status(
        self, kind: Kind, name: str, status: Json, namespace: str = "default"
    ) -> None:
        await self.client.patch(kind, name, namespace, {"status": status}, subresource="status")
