"""Decoded objects, kept for the next look at them.

The bytes of a record are the truth, and reading them costs more than most of what is done with an
object. Those that were stored or looked at last are kept as dictionaries too; our own controllers
have most of them in hand anyway. None may be changed.
"""

from __future__ import annotations

from unisono.apiserver.objects import Json
from unisono.apiserver.storage.record import Key, Record

# A thousand jobs that start at once are a few thousand objects, each of which is looked at several
# times within some seconds. An object takes a few kilobytes.
MOST_KNOWN = 4096
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
        if len(self._objects) >= MOST_KNOWN:
            del self._objects[next(iter(self._objects))]
        self._objects[record.key] = record, obj

    def forget(self) -> None:
        """Let go of all; the next look decodes the bytes again."""
        self._objects.clear()
