"""Runs controllers: changes go in, keys come out, and every action is one call of the API.

    informers ──▶ changed ──▶ queue of (controller, key) ──▶ step ──▶ API
                                   ▲                           │ what it returned
                                   └────────── view ◀──────────┘

The driver has no opinion about what is right; it only makes sure that a key is worked on by one
worker at a time, that a failed key comes back later, and that the view shows own writes at once.
A write that failed is never sent again from here, nor below: the controller that wanted it looks
at its key anew, and decides whether it still does (ADR 0028).
Tests call `step` by hand and stop between any two actions.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unisono.control.actions import (
    Action,
    Adopt,
    Again,
    Bind,
    Breathe,
    Create,
    Delete,
    Dismiss,
    Json,
    Note,
    Patch,
    Read,
    Ref,
    Together,
    Wake,
    Write,
)
from unisono.control.controller import Controller, WorksOnOwners
from unisono.control.names import FAILED_CREATE
from unisono.control.reconciling.event_routing import EventRouter, Task
from unisono.control.view import Difference, Unreadable, View
from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    StatusError,
    UnknownKind,
)
from unisono.kube.form import Key
from unisono.kube.mapping import POD, Kind
from unisono.kube.transport import Stored, WriteRequest, WriteResult
from unisono.kube.workqueue import WorkQueue

# Trouble that goes away by itself: the view was behind, or the API busy.
PASSING = (KubeError,)
# While time waits for a wall clock that was set back, it shows less than was waited. Without a
# least wait the rest would be halved for ever.
_LEAST_WAIT_S = 0.05
# What the API refuses until the object changes, or the rules that refuse it.
_FINAL = (BadRequest, Forbidden, NotFound, Invalid)
# So much of an exception is written into an event.
_MOST_TOLD = 500
# So many created objects are remembered; what was forgotten is created again without a question.
_MOST_REMEMBERED = 4096


class OwnerGone(KubeError):
    """The owner of an object that was to be created again is gone: the view was behind."""


@dataclass(slots=True)
class Outcome:
    """What became of a task, for logs and tests."""

    task: Task
    actions: int = 0
    error: KubeError | None = None


class Driver:
    """Owns the queue of tasks."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        view: View,
        client: Client,
        *,
        clock: Clock,
        notes: Callable[[Note], None] = lambda note: None,
        lanes: Mapping[str, int] | None = None,
        report: Callable[[Task, Exception], None] | None = None,
        follow: Callable[[Kind], None] | None = None,
    ) -> None:
        """Take the controllers; `lanes` has their priorities (0 before 1).

        `follow` makes the view show a kind of which it did not know when it was made. `report` is
        called when a controller fails on a change; without it that is raised.
        """
        self.controllers: dict[str, Controller] = {one.name: one for one in controllers}
        assert len(self.controllers) == len(controllers), "two controllers have the same name"
        self._follow = follow
        self._router = EventRouter(controllers, report)
        self._view = view
        self._client = client
        self._clock = clock
        self._notes = notes
        self._lanes = lanes or {}
        self.queue: WorkQueue[Task] = WorkQueue(lanes=3)
        self.on_outcome: Callable[[Outcome], None] = lambda outcome: None
        self.listeners: list[Callable[[Kind, Difference], None]] = []  # of whatever changes
        # Created for an owner, the latest last, with the uid of that owner.
        self._created: dict[tuple[Kind, str, str], str] = {}
        # With the seconds it took; only of what went well.
        self.on_attended: Callable[[Outcome, float], None] | None = None

    # ---- in ----------------------------------------------------------------------------------

    def changed(
        self, kind: Kind, differences: Iterable[Difference], by: Task | None = None
    ) -> None:
        """Queue the tasks that a change of the view makes; `by` is the task that wrote it."""
        for difference in differences:
            for listener in self.listeners:
                listener(kind, difference)
            now = self._clock.monotonic()
            for task in self._router.tasks_for(kind, difference, self._view, by):
                self.queue.add(task, now=now, lane=self._lanes.get(task.controller, 1))

    def want(self, controller: str, key: Key) -> None:
        """Queue a key for a controller."""
        lane = self._lanes.get(controller, 1)
        self.queue.add(Task(controller, key), now=self._clock.monotonic(), lane=lane)

    def oldest_wait(self) -> float:
        """Return for how many seconds the oldest task has been in the queue."""
        return self.queue.oldest_wait(self._clock.monotonic())

    # ---- one task ----------------------------------------------------------------------------

    async def step(self) -> Outcome | None:
        """Work on the next task; None if there is none now."""
        task = self.queue.take(self._clock.monotonic())
        return await self.work(task) if task is not None else None

    async def work(self, task: Task) -> Outcome:
        """Work on a task that was taken from the queue."""
        outcome = Outcome(task)
        try:
            await self.attend(task, outcome)
        except PASSING as error:
            outcome.error = error
            self.queue.retry(task, now=self._clock.monotonic())
        else:
            self.queue.forget(task)
        finally:
            self.queue.done(task, now=self._clock.monotonic())
        self.on_outcome(outcome)
        return outcome

    async def attend(self, task: Task, outcome: Outcome) -> None:
        """Carry out what a controller wants done about a key; raise what stops it."""
        controller = self.controllers.get(task.controller)
        if controller is None:  # it was dismissed meanwhile
            return
        began = self._clock.monotonic()
        steps = controller.reconcile(task.key, self._view, self._clock.now())
        with contextlib.closing(steps):
            result: Any = None
            while True:
                started = self._clock.monotonic()
                try:
                    action = steps.send(result)
                except StopIteration:
                    break
                except Unreadable as error:  # it is worked on again when it changes
                    self._tell_of_unreadable(task, error)
                    break
                finally:
                    self.queue.note_computed(task, self._clock.monotonic() - started)
                outcome.actions += 1
                result = await self._act(action, task)
        if self.on_attended is not None:
            self.on_attended(outcome, self._clock.monotonic() - began)

    async def _act(self, action: Action, task: Task) -> Any:
        match action:
            case Note():
                self._notes(action)
                return None
            case Again(at):
                wait = at - self._clock.now()
                if wait > 0:
                    wait = max(wait, _LEAST_WAIT_S)
                self.queue.add_after(task, wait, now=self._clock.monotonic())
                return None
            case Wake(controller, namespace, name):
                self.want(controller, Key(namespace, name))
                return None
            case Adopt(kind, controller):
                self._adopt(kind, controller)
                return None
            case Dismiss(_, name):
                self._dismiss(name)
                return None
            case Breathe():
                await asyncio.sleep(0)
                return None
            case Together(actions, tells):
                await self._check_owners(actions)
                answers = await self._all(actions, task)
                self._tell_of_refusal(zip(actions, answers, strict=True))
                failed = next((one for one in answers if isinstance(one, KubeError)), None)
                if failed is not None and not tells:
                    raise failed
                return answers
            case _:
                await self._check_owners((action,))
                try:
                    return await self._write(action, task)
                except StatusError as refused:
                    self._tell_of_refusal([(action, refused)])
                    raise

    # ---- controllers that come later ---------------------------------------------------------

    def _adopt(self, kind: Kind, controller: Controller) -> None:
        """Put a controller to work, and let it look at all that there is of its kind."""
        assert controller.name not in self.controllers, f"{controller.name} works already"
        assert self._follow is not None, "nothing here can follow another kind"
        self._follow(kind)
        self.controllers[controller.name] = controller
        self._router.add(controller)
        for key in self._view.keys(kind):
            self.want(controller.name, key)

    def _dismiss(self, name: str) -> None:
        """Let a controller work no more; keys of it that are in the queue come to nothing."""
        if self.controllers.pop(name, None) is not None:
            self._router.remove(name)

    async def _all(self, actions: Sequence[Write | Read], task: Task) -> list[Any]:
        """Carry out several actions at once; return what became of each, errors included."""
        orders = [order for action in actions if (order := order_of(action)) is not None]
        if not orders:
            return await self._each(actions, task)
        results = iter(await self._client.write(orders))
        answers: list[Any] = []
        for action in actions:
            try:
                if isinstance(action, Delete | Read):
                    answers.append(await self._write(action, task))
                else:
                    answers.append(await self._came_of(action, next(results), task))
            except KubeError as error:
                answers.append(error)
        return answers

    async def _each(self, actions: Sequence[Write | Read], task: Task) -> list[Any]:
        calls = (self._write(action, task) for action in actions)
        results = await asyncio.gather(*calls, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, KubeError):
                raise result
        return list(results)

    # ---- writing -----------------------------------------------------------------------------

    async def _check_owners(self, actions: Sequence[Write | Read]) -> None:
        """Ask for the owner of an object that is to be created a second time, and raise if gone.

        Deleting a job deletes what it owns. While the watch of jobs is behind, the view shows the
        job and not its parts: its controller would create them as fast as the collector deletes
        them, for as long as the watch is late. One question for each owner ends that: the answer
        also takes the owner out of the view.
        """
        asked: set[str] = set()
        for action in actions:
            owner = _owner_of(action.obj) if isinstance(action, Create) else None
            if owner is None or not isinstance(action, Create):
                continue
            ref = Ref.to(action.obj)
            key = (ref.kind, ref.namespace, ref.name)
            is_second = self._created.pop(key, "") == owner.uid
            self._created[key] = owner.uid
            if len(self._created) > _MOST_REMEMBERED:
                del self._created[next(iter(self._created))]
            if is_second and owner.uid not in asked:
                asked.add(owner.uid)
                there = await self._read(Read(owner.kind, owner.namespace, owner.name))
                if there is None or there["metadata"]["uid"] != owner.uid:
                    raise OwnerGone(f"{owner.kind.kind} {owner.name} is gone")

    async def _write(self, action: Write | Read, task: Task) -> Json | None:
        if isinstance(action, Delete):
            return await self._delete(action)
        if isinstance(action, Read):
            return await self._read(action)
        order = order_of(action)
        assert order is not None
        return await self._came_of(action, (await self._client.write((order,)))[0], task)

    async def _came_of(self, action: Write, result: WriteResult, task: Task) -> Json | None:
        """Look at what became of a write; some errors only mean that it was done before."""
        match result, action:
            case Stored(obj, raw), _:
                # A patch of whatever was there may have met what its writer had not seen.
                is_blind = isinstance(action, Patch) and not action.exact
                by = None if is_blind else task
                return self._saw(obj, raw, by) if obj is not None else None
            case AlreadyExists(), Create(obj):
                return self._saw(await self._made_before(obj, result))
            case Conflict(), Bind():
                # Perhaps it was us, before a crash or before the view caught up.
                ref = action.pod
                pod = await self._client.get(POD, ref.name, ref.namespace)
                if pod["metadata"]["uid"] != ref.uid or pod["spec"].get("nodeName") != action.node:
                    raise result
                self._saw(pod)
                return None
            case KubeError(), _:
                raise result
        raise AssertionError(f"{action} ended in {result}")

    async def _made_before(self, obj: Json, error: KubeError) -> Json:
        ref = Ref.to(obj)
        there = await self._client.get(ref.kind, ref.name, ref.namespace)
        if _owner(there) != _owner(obj) or _owner(obj) is None:
            raise error
        return there

    async def _read(self, action: Read) -> Json | None:
        """Return an object as the API has it; nothing that it does not serve can be there."""
        kind, key = action.kind, Key(action.namespace, action.name)
        try:
            return self._saw(await self._client.get(kind, key.name, key.namespace, once=True))
        except (NotFound, UnknownKind):
            there = self._view.find(kind, key.name, key.namespace)
            if there is not None:
                gone = self._view.assume_gone(kind, key, there["metadata"]["uid"])
                self.changed(kind, gone)
            return None

    async def _delete(self, action: Delete) -> Json | None:
        ref = action.ref
        try:
            left = await self._client.delete(
                ref.kind,
                ref.name,
                ref.namespace,
                uid=ref.uid,
                grace_s=action.grace,
                propagation=action.policy,
                once=True,
            )
        except NotFound:
            left = {}
        except Conflict:
            return None  # another object of that name: the one that was meant is gone
        if _is_left(left.get("metadata", {})):
            return self._saw(left)
        if self._view.has(ref.kind):
            key = Key(ref.namespace, ref.name)
            self.changed(ref.kind, self._view.assume_gone(ref.kind, key, ref.uid))
        return None

    def _saw(self, obj: Json, raw: bytes = b"", by: Task | None = None) -> Json:
        """Let the view show what a write returned."""
        kind = Kind(obj["apiVersion"], obj["kind"])
        if self._view.has(kind):
            self.changed(kind, self._view.assume(kind, obj, raw), by)
        return obj

    def _tell_of_refusal(self, answers: Iterable[tuple[Write | Read, Any]]) -> None:
        """Write an event about the owner of an object that the API refuses, once per attempt.

        As Kubernetes' own controllers do: users that may read the job see the API's reason, which
        would otherwise be in our log alone.
        """
        for action, answer in answers:
            if isinstance(action, Create) and isinstance(answer, _FINAL):
                owner = _owner_of(action.obj)
                if owner is not None and not answer.has_cause("NamespaceTerminating"):
                    message = f"Error creating: {str(answer)[:_MOST_TOLD]}"
                    self._notes(Note(owner, FAILED_CREATE, message, "Warning"))
                    return

    def _tell_of_unreadable(self, task: Task, error: Unreadable) -> None:
        """Write an event about an object that needs another which cannot be read.

        The owner of that one gets an event from the scheduler, which leaves it out.
        """
        for kind in _kinds_of(self.controllers[task.controller]):
            obj = self._view.raw(kind, task.key.name, task.key.namespace)
            if obj is not None:
                if kind != error.kind:
                    which = f"{error.kind.kind} {error.name}"
                    remedy = "correct it, or delete it to have it created anew"
                    message = f"{which} cannot be read: {error}; {remedy}"
                    self._notes(Note(Ref.to(obj), "Quarantined", message, "Warning"))
                return

    def tell_of_crash(self, task: Task, error: Exception, again_s: float) -> None:
        """Write an event about an object that a controller failed on."""
        controller = self.controllers[task.controller]
        for kind in _kinds_of(controller):
            obj = self._view.raw(kind, task.key.name, task.key.namespace)
            if obj is not None:
                what = f"controller {task.controller} failed on it: {type(error).__name__}: {error}"
                message = f"{what[:_MOST_TOLD]}; retried when it changes, or in {again_s:g} s"
                self._notes(Note(Ref.to(obj), "Quarantined", message, "Warning"))
                return

    # ---- the loop ----------------------------------------------------------------------------

    async def settle(self, most: int = 10_000) -> int:
        """Work until nothing is left to do now; return how many tasks that took."""
        for count in range(most):
            if await self.step() is None:
                return count
        raise RuntimeError(f"the controllers do not come to rest after {most} tasks")


