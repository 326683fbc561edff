"""Controllers on a running API: informers fill the view, workers empty the queue of keys."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from unisono.control.actions import Json, Note
from unisono.control.conditions import seconds
from unisono.control.controller import Controller
from unisono.control.names import WORKLOAD
from unisono.control.reconciling.driver import PASSING, Driver, Outcome
from unisono.control.reconciling.event_routing import Task
from unisono.control.view import Index, KindStore, Packed, Packing, Stored, View, wrapped
from unisono.kube.cache import Delta, Store
from unisono.kube.client import Client
from unisono.kube.clock import Clock, guarded
from unisono.kube.errors import Conflict, Expired
from unisono.kube.events import Recorder
from unisono.kube.form import Identity, Key
from unisono.kube.informer import Informer
from unisono.kube.mapping import Kind
from unisono.kube.workqueue import Workers

# So many keys are worked on at once; writes of different keys then share a commit, or a connection.
WORKERS = 64
_MOST_COLLISIONS = 10
_AFTER_COLLISION_SECONDS = 0.002
_NOWHERE: Mapping[Kind, str] = {}


class LiveControllers:
    """Owns the informers, the view and the driver."""

    def __init__(
        self,
        client: Client,
        kinds: Iterable[Kind],
        *,
        clock: Clock,
        random_source: random.Random,
        indexes: Mapping[Kind, Mapping[str, Index]],
        report: Callable[[Task, Exception], None],
        stored: Callable[[Kind, Identity], Stored | None] | None = None,
        may_lack_kinds: bool = False,
        unread: Iterable[Kind] = (),
        namespaces: Mapping[Kind, str] = _NOWHERE,
        resume_from: Callable[[float], None] | None = None,
    ) -> None:
        """Watch these kinds; `indexes` are those beyond the common ones.

        `report` is called when a controller fails in a way that it should not. `stored` has the
        objects, if the API's store is in this process. With `may_lack_kinds` a kind that the API
        does not serve counts as empty; those of `unread` look so because they are not ours to read.
        A kind of `namespaces` is followed in that namespace alone, for the same reason.
        `resume_from` is told, before the work begins, when a workload was written last: our clock
        may have been set back since.
        """
        self._report = report
        self._resume_from = resume_from
        self.crashes = Crashes()
        self._client = client
        self._clock = clock
        self._random_source = random_source
        self._stored = stored
        self._tasks: asyncio.TaskGroup | None = None
        self._drivers: list[Driver] = []
        self._informers: dict[Kind, Informer[Packed]] = {}
        stores: dict[Kind, KindStore] = {}
        for kind in dict.fromkeys(kinds):
            packing = Packing(*kind, partial(stored, kind) if stored is not None else None)
            informer = Informer(
                client,
                kind,
                packing,
                clock=clock,
                random_source=random_source,
                namespace=namespaces.get(kind, ""),
                indexes=wrapped(packing, self._guarded(kind, indexes.get(kind, {}))),
                may_be_absent=may_lack_kinds,
            )
            self._informers[kind] = informer
            stores[kind] = KindStore(packing, informer.store)
        for kind in unread:
            packing = Packing(*kind)
            stores[kind] = KindStore(
                packing, Store(packing, wrapped(packing, {})), is_followed=False
            )
        self.view = View(stores)
        self._recorder = Recorder(client, clock=clock)

    def driver(self, controllers: Sequence[Controller], lanes: Mapping[str, int]) -> Driver:
        """Return what runs the controllers; changes wake them from now on."""
        driver = self._driver(controllers, lanes)
        for kind, informer in self._informers.items():
            informer.on_change(self._to(driver, kind))
        self._drivers.append(driver)
        return driver

    async def driver_in_steps(
        self, controllers: Sequence[Controller], lanes: Mapping[str, int]
    ) -> Driver:
        """Return the same; a lease is renewed while existing objects wake the controllers."""
        driver = self._driver(controllers, lanes)
        for kind, informer in self._informers.items():
            await informer.on_change_fairly(self._to(driver, kind))
        self._drivers.append(driver)
        return driver

    def follow_too(self, kind: Kind) -> None:
        """Follow one more kind, from now on; it may not be served yet, or not be ours to read."""
        if self.view.has(kind):
            return
        stored = partial(self._stored, kind) if self._stored is not None else None
        packing = Packing(*kind, stored)
        informer = Informer(
            self._client,
            kind,
            packing,
            clock=self._clock,
            random_source=self._random_source,
            indexes=wrapped(packing, {}),
            may_be_absent=True,
        )
        self._informers[kind] = informer
        self.view.add(kind, KindStore(packing, informer.store))
        for driver in self._drivers:
            informer.on_change(self._to(driver, kind))
        if self._tasks is not None:
            self._tasks.create_task(informer.run())

    def _driver(self, controllers: Sequence[Controller], lanes: Mapping[str, int]) -> Driver:
        return Driver(
            controllers,
            self.view,
            self._client,
            clock=self._clock,
            notes=self._note,
            lanes=lanes,
            report=self._report,
            follow=self.follow_too,
        )

    def _guarded(self, kind: Kind, indexes: Mapping[str, Index]) -> Mapping[str, Index]:
        """Return indexes that leave out objects they fail on: a bad one must not end a watch."""

        def guard(index: Index) -> Index:
            def entries(obj: Json) -> Iterable[str]:
                try:
                    return [*index(obj)]
                except Exception as error:  # noqa: BLE001 (the object stays, found by name)
                    self._report(Task("index", Key("", kind.kind)), error)
                    return ()

            return entries

        return {name: guard(index) for name, index in indexes.items()}

    async def run(self, driver: Driver) -> None:
        """Follow the API and work until cancelled; work begins when the view is whole."""
        await guarded(self.follow(), self.work(driver))

    async def follow(self) -> None:
        """Keep the view up to date and write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run())
            tasks.create_task(self._recorder.run())
            self._tasks = tasks

    async def synced(self) -> None:
        """Wait until the view is whole."""
        for informer in tuple(self._informers.values()):
            await informer.synced()

    async def work(self, driver: Driver, stop: asyncio.Event | None = None) -> None:
        """Work once the view is whole, until told to stop: then what was begun is finished."""
        await self.synced()
        if self._resume_from is not None:
            self._resume_from(last_written(self.view))
        await work(driver, self._clock, WORKERS, self._report, stop, self.crashes)
        await self._recorder.flush()

    @property
    def informers(self) -> Mapping[Kind, Informer[Packed]]:
        """What follows each kind, for health and metrics."""
        return self._informers

    def _to(self, driver: Driver, kind: Kind) -> Callable[[Delta[Packed]], None]:
        return lambda delta: driver.changed(kind, self.view.unpacked(kind, (delta,)))

    def _note(self, note: Note) -> None:
        about = self.view.raw(note.about.kind, note.about.name, note.about.namespace)
        if about is not None:
            self._recorder.record(
                about, note.type, note.reason, note.message, instead_of=note.instead_of
            )


