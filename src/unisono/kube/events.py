"""Events about objects: which are written, which are counted, which are too many, and writing them.

    the same (object, type, reason, message) again    count and lastTimestamp of the first one
    more than 10 messages for one (object, reason)    one event for all of them, with the latest
    within 600 s
    more than 25 about one object in a burst, or      nothing is written
    1 per 300 s after that

What is remembered is bounded; what was not used for longest is forgotten first (kube-api.md, 4.4).
The rules (`Correlator`) are pure; `Recorder` has the queue and the writing.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from unisono.kube.client import Client
from unisono.kube.clock import Clock
from unisono.kube.errors import KubeError, NotFound
from unisono.kube.form import Json
from unisono.kube.mapping import EVENT
from unisono.kube.rate_limit import TokenBucket
from unisono.kube.transport import WriteRequest

MOST_SIMILAR = 10
SIMILAR_WITHIN_S = 600.0
BURST = 25
RATE = 1 / 300
# Objects and events that are remembered; a little more than a large burst of preemptions touches.
MOST_REMEMBERED = 4096
# What the API accepts in a message.
MOST_MESSAGE = 1024

V = TypeVar("V")


class Reference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The object that an event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, each: Mapping[str, Any]) -> Reference:
        """Refer to an object; a reference that is one already (no metadata) is taken as it is."""
        metadata = each.get("metadata", each)
        return cls(
            api_version=each.get("apiVersion", ""),
            kind=each.get("kind", ""),
            namespace=metadata.get("namespace", ""),
            name=metadata.get("name", ""),
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
        )

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What makes it the same object, whatever its state."""
        return (self.kind, self.namespace, self.name, self.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that happened, at a time in seconds since 1970."""

    about: Reference
    type: str
    reason: str
    message: str
    at: float
    related: Reference | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Write a new event."""

    event: Json


@dataclass(frozen=True, slots=True)
class Count:
    """Say that an event happened again."""

    name: str
    namespace: str
    changes: Json


_Identity = tuple[str, str, str, str]
_Same = tuple[_Identity, str, str, str]
_Similar = tuple[_Identity, str, str]


@dataclass(slots=True)
class _Written:
    name: str
    first_at: float
    count: int


@dataclass(slots=True)
class _Group:
    last_at: float
    messages: set[str] = field(default_factory=set)


class Correlator:
    """Remembers what was written, and decides about the next note."""

    def __init__(self, *, component: str, instance: str = "") -> None:
        """Begin with no memory."""
        self._component = component
        self._instance = instance
        self._written: OrderedDict[_Same, _Written] = OrderedDict()
        self._groups: OrderedDict[_Similar, _Group] = OrderedDict()
        self._buckets: OrderedDict[_Identity, TokenBucket] = OrderedDict()
        self._last_number = 0

    def decide(self, note: Note) -> Create | Count | None:
        """Say what to write, or None if there is too much about this object already."""
        same, message = self._summed_up(note)
        bucket = _recall(self._buckets, note.about.identity, TokenBucket(rate=RATE, burst=BURST))
        if bucket.take(note.at) > 0:
            return None
        written = self._written.get(same)
        if written is None:
            return self._new(note, same, message, count=1, first_at=note.at)
        self._written.move_to_end(same)
        written.count += 1
        changes = {
            "count": written.count,
            "lastTimestamp": _time(note.at),
            "message": message,
        }
        return Count(written.name, _namespace(note), changes)

    def again(self, note: Note) -> Create:
        """Return the event to write when the one to be counted is gone."""
        same, message = self._summed_up(note)
        written = self._written.pop(same, None)
        count = written.count if written is not None else 1
        first_at = written.first_at if written is not None else note.at
        return self._new(note, same, message, count=count, first_at=first_at)

    def _summed_up(self, note: Note) -> tuple[_Same, str]:
        """Return under what a note is counted, and its words: its own, or those of its group."""
        about = note.about.identity
        group = _recall(self._groups, (about, note.type, note.reason), _Group(note.at))
        if note.at - group.last_at > SIMILAR_WITHIN_S:
            group.messages.clear()
        group.last_at = note.at
        if len(group.messages) <= MOST_SIMILAR:
            group.messages.add(note.message)
        if len(group.messages) <= MOST_SIMILAR:
            return (about, note.type, note.reason, note.message), note.message[:MOST_MESSAGE]
        # No message can be empty, so this is the key of no single message.
        words = f"one of many, the latest: {note.message}"
        return (about, note.type, note.reason, ""), words[:MOST_MESSAGE]

    def _new(self, note: Note, same: _Same, message: str, *, count: int, first_at: float) -> Create:
        name = self._name(note)
        _recall(self._written, same, _Written(name, first_at, count))
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(note)},
            "involvedObject": msgspec.to_builtins(note.about),
            "type": note.type,
            "reason": note.reason,
            "message": message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": _time(first_at),
            "lastTimestamp": _time(note.at),
            "count": count,
        }
        if note.related is not None:
            event["related"] = msgspec.to_builtins(note.related)
        return Create(event)

    def _name(self, note: Note) -> str:
        """Return a name that no event had before: the object's, and the time in hexadecimal."""
        self._last_number = max(self._last_number + 1, int(note.at * 1e9))
        return f"{note.about.name[:230]}.{self._last_number:x}"


