"""Which events are written, which are counted, and which are too many: rules without I/O.

    the same (object, type, reason, message) again    count and lastTimestamp of the first one
    more than 10 messages for one (object, reason)    one event for all of them, with the latest
    within 600 s
    more than 25 about one object in a burst, or      nothing is written
    1 per 300 s after that

What is remembered is bounded; what was not used for longest is forgotten first (kube-api.md, 4.4).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from unisono.kube.form import Json
from unisono.kube.limits import Bucket

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
        self._buckets: OrderedDict[_Identity, Bucket] = OrderedDict()
        self._last_number = 0

    def decide(self, note: Note) -> Create | Count | None:
        """Say what to write, or None if there is too much about this object already."""
        same, message = self._summed_up(note)
        bucket = _recall(self._buckets, note.about.identity, Bucket(rate=RATE, burst=BURST))
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
        # No message can be empty, so this is nobody's own key.
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
