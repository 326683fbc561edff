"""An object at rest, a change of one, and the objects that are kept decoded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from unisono.apiserver.objects import Json

_NOTHING: Mapping[str, str] = {}

Key = tuple[str, str, str]  # group/plural, namespace, name


@lru_cache(maxsize=4096)
def _shared(labels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return {sys.intern(name): sys.intern(value) for name, value in labels}


class Kind(StrEnum):
    """What happened to an object, as a watch names it."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Record:
    """One version of one object. Its bytes are the truth; the rest is there to find it quickly."""

    __slots__ = ("data", "key", "labels", "owners", "rv", "uid")

    def __init__(self, key: Key, rv: int, data: bytes, metadata: Mapping[str, Any]) -> None:
        """Take the bytes and the metadata that they hold."""
        kind, namespace, name = key
        # Many objects share few namespaces and labels, which then cost their pointers only.
        self.key = (sys.intern(kind), sys.intern(namespace), name)
        self.rv = rv
        self.data = data
        self.uid: str = metadata.get("uid", "")
        labels = metadata.get("labels")
        self.labels: Mapping[str, str] = _shared(tuple(labels.items())) if labels else _NOTHING
        owners = metadata.get("ownerReferences")
        self.owners: tuple[str, ...] = tuple(owner["uid"] for owner in owners) if owners else ()

    @property
    def namespace(self) -> str:
        """Its namespace; empty for kinds that have none."""
        return self.key[1]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key[2]

    def load(self) -> dict[str, Any]:
        """Return the object, a new copy each time."""
        loaded: dict[str, Any] = orjson.loads(self.data)
        return loaded


class Change(NamedTuple):
    """One step of history. A deletion's record is the last state with the deletion's version."""

    rv: int
    kind: Kind
    record: Record
    previous: Record | None  # None for a new object, and where the past was not kept


# ---- decoded objects -----------------------------------------------------------------------------
#
# Decoded objects, kept for the next look at them.
#
# The bytes of a record are the truth, and reading them costs more than most of what is done with an
# object. Those that were stored or looked at last are kept as dictionaries too; our own controllers
# have most of them in hand anyway. None may be changed.

# A thousand jobs that start at once are a few thousand objects, each of which is looked at several
# times within some seconds. An object takes a few kilobytes.
_MOST_KNOWN = 4096
# Of an object as JSON. As a dictionary it takes ten times as much, so a larger one is read anew
# each time: a few of a megabyte each would fill the memory. Jobs and pods have some kilobytes.
MOST_KNOWN_BYTES = 32 * 1024


class DecodedCache:
    """The newest known version of some objects."""

    def __init__(self) -> None:
        """Begin with none."""
        self._objects: dict[Key, tuple[Record, Json]] = {}

    def read(self, record: Record) -> Json:
        """Return a record's object, which may be shared with others; it is not kept for them."""
        found = self._objects.get(record.key)
        return found[1] if found is not None and found[0] is record else record.load()

    def of(self, record: Record) -> Json:
        """Return a record's object, which others look at too."""
        found = self._objects.get(record.key)
        if found is not None and found[0] is record:
            return found[1]
        obj = record.load()
        self.keep(record, obj)
        return obj

    def keep(self, record: Record, obj: Json) -> None:
        """Remember an object that was stored as it is."""
        self._objects.pop(record.key, None)
        if len(record.data) > MOST_KNOWN_BYTES:
            return
        if len(self._objects) >= _MOST_KNOWN:
            del self._objects[next(iter(self._objects))]
        self._objects[record.key] = record, obj

    def forget(self) -> None:
        """Let go of all; the next look decodes the bytes again."""
        self._objects.clear()
