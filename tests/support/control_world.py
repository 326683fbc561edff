"""A whole control plane in one process, step by step, on a clock that jumps.

    world = World()
    async with world.running():
        await world.create(job)
        await world.settle()                # until no controller has anything left to do
        await world.pass_time(60)           # the clock jumps; timers that are due fire
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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any

import orjson

from unisono.apiserver.access.authorize import authorizer_for
from unisono.apiserver.access.filters import Authenticator
from unisono.apiserver.access.reviews import RoleBasedAccess
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import SYSTEM, bootstrap
from unisono.apiserver.request import User
from unisono.apiserver.rest.versions import shown
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.record import Kind as ChangeKind
from unisono.apiserver.storage.store import Store
from unisono.control.actions import Action, Bind, Create, Delete, Json, Note, Patch, Read, Together
from unisono.control.assembly import EMBEDDED_KINDS, INDEXES, LANES, Assembly, embedded
from unisono.control.rbac import KEYS, PARTS, WRITES, kinds_read, resource_of, row_of
from unisono.control.reconciling.driver import Driver, Outcome
from unisono.control.reconciling.event_routing import Task
from unisono.control.view import Index, KindStore, View
from unisono.kinds.overriding import override
from unisono.kinds.policy.settings import DEFAULTS, Settings
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.mapping import Kind
from unisono.kube.priority_lanes import Lanes
from unisono.kube.transport import NOTHING, Answer, Stream, Transport
from unisono.runtime.embedded.in_process import InProcess

HOME = "unisono-system"
ACCOUNT = User(
    name=f"system:serviceaccount:{HOME}:unisono",
    groups=("system:serviceaccounts", f"system:serviceaccounts:{HOME}", "system:authenticated"),
)
_FORBIDDEN = 403

One = tuple[str, str, str]  # group, resource, verb


@cache
def declared(controller: str) -> frozenset[One]:
    """Return what the table lets a controller write, in all parts of an installation."""
    rows = [row_of(controller, part) for part in WRITES if controller in WRITES[part]]
    return frozenset(
        (right.group, right.resource, verb)
        for right in (one for row in (*rows, KEYS) for one in row)
        for verb in right.verbs
    )


@cache
def ours() -> frozenset[str]:
    """Return the controllers that work on real clusters, too; the others are the laptop's."""
    return frozenset(name for rows in WRITES.values() for name in rows)


def needed(action: Action) -> Iterator[One]:
    """Yield what an API server asks for before it carries an action out."""
    match action:
        case Together(actions):
            for one in actions:
                yield from needed(one)
        case Create(obj):
            yield _one(Kind(obj["apiVersion"], obj["kind"]), "create")
            yield from _held_back(obj)
        case Patch(ref, changes, subresource):
            yield _one(ref.kind, "patch", subresource)
            yield from _held_back(changes)
        case Delete(ref):
            yield _one(ref.kind, "delete")
        case Bind():
            yield "", "pods/binding", "create"
        case Read(kind):
            assert kind in kinds_read(PARTS), f"{kind} is not ours to read"
        case _:
            pass  # events have a right of their own, and nothing else is written


def _held_back(obj: Json) -> Iterator[One]:
    """Yield the right to hold back the owners that are written."""
    for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("blockOwnerDeletion"):
            yield _one(Kind(owner["apiVersion"], owner["kind"]), "update", "finalizers")


def _one(kind: Kind, verb: str, below: str = "") -> One:
    group, plural = resource_of(kind)
    return group, f"{plural}/{below}" if below else plural, verb


class Declared(Driver):
    """Fails when a controller wants what its row does not say."""

    at_work = ""

    @override
    async def attend(self, task: Task, outcome: Outcome) -> None:
        self.at_work = task.controller
        await super().attend(task, outcome)

    @override
    async def _act(self, action: Action, task: Task) -> Any:
        if task.controller in ours():
            beyond = set(needed(action)) - declared(task.controller)
            assert not beyond, f"control.rights.WRITES does not let {task.controller} {beyond}"
        return await super()._act(action, task)


