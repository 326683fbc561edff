"""A cache that follows a collection of the API for ever, and tells what changes.

    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run())
        await informer.synced()
        …informer.store.by("node", "n1")…

All decisions are in `reflector`, all state is in `cache`; here is only the loop between them and
the API: open, read, notice silence, wait. Handlers are plain functions; they are called in order,
once per delta, and must be quick (put a key into a `WorkQueue`).
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Generic, TypeVar

from unisono.kube.cache import Change, Delta, Store
from unisono.kube.client import Client, selectors
from unisono.kube.clock import Clock, guarded
from unisono.kube.errors import KubeError, StatusError
from unisono.kube.form import Form
from unisono.kube.mapping import Kind
from unisono.kube.reflector import (
    PATIENCE_FOR_THE_HEAD_S,
    Page,
    Pause,
    Phase,
    Reflector,
    Watch,
)

T = TypeVar("T")

# After so long without a sign from the API the cache cannot be trusted (`/livez` fails).
STALE_AFTER_S = 600.0

# So many objects are told in one go: some milliseconds' worth.
MOST_TOLD = 64

_NOT_SERVED = 404

Handler = Callable[[Delta[T]], None]


class _Silence(Exception):
    """The stream has been silent for longer than a living one is."""


class Informer(Generic[T]):
    """The cache of one kind."""

    def __init__(
        self,
        client: Client,
        kind: Kind,
        form: Form[T],
        *,
        clock: Clock,
        random_source: random.Random,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
        resync_s: float | None = None,
        watch_list: bool = True,
        may_be_absent: bool = False,
    ) -> None:
        """Prepare; nothing is asked before `run`.

        A kind that `may_be_absent` and is not served counts as one without objects; it is asked for
        again and again, so that it is followed as soon as its CRD is there.
        """
        self._may_be_absent = may_be_absent
        self.is_absent = False  # the API does not serve the kind, as far as we know
        self.kind = kind
        self.store: Store[T] = Store(form, indexes)
        self.reflector: Reflector[T] = Reflector(
            form,
            random_source=random_source,
            selectors=selectors(labels, fields),
            watch_list=watch_list,
        )
        self.last_error: KubeError | None = None
        self.errors = 0
        # One try each: how often and how fast to try again is the reflector's to say.
        self._client = client.variant(most_tries=1)
        self._clock = clock
        self._namespace = namespace
        self._resync_s = resync_s
        self._handlers: list[Handler[T]] = []
        self._synced = asyncio.Event()

    # --- for its users --------------------------------------------------------------------

    def on_change(self, handler: Handler[T]) -> None:
        """Call this for every delta from now on; what is there already comes as ADDED."""
        for delta in self.store.resync():
            handler(Delta("ADDED", delta.key, new=delta.new))
        self._handlers.append(handler)

    async def on_change_fairly(self, handler: Handler[T]) -> None:
        """Do the same, and let others have their turns while what is there already is told.

        Meanwhile a handler may hear of a change before it hears that there is such an object.
        """
        self._handlers.append(handler)
        for number, key in enumerate(self.store.keys(), 1):
            there = self.store.get(key.name, key.namespace)
            if there is not None:
                handler(Delta("ADDED", key, new=there))
            if number % MOST_TOLD == 0:
                await asyncio.sleep(0)

    @property
    def has_synced(self) -> bool:
        """Whether the store has been whole at least once."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Wait until the store is whole."""
        await self._synced.wait()

    def silent_for(self) -> float:
        """Return how many seconds ago the API last showed that we follow it."""
        return self._clock.monotonic() - self.reflector.last_sign_at

    def is_stale(self) -> bool:
        """Say whether the cache has not followed for so long that it is not to be relied on."""
        is_followed = self.has_synced and not self.is_absent
        return is_followed and self.silent_for() > STALE_AFTER_S

    def assume(self, written: T) -> None:
        """Show what an own write returned at once, before the watch brings it."""
        self._tell(self.store.assume(written))

    def assume_deleted(self, gone: T) -> None:
        """Show at once that an own call deleted an object for good."""
        self._tell(self.store.assume_deleted(gone))

    # --- the loop --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow until cancelled."""
        if self._resync_s is None:
            await self._follow()
        else:
            await guarded(self._resync(self._resync_s), self._follow())

    async def _follow(self) -> None:
        while True:
            match self.reflector.ask(self._clock.monotonic()):
                case Pause(seconds):
                    await self._clock.sleep(seconds)
                case Page(query):
                    await self._attempt(self._list(query))
                case Watch(query):
                    await self._attempt(self._watch(query))

    async def _attempt(self, work: Coroutine[Any, Any, None]) -> None:
        """Do one thing, and tell the reflector how it ended."""
        try:
            await work
        except _Silence:
            self.reflector.expired(self._clock.monotonic())
        except StatusError as error:
            self._note(error)
            if error.code == _NOT_SERVED and self._may_be_absent:
                self.is_absent = True
                self._synced.set()
            self.reflector.refused(
                error.code, self._clock.monotonic(), retry_after_s=error.retry_after_s
            )
        except KubeError as error:
            self._note(error)
            self.reflector.lost(self._clock.monotonic())

    async def _list(self, query: Mapping[str, str]) -> None:
        body = await self._client.page(self.kind, self._namespace, query)
        self._take(self.reflector.page(body, self._clock.monotonic()))

    async def _watch(self, query: Mapping[str, str]) -> None:
        stream = self._client.stream(
            self.kind, self._namespace, query, timeout_s=PATIENCE_FOR_THE_HEAD_S
        )
        async with stream as answer:
            self.reflector.opened(self._clock.monotonic())
            await guarded(self._notice_silence(), self._read(answer.chunks))

    async def _read(self, chunks: AsyncIterator[bytes]) -> None:
        async for chunk in chunks:
            received = self.reflector.received(chunk, self._clock.monotonic())
            self._take(received.changes)
            if received.error is not None:
                self._note(received.error)
            if received.over:
                return
        self.reflector.closed(self._clock.monotonic())

    async def _notice_silence(self) -> None:
        while (left := self.reflector.deadline() - self._clock.monotonic()) > 0:
            await self._clock.sleep(max(left, 0.001))  # a tick at least, or rounding could spin
        raise _Silence

    async def _resync(self, every_s: float) -> None:
        while True:
            await self._clock.sleep(every_s)
            self._tell(self.store.resync())

    def _take(self, changes: Iterable[Change[T]]) -> None:
        for change in changes:
            self._tell(self.store.apply(change))
        if self.reflector.phase is Phase.FOLLOWING:
            self.is_absent = False
            if not self._synced.is_set():
                self._synced.set()

    def _tell(self, deltas: Iterable[Delta[T]]) -> None:
        for delta in deltas:
            for handler in self._handlers:
                handler(delta)

    def _note(self, error: KubeError) -> None:
        self.errors += 1
        self.last_error = error


