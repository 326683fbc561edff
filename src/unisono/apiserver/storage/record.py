"""An object at rest, and a change of one."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

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