def _recall(memory: OrderedDict[Any, V], key: Any, otherwise: V) -> V:
    """Return what is remembered, or remember this; forget what was not used for longest."""
    found = memory.setdefault(key, otherwise)
    memory.move_to_end(key)
    if len(memory) > MOST_REMEMBERED:
        memory.popitem(last=False)
    return found


def _namespace(note: Note) -> str:
    return note.about.namespace or "default"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


MOST_QUEUED = 1000
# So many are written together: enough for a burst, few enough that nothing else waits for them.
MOST_AT_ONCE = 16
# So long an event may be overtaken by the next; people do not read them faster.
OVERTAKEN_WITHIN_S = 2.0


_Word = tuple[tuple[str, str, str, str], str]  # an object, and a reason


class Recorder:
    """Writes Events about objects."""

    def __init__(
        self, client: Client, *, clock: Clock, component: str = "unisono", instance: str = ""
    ) -> None:
        """Prepare; component and instance are named in every event."""
        self._client = client
        self._clock = clock
        self._queue: OrderedDict[int, Note] = OrderedDict()  # by their numbers
        self._last: dict[_Word, int] = {}  # the last of them about an object for a reason
        self._numbers = itertools.count()
        self._bell = asyncio.Event()
        self.correlator = Correlator(component=component, instance=instance)
        self.dropped = 0  # the queue was full, or the API would not have it

    def record(
        self,
        about: Mapping[str, Any],
        type_: str,
        reason: str,
        message: str,
        *,
        related: Mapping[str, Any] | None = None,
        instead_of: Sequence[str] = (),
    ) -> None:
        """Tell something about an object; `related` is what caused it, such as a preemptor.

        What was told for one of the reasons of `instead_of` and is not written yet never will be.
        """
        note = Note(
            about=Reference.of(about),
            type=type_,
            reason=reason,
            message=message,
            related=None if related is None else Reference.of(related),
            at=self._clock.now(),
        )
        for other in instead_of:
            overtaken = self._last.pop((note.about.identity, other), None)
            if overtaken is not None:
                del self._queue[overtaken]
        if len(self._queue) >= MOST_QUEUED:
            self._take()
            self.dropped += 1
        number = next(self._numbers)
        self._queue[number] = note
        self._last[note.about.identity, reason] = number
        self._bell.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            began = self._clock.now()
            await self._clock.sleep(OVERTAKEN_WITHIN_S)
            await self.flush(until=began)
            if self._queue:
                self._bell.set()

    async def flush(self, *, until: float = math.inf) -> None:
        """Write what was queued until a time, some at a time."""
        held: tuple[Note, WriteRequest] | None = None
        while self._has(until) or held is not None:
            decided, held = self._some([] if held is None else [held], until)
            lost = [note for note, error in await self._write(decided) if _is_gone(error)]
            anew = [(note, _create(self.correlator.again(note).event)) for note in lost]
            self.dropped += sum(_is_gone(error) for _, error in await self._write(anew))

    def _has(self, until: float) -> bool:
        return bool(self._queue) and next(iter(self._queue.values())).at <= until

    def _take(self) -> Note:
        """Take the first note out of the queue."""
        number, note = self._queue.popitem(last=False)
        if self._last.get(word := (note.about.identity, note.reason)) == number:
            del self._last[word]
        return note

    def _some(
        self, decided: list[tuple[Note, WriteRequest]], until: float
    ) -> tuple[list[tuple[Note, WriteRequest]], tuple[Note, WriteRequest] | None]:
        """Take some notes, of each event one: what is written at once arrives in any order."""
        names = {(order.namespace, order.name) for _, order in decided}
        while len(decided) < MOST_AT_ONCE and self._has(until):
            note = self._take()
            order = self._order(note)
            if order is None:
                continue
            if (order.namespace, order.name) in names:
                return decided, (note, order)
            names.add((order.namespace, order.name))
            decided.append((note, order))
        return decided, None

    def _order(self, note: Note) -> WriteRequest | None:
        match self.correlator.decide(note):
            case Create(event):
                return _create(event)
            case Count(name, namespace, changes):
                return WriteRequest("patch", EVENT, namespace, name, changes)
            case None:
                self.dropped += 1
                return None

    async def _write(
        self, decided: Sequence[tuple[Note, WriteRequest]]
    ) -> list[tuple[Note, KubeError]]:
        """Write events at once; return those of which nothing came."""
        if not decided:
            return []
        try:
            results = await self._client.write([order for _, order in decided], repeats=True)
        except KubeError:
            self.dropped += len(decided)
            return []
        failed = [
            (note, result)
            for (note, _), result in zip(decided, results, strict=True)
            if isinstance(result, KubeError)
        ]
        self.dropped += sum(not _is_gone(error) for _, error in failed)
        return failed


def _create(event: Json) -> WriteRequest:
    metadata = event["metadata"]
    return WriteRequest("create", EVENT, metadata["namespace"], metadata["name"], event)


def _is_gone(error: KubeError) -> bool:
    """Say whether an event that was to be counted is there no more: they do not live long."""
    return isinstance(error, NotFound)
