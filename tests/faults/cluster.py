"""A cluster in one thread whose every move is drawn from a seed.

Two processes, the control plane and the runner of pods, work on the embedded API. Between any two
calls of one the other may go on, a watch may bring something or nothing, an answer may get lost,
and a process may be gone. Time moves when nothing is left to do. The same seed gives the
same moves, so a failure can be seen again, step by step.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import math
import random
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

import orjson

from tests.faults.clock import START, SteppedClock
from tests.faults.fault_rates import NO_FAULTS, FaultRates
from tests.faults.process import Call, Calls, Change, Process, Program
from unisono.apiserver.api import Api, Environment
from unisono.apiserver.bootstrap import SYSTEM, bootstrap
from unisono.apiserver.catalogue import Resource
from unisono.apiserver.rest.versions import shown
from unisono.apiserver.storage.database import Database
from unisono.apiserver.storage.record import Change as Stored
from unisono.apiserver.storage.record import Kind as ChangeKind
from unisono.apiserver.storage.store import Store
from unisono.control.assembly import EMBEDDED_KINDS, INDEXES, LANES, Assembly, embedded
from unisono.control.names import NODE, POD
from unisono.control.reconciling.driver import Driver
from unisono.control.reconciling.event_routing import Task
from unisono.control.view import View
from unisono.kinds.overriding import override
from unisono.kinds.policy.settings import DEFAULTS
from unisono.kube.client import Client
from unisono.kube.connect import client_over
from unisono.kube.errors import Unreachable
from unisono.kube.form import Json
from unisono.kube.mapping import Kind
from unisono.kube.priority_lanes import Lanes
from unisono.kube.transport import Answer, Transport
from unisono.runner.simulated.kubelet import SimulatedKubelet
from unisono.runtime.embedded.in_process import InProcess

Deed = Callable[["Cluster"], Awaitable[None]]
# More moves than this at one instant mean that the controllers never come to rest.
_MOST_MOVES = 20_000
# So many turns of the loop bring every coroutine from one call to its next.
_TURNS = 6
_LONGEST_SILENCE_S = 8.0
_MOST_SHOWN = 400
_DOWN_S = (0.0, 0.0, 2.0, 15.0)
# How late a request may arrive that its sender has given up: an API server drops it after a minute.
LATEST_S = 60.0


class Broken(Exception):
    """A promise was broken."""


class AtOnce(Executor):
    """Writes to the database in the caller's thread: no luck of timing enters."""

    @override
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class Cluster:
    """The API, the two processes, the rates of faults, and what is to happen when."""

    def __init__(self, seed: int, *, workers: int = 4, is_checked: bool = False) -> None:
        """`is_checked` has the API look at every write as if a stranger had made it."""
        self.clock = SteppedClock()
        self.chance = random.Random(seed)
        self.rates: FaultRates = NO_FAULTS
        self.moves = 0
        self.writes = 0
        self.deaths = 0
        self.trace: list[str] = []
        self.on_change: list[Callable[[Kind, Json | None, Json | None], None]] = []
        self.on_time: list[Callable[[], None]] = []
        self.fault_of: Callable[[Call], str] = self._fault
        self.down_s: Sequence[float] = _DOWN_S  # how long a dead process stays away
        self.broken: list[str] = []  # promises that were
        self.is_late = False  # what changes now was asked for long ago
        self._epoch = 0
        self._is_checked = is_checked
        self._workers = workers
        self._uid = 0
        self._timetable: list[tuple[float, int, str, Deed]] = []
        self._deeds = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Cluster]:
        """Run while the block lasts."""
        self.store = Store(Database(":memory:"))
        self.store._writer.shutdown()
        self.store._writer = AtOnce()  # type: ignore[assignment]  # it only ever submits
        outside = Environment(
            clock=self.clock.now,
            new_uid=self._new_uid,
            random_source=random.Random(self.chance.random()),
        )
        self.api = Api(self.store, outside)
        await bootstrap(self.api)
        self._plain = InProcess(self.api, SYSTEM, is_checked=self._is_checked)
        self.user = self._client_over(InProcess(self.api, SYSTEM, is_checked=True))
        self._resources = {kind: self._resource(kind) for kind in EMBEDDED_KINDS}
        self._kinds = {resource.key: kind for kind, resource in self._resources.items()}
        self.objects: dict[Kind, dict[tuple[str, str], Json]] = {
            kind: {_key(obj): obj for obj in self._listed(kind)} for kind in EMBEDDED_KINDS
        }
        self.store.on_change.append(self._changed)
        self.control = self._process(self._control_plane())
        self.runner = self._process(self._runner())
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for process in self.processes:
                    process.start(self._listed)
                try:
                    yield self
                finally:
                    for process in self.processes:
                        process.die()
        finally:
            await self.store.committed()
            self.store.close()

    @property
    def processes(self) -> tuple[Process, Process]:
        return self.control, self.runner

    @property
    def is_whole(self) -> bool:
        """Whether both processes run."""
        return self.control.is_up and self.runner.is_up

    # ---- parts -------------------------------------------------------------------------------

    def _control_plane(self) -> Program:
        def controllers(view: View) -> Sequence[Any]:
            self._epoch += 1  # each start is another leader
            self.assembly: Assembly = embedded(view, DEFAULTS, epoch=self._epoch)
            return self.assembly.controllers

        return Program(
            name="control",
            kinds=EMBEDDED_KINDS,
            indexes=INDEXES,
            lanes=LANES,
            controllers=controllers,
            workers=self._workers,
        )

    def _runner(self) -> Program:
        kinds = (POD, NODE)
        return Program(
            name="runner",
            kinds=kinds,
            indexes={kind: INDEXES[kind] for kind in kinds},
            lanes={},
            controllers=lambda view: (SimulatedKubelet(),),
            workers=self._workers,
        )

    def _process(self, program: Program) -> Process:
        calls = Calls()
        return Process(program, self._client_over(calls), calls, self.clock)

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

    def _resource(self, kind: Kind) -> Resource:
        group, _, version = kind.api_version.rpartition("/")
        for served in self.api.catalogue.served():
            if (served.group, served.version, served.kind) == (group, version, kind.kind):
                found = self.api.catalogue.find(group, version, served.plural)
                assert found is not None
                return found
        raise AssertionError(f"{kind} is not served")

    def _listed(self, kind: Kind) -> list[Json]:
        resource = self._resources[kind]
        return [shown(record, resource) for record in self.store.listing(resource.key)]

    def _changed(self, stored: Stored) -> None:
        """Hear of every change that is durable now; watches bring it later."""
        kind = self._kinds.get(stored.record.key[0])
        if kind is None:
            return
        obj = shown(stored.record, self._resources[kind])
        is_gone = stored.kind is ChangeKind.DELETED
        objects = self.objects[kind]
        old = objects.pop(_key(obj), None)
        if not is_gone:
            objects[_key(obj)] = obj
        for process in self.processes:
            process.heard(kind, Change(obj, is_gone))
        for listener in self.on_change:
            listener(kind, old, None if is_gone else obj)

    # ---- what is to happen -------------------------------------------------------------------

    def at(self, time: float, what: str, deed: Deed) -> None:
        """Have something happen at a time."""
        self._deeds += 1
        heapq.heappush(self._timetable, (time, self._deeds, what, deed))

    def note(self, text: str) -> None:
        """Write a line of the story down."""
        self.trace.append(f"{self.clock.time - START:9.3f}  {text}")

    async def kill(self, process: Process) -> None:
        """Kill a process; some of its calls are on their way already. It comes back later."""
        if not process.is_up:
            return
        self.deaths += 1
        for call in list(process.calls.waiting):
            if call.is_write and self.chance.random() < 0.5:
                self._note_call(process, call, "dies after")
                await self._ask(call)
        down = self.chance.choice(self.down_s)
        self.note(f"{process.name} dies, for {down:g} s")
        process.die()

        async def revive(_: Cluster) -> None:
            process.start(self._listed)

        self.at(self.clock.time + down, f"{process.name} starts", revive)

    # ---- time --------------------------------------------------------------------------------

    async def pass_time(self, seconds: float) -> None:
        """Let all processes work, and time pass between."""
        end = self.clock.time + seconds
        while True:
            await self._come_to_rest()
            if await self._do_what_is_due():
                continue
            due = self._next_due()
            if due is None or due > end:
                break
            self._move_to(due)
        self._move_to(end)
        await self._come_to_rest()

    def _move_to(self, time: float) -> None:
        if time > self.clock.time:
            self.clock.move(time)
            for listener in self.on_time:
                listener()

    def _next_due(self) -> float | None:
        times = [
            due
            for due in (
                self.clock.next_due(),
                *(process.next_due() for process in self.processes),
                self._timetable[0][0] if self._timetable else None,
            )
            if due is not None and due > self.clock.time  # else another process is waited for
        ]
        return min(times, default=None)

    async def _do_what_is_due(self) -> bool:
        """Do what the timetable has for now; say whether there was anything."""
        anything = False
        while self._timetable and self._timetable[0][0] <= self.clock.time:
            _, _, what, deed = heapq.heappop(self._timetable)
            self.note(f"* {what}")
            await deed(self)
            await self._breathe()
            anything = True
        return anything

    # ---- moves -------------------------------------------------------------------------------

    async def _come_to_rest(self) -> None:
        """Make moves until nothing is left to do at this time."""
        for _ in range(_MOST_MOVES):
            if self.broken:
                raise Broken(self.broken[0])
            if not await self._move():
                await self._breathe(3 * _TURNS)
                if not await self._move():
                    return
        raise Broken(f"the controllers do not come to rest after {_MOST_MOVES} moves")

    async def _move(self) -> bool:
        """Make one move of those that can be made now; say whether there was one."""
        moves: list[Callable[[], Awaitable[None]]] = []
        for process in self.processes:
            if process.has_task:
                moves.append(partial(self._begin, process))
            if process.calls.waiting:
                moves.append(partial(self._carry_out, process))
            if process.talkative():
                moves.append(partial(self._bring_news, process))
        if not moves:
            return False
        self.moves += 1
        await self.chance.choice(moves)()
        await self._breathe()
        return True

    async def collected(self) -> None:
        """Wait until what follows from a deletion is done: an owner is gone, or its mark is off."""
        while not self.api.garbage_collector.is_idle:
            await asyncio.sleep(0)
        await self.store.committed()

    async def _breathe(self, turns: int = _TURNS) -> None:
        """Let every coroutine go as far as it can without us."""
        for _ in range(turns):
            await asyncio.sleep(0)
        await self.collected()

    async def _begin(self, process: Process) -> None:
        """Have a worker of a process begin with its next task."""
        task = process.take()
        if task is not None:
            work = self._tasks.create_task(self._work(process.driver, task))
            process.work.add(work)
            work.add_done_callback(process.work.discard)

    async def _work(self, driver: Driver, task: Task) -> None:
        try:
            await driver.work(task)
        except Exception as error:  # noqa: BLE001  (a controller with a bug: that is the news)
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
            self.broken.append(f"{task} failed: {error!r} at {place}")

    async def _bring_news(self, process: Process) -> None:
        """Let a watch bring the next change, some changes, or none for a while."""
        kind = self.chance.choice(process.talkative())
        rates, now = self.rates, self.clock.time
        if kind in process.broken:
            process.relist(kind, self._listed(kind), self.store.rv)
        elif self._happens(rates.lost):
            until = now + self.chance.uniform(0.0, _LONGEST_SILENCE_S)
            self.note(f"{process.name} loses its watch of {kind.kind}s")
            process.break_watch(kind, until)
        elif self._happens(rates.late):
            until = now + self.chance.uniform(0.0, _LONGEST_SILENCE_S)
            self.note(f"{process.name} reactions nothing of {kind.kind}s for {until - now:.1f} s")
            process.quiet_until[kind] = until
        else:
            for _ in range(self.chance.choice((1, len(process.backlog[kind])))):
                process.deliver(kind, again=self._happens(rates.doubled))

    def _happens(self, likelihood: float) -> bool:
        return likelihood > 0 and self.chance.random() < likelihood

    async def _carry_out(self, process: Process) -> None:
        """Carry out one of the calls that wait, or let something happen to it."""
        call = process.calls.waiting.pop(self.chance.randrange(len(process.calls.waiting)))
        fault = self.fault_of(call)
        self._note_call(process, call, fault)
        if fault == "die before":
            await self.kill(process)
        elif fault in _REFUSALS:
            code, reason = _REFUSALS[fault]
            _answer(call, _refusal(code, reason))
        elif fault == "delay":
            self._arrives_later(process, call)
            _fail(call, Unreachable(f"{call.method} {call.path}: no answer in time", sent=True))
        else:
            answer = await self._ask(call)
            if fault == "die after":
                await self.kill(process)
            elif fault == "lose":
                _fail(call, Unreachable(f"{call.method} {call.path}: no answer", sent=True))
            else:
                _answer(call, answer)

    def _arrives_later(self, process: Process, call: Call) -> None:
        """Have a request carried out when its answer is not waited for any more."""

        async def arrive(_: Cluster) -> None:
            self.is_late = True
            answer = await self._ask(call)
            await self.collected()
            self.is_late = False
            self.note(f"  {answer.code}")

        after = self.chance.uniform(0.0, LATEST_S)
        what = f"late from {process.name}: {call.method} {call.path}"
        self.at(self.clock.time + after, what, arrive)

    async def _ask(self, call: Call) -> Answer:
        self.writes += call.is_write
        return await self._plain.request(
            call.method, call.path, query=call.query, headers=call.headers, body=call.body
        )

    def _fault(self, call: Call) -> str:
        """Draw what happens to a call."""
        rates = self.rates
        faults = {"refuse": rates.refuse, "lose": rates.lose, "busy": rates.busy}
        if call.is_write:
            faults |= {"die before": rates.die_before, "die after": rates.die_after}
            faults["delay"] = rates.delay
        if call.method in ("PATCH", "PUT"):
            faults["conflict"] = rates.conflict
        drawn = self.chance.random() if rates is not NO_FAULTS else 1.0
        for name, random_source in faults.items():
            drawn -= random_source
            if drawn < 0:
                return name
        return ""

    def _note_call(self, process: Process, call: Call, fault: str) -> None:
        if call.is_write or fault:
            body = call.body.decode() if len(call.body) < _MOST_SHOWN else f"{len(call.body)} bytes"
            end = f"  [{fault}]" if fault else ""
            self.note(f"{process.name} {call.method} {call.path} {body}{end}")


_REFUSALS = {
    "refuse": (500, "InternalError"),
    "busy": (429, "TooManyRequests"),
    "conflict": (409, "Conflict"),
}


def _refusal(code: int, reason: str) -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason}
    status["message"] = "a fault of the test"
    return Answer(code, {"retry-after": "1"} if code == 429 else {}, orjson.dumps(status))


def _answer(call: Call, answer: Answer) -> None:
    if not call.answer.done():
        call.answer.set_result(answer)


def _fail(call: Call, error: Exception) -> None:
    if not call.answer.done():
        call.answer.set_exception(error)


def _key(obj: Json) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