class AsInstalled:
    """A transport whose requests are those of our account while one of its controllers works."""

    def __init__(self, api: Api, at_work: Callable[[], str]) -> None:
        """Take the API and the controller at work; built-in controllers may do everything."""
        self._as_ours = InProcess(api, ACCOUNT, is_checked=True)
        self._as_system = InProcess(api, SYSTEM, is_checked=True)
        self._at_work = at_work

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> Answer:
        """Ask as the controller at work; what its account may not do fails the test."""
        carrier = self._carrier()
        answer = await carrier.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )
        if answer.code == _FORBIDDEN and carrier is self._as_ours:
            raise AssertionError(f"{self._at_work()}: {orjson.loads(answer.body)['message']}")
        return answer

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float | None = None,
    ) -> AsyncIterator[Stream]:
        """Ask and hand out the answer as it comes."""
        carried = self._carrier().stream(
            method, path, query=query, headers=headers, body=body, timeout=timeout
        )
        async with carried as stream:
            yield stream

    def _carrier(self) -> InProcess:
        return self._as_ours if self._at_work() in ours() else self._as_system


START = 1_700_000_000.0


class Jumping:
    """A clock that stands still unless the test moves it."""

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
        kinds: Sequence[Kind] = EMBEDDED_KINDS,
        indexes: Mapping[Kind, Mapping[str, Index]] = INDEXES,
        wrap: Callable[[Transport], Transport] = lambda transport: transport,
        installed: Sequence[Json] = (),
    ) -> None:
        """`wrap` may put something between the controllers and the API, to disturb them.

        With roles and bindings that were `installed`, the API asks them about every request of a
        controller that works on real clusters (`tests.support.control_world`).
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
                random_source=random.Random(7),
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
            await self.store.committed()
            self.store.close()

    def _client_over(self, transport: Transport) -> Client:
        return client_over(
            transport,
            clock=self.clock,
            random_source=random.Random(7),
            lanes=Lanes(self.clock, rate=math.inf),
        )

    def _new_uid(self) -> str:
        self._uid += 1
        return f"00000000-0000-4000-8000-{self._uid:012d}"

    def restart(self) -> None:
        """Forget everything in memory and begin with what is stored, as after a crash."""
        self.view = View(
            {kind: KindStore.of(kind, self._indexes.get(kind, {})) for kind in self._kinds}
        )
        self.assembly = self._assemble(self.view, self._settings)
        self.driver = Declared(
            self.assembly.controllers,
            self.view,
            self._controllers,
            clock=self.clock,
            notes=self.notes.append,
            lanes=LANES,
            follow=self._follow,
        )
        self._later: list[Kind] = []
        self._seen: dict[Kind, int] = {}
        for kind in self._kinds:
            resource = self._resource(kind)
            self._seen[kind] = self.store.rv
            for record in self.store.listing(resource.key):
                self.driver.changed(kind, self.view.upsert(kind, shown(record, resource)))

    def _follow(self, kind: Kind) -> None:
        """Show the controllers one more kind, once it is served."""
        if kind not in self._later:
            self._later.append(kind)
        if not self.view.has(kind):
            self.view.add(kind, KindStore.of(kind, {}))

    def _is_served(self, kind: Kind) -> bool:
        served = self.api.catalogue.served()
        return any((one.api_version, one.kind) == kind for one in served)

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
        for kind in (*self._kinds, *filter(self._is_served, self._later)):
            resource = self._resource(kind)
            self._seen.setdefault(kind, 0)
            for change in self.store.history(resource.key).after(self._seen[kind]):
                obj = shown(change.record, resource)
                gone = change.kind is ChangeKind.DELETED
                heard = self.view.remove(kind, obj) if gone else self.view.upsert(kind, obj)
                self.driver.changed(kind, heard)
                self._seen[kind] = change.rv
                anything = True
        return anything

    async def settle(self, most: int = 20_000) -> None:
        """Run controllers until none has anything left to do at this time."""
        for _ in range(most):
            await self.store.committed()
            for _ in range(5):
                await asyncio.sleep(0)  # what follows from changes inside the API
            heard = self.pump()
            outcome = await self.driver.step()
            if outcome is None and not heard and self.api.garbage_collector.is_idle:
                await self.store.committed()
                if not self.pump():
                    return
        raise AssertionError(f"the controllers do not come to rest after {most} steps")

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, and let all controllers react."""
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


class PassingOn:
    """Asks another transport."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def request(self, method: str, path: str, **more: Any) -> Answer:
        """Ask for an answer."""
        return await self._inner.request(method, path, **more)

    def stream(self, *arguments: Any, **more: Any) -> AbstractAsyncContextManager[Stream]:
        """Ask for a stream."""
        return self._inner.stream(*arguments, **more)
