"""One process of the cluster under test: controllers, their view, their watches, their calls.

What a watch has not brought yet waits in `backlog`; what a controller asked of the API waits in
`calls`. Nothing happens by itself: the owner of the process says what comes next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from tests.faults.clock import SteadyClock, SteppedClock
from unisono.control import names
from unisono.control.actions import Note
from unisono.control.controller import Controller
from unisono.control.reconciling.driver import Driver
from unisono.control.reconciling.event_routing import Task
from unisono.control.reconciling.workers import last_written
from unisono.control.view import Index, KindStore, View
from unisono.kube.cache import Replace
from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.kube.transport import NOTHING, Answer, Stream

# A watch that resumes a little too early repeats so many changes, in their order.
_MOST_REPEATED = 4


@dataclass(frozen=True, slots=True)
class Change:
    """What a watch brings: an object as it is now, or as it last was."""

    obj: Json
    is_gone: bool


@dataclass(slots=True, eq=False)
class Call:
    """A request that waits to be carried out."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    answer: asyncio.Future[Answer]

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"


@dataclass(slots=True)
class Calls:
    """The transport of a process: requests wait here until they are carried out."""

    waiting: list[Call] = field(default_factory=list)

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
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.waiting.append(Call(method, path, query, headers, body, answer))
        return await answer

    def stream(self, *arguments: Any, **more: Any) -> AbstractAsyncContextManager[Stream]:
        raise AssertionError("watches do not go through here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a process runs."""

    name: str
    kinds: Sequence[Kind]
    indexes: Mapping[Kind, Mapping[str, Index]]
    lanes: Mapping[str, int]
    controllers: Callable[[View], Sequence[Controller]]
    workers: int


class Process:
    """A program that may be started, killed and started again."""

    def __init__(self, program: Program, client: Client, calls: Calls, clock: SteppedClock) -> None:
        self.program = program
        self.calls = calls
        self._client = client
        self._clock = clock
        self.notes: list[Note] = []
        self.is_up = False
        self.work: set[asyncio.Task[None]] = set()
        self.backlog: dict[Kind, deque[Change]] = {}
        self.quiet_until: dict[Kind, float] = {}
        self.broken: set[Kind] = set()
        self._past: dict[Kind, deque[Change]] = {}

    @property
    def name(self) -> str:
        return self.program.name

    # ---- starting and dying ------------------------------------------------------------------

    def start(self, listed: Callable[[Kind], Sequence[Json]]) -> None:
        """Begin with nothing but what the API lists."""
        program = self.program
        self._stores = {
            kind: KindStore.of(kind, program.indexes.get(kind, {})) for kind in program.kinds
        }
        self.view = View(self._stores)
        self._steady = SteadyClock(self._clock)
        self.driver = Driver(
            program.controllers(self.view),
            self.view,
            self._client,
            clock=self._steady,
            notes=self.notes.append,
            lanes=program.lanes,
        )
        self.backlog = {kind: deque() for kind in program.kinds}
        self.quiet_until, self.broken = {}, set()
        self._past = {kind: deque(maxlen=_MOST_REPEATED) for kind in program.kinds}
        self.is_up = True
        for kind in program.kinds:
            for obj in listed(kind):
                self.driver.changed(kind, self.view.upsert(kind, obj))
        if names.WORKLOAD in self._stores:
            self._steady.resume_from(last_written(self.view))

    def die(self) -> None:
        """Forget everything; calls that were not carried out never are."""
        self.is_up = False
        for task in self.work:
            task.cancel()
        self.work.clear()
        self.calls.waiting.clear()
        self.backlog = {}

    # ---- tasks -------------------------------------------------------------------------------

    @property
    def has_task(self) -> bool:
        """Whether there is a task, and a worker free for it."""
        if not self.is_up or len(self.work) >= self.program.workers:
            return False
        queue = self.driver.queue
        queue.follow(self._steady.now(), self._steady.monotonic())
        due = queue.next_due()
        return len(queue) > 0 or (due is not None and due <= self._clock.monotonic())

    def take(self) -> Task | None:
        """Return the next task."""
        return self.driver.queue.take(self._clock.monotonic())

    def next_due(self) -> float | None:
        """Return when time alone gives this process something to do."""
        if not self.is_up:
            return None
        times = [until for kind, until in self.quiet_until.items() if self._has_news(kind)]
        due = self.driver.queue.next_due()
        return min(times if due is None else [*times, due], default=None)

    def _has_news(self, kind: Kind) -> bool:
        return bool(self.backlog[kind]) or kind in self.broken

    # ---- watches -----------------------------------------------------------------------------

    def heard(self, kind: Kind, change: Change) -> None:
        """Put a change where the watch will find it, unless the watch is broken."""
        if self.is_up and kind in self.backlog and kind not in self.broken:
            self.backlog[kind].append(change)

    def talkative(self) -> list[Kind]:
        """Return the kinds whose watch has something to say now."""
        if not self.is_up:
            return []
        return [
            kind
            for kind in self.program.kinds
            if self._has_news(kind) and self.quiet_until.get(kind, 0.0) <= self._clock.monotonic()
        ]

    def break_watch(self, kind: Kind, until: float) -> None:
        """Lose what a watch had not brought; at a time it lists anew."""
        self.backlog[kind].clear()
        self.broken.add(kind)
        self.quiet_until[kind] = until

    def relist(self, kind: Kind, everything: Sequence[Json], version: int) -> None:
        """Take a new list for what a broken watch missed; nothing older is heard after it."""
        self.broken.discard(kind)
        self._past[kind].clear()
        kind_store = self._stores[kind]
        packed = tuple(kind_store.packing.pack(obj) for obj in everything)
        deltas = kind_store.objects.apply(Replace(packed, str(version)))
        self.driver.changed(kind, self.view.unpacked(kind, deltas))

    def deliver(self, kind: Kind, *, again: bool) -> None:
        """Let a watch say the next thing; `again` has it repeat the last few things after that."""
        change = self.backlog[kind].popleft()
        self._past[kind].append(change)
        for said in (change, *(self._past[kind] if again else ())):
            take = self.view.remove if said.is_gone else self.view.upsert
            self.driver.changed(kind, take(kind, said.obj))