def last_written(view: View) -> float:
    """Return the latest time that a condition of a workload has; 0 without any.

    Only we write these: a tenant could put any time into what is a job's own.
    """
    return max(
        (
            seconds(one.get("lastTransitionTime") or "")
            for workload in view.all(WORKLOAD)
            for one in (workload.get("status") or {}).get("conditions") or ()
        ),
        default=0.0,
    )


# A bug of ours does not go away by itself, and retries of such keys must not use up the rate that
# all retries share. So each waits on its own: a second at first, five minutes at most.
_AFTER_CRASH_SECONDS = 1.0
_LONGEST_AFTER_CRASH_SECONDS = 300.0


class Crashes:
    """Keys on which a controller fails again and again; all others are worked on."""

    def __init__(self) -> None:
        """Begin with none."""
        self._times: dict[Task, int] = {}

    def __len__(self) -> int:
        """Return how many keys failed the last time that they were worked on."""
        return len(self._times)

    def add(self, task: Task) -> float:
        """Note one more; return after how many seconds to try again."""
        times = self._times[task] = self._times.get(task, 0) + 1
        return min(_AFTER_CRASH_SECONDS * 2.0 ** min(times - 1, 32), _LONGEST_AFTER_CRASH_SECONDS)

    def forget(self, task: Task) -> None:
        """Note that a key is well."""
        self._times.pop(task, None)


async def work(
    driver: Driver,
    clock: Clock,
    count: int,
    report: Callable[[Task, Exception], None],
    stop: asyncio.Event | None = None,
    crashes: Crashes | None = None,
) -> None:
    """Work on the queue with several workers, until cancelled or told to stop."""
    crashed = crashes if crashes is not None else Crashes()
    collisions: dict[Task, int] = {}

    async def attend(task: Task) -> float | None:
        outcome = Outcome(task)
        try:
            await driver.attend(task, outcome)
        except (Conflict, Expired):
            # Two tasks wrote to one object, or something changed that a decision depended on. The
            # view knows the newer state already, so there is nothing to wait for; but a task that
            # keeps colliding is sent to the end of the queue.
            collisions[task] = collisions.get(task, 0) + 1
            if collisions[task] > _MOST_COLLISIONS:
                del collisions[task]
                raise
            return _AFTER_COLLISION_SECONDS
        except PASSING as error:
            outcome.error = error
            driver.on_outcome(outcome)
            raise
        except Exception as error:  # noqa: BLE001 (one key must not stop the others)
            report(task, error)
            again = crashed.add(task)
            driver.tell_of_crash(task, error, again)
            return again
        collisions.pop(task, None)
        crashed.forget(task)
        return None

    workers = Workers(driver.queue, attend, clock=clock, count=count, retry_on=PASSING)
    if stop is None:
        await workers.run()
        return
    async with asyncio.TaskGroup() as tasks:
        stopping = tasks.create_task(_stop_on(stop, workers))
        await workers.run()
        stopping.cancel()


async def _stop_on(stop: asyncio.Event, workers: Workers[Task]) -> None:
    await stop.wait()
    workers.stop()