# ---- all informers of a process ------------------------------------------------------------------


class Caches:
    """The informers of a process."""

    def __init__(self, informers: Sequence[Informer[Any]]) -> None:
        """Take them in; the order is that of reports."""
        self._informers = tuple(informers)

    async def run(self) -> None:
        """Run all of them until cancelled."""
        async with asyncio.TaskGroup() as group:
            for each in self._informers:
                group.create_task(each.run())

    async def synced(self) -> None:
        """Wait until all of them are whole.

        What they hold then mostly stays, so the collector need not look at it every time.
        """
        for each in self._informers:
            await each.synced()
        gc.freeze()

    def not_ready(self) -> Iterator[str]:
        """Yield what is not whole yet, and why, for `/readyz`."""
        for each in self._informers:
            if not each.has_synced:
                reason = f": {each.last_error}" if each.last_error is not None else ""
                yield f"{each.kind.kind} is not read yet{reason}"

    def stale(self) -> Iterator[str]:
        """Yield what has not followed the API for too long, for `/livez`."""
        for each in self._informers:
            if each.is_stale():
                yield f"{each.kind.kind} has had no sign of the API for {each.silent_for():.0f} s"

    def silent_for(self) -> dict[str, float]:
        """Return the seconds since the last sign, by kind: `informer_last_event_seconds`."""
        return {each.kind.kind: each.silent_for() for each in self._informers if each.has_synced}