def _kinds_of(controller: Controller) -> Iterable[Kind]:
    """Return the kinds that a controller's keys may name, the likeliest first."""
    if isinstance(controller, WorksOnOwners):
        return (controller.owner_kind, *controller.watches)
    return controller.watches


def order_of(action: Write | Read) -> WriteRequest | None:
    """Return a write as the client takes it; deletions are not among those it takes together."""
    match action:
        case Create(obj):
            ref = Ref.to(obj)
            return WriteRequest("create", ref.kind, ref.namespace, ref.name, obj)
        case Patch(ref, changes, subresource, exact, holds):
            if exact and ref.version:
                metadata = {**changes.get("metadata", {}), "resourceVersion": ref.version}
                changes = {**changes, "metadata": metadata}
            return WriteRequest(
                "patch", ref.kind, ref.namespace, ref.name, changes, subresource, holds
            )
        case Bind(ref, node, annotations, holds):
            # In the state that was seen: what was deleted meanwhile is not bound after all.
            metadata = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid}
            if ref.version:
                metadata["resourceVersion"] = ref.version
            if annotations:
                metadata["annotations"] = annotations
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": metadata,
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            }
            return WriteRequest("bind", POD, ref.namespace, ref.name, binding, holds=holds)
        case Delete() | Read():
            return None


def _is_left(metadata: Json) -> bool:
    """Say whether an object that was deleted is still there, going by what the API answered.

    Pods are answered with even when they are gone: nothing holds such a one back any more.
    """
    if "deletionTimestamp" not in metadata:
        return False
    return bool(metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"))


def _owner(obj: Json) -> str | None:
    owner = _owner_of(obj)
    return None if owner is None else owner.uid


def _owner_of(obj: Json) -> Ref | None:
    metadata = obj["metadata"]
    for one in metadata.get("ownerReferences") or ():
        if one.get("controller"):
            kind = Kind(one["apiVersion"], one["kind"])
            return Ref(kind, metadata.get("namespace", ""), one["name"], str(one["uid"]))
    return None
