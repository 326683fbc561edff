"""Objects of a view as bytes, unpacked when somebody looks.

A pod as a dictionary takes 9 KB, as bytes less than one. A view of ten thousand pods is looked at
a few at a time, so the dictionaries of the last few hundred are kept and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
import orjson

from unisono.control.actions import Json
from unisono.kube.form import Dicts, Identity

MOST_UNPACKED = 512


class Packed:
    """One version of one object."""

    __slots__ = ("identity", "raw")

    def __init__(self, identity: Identity, raw: bytes) -> None:
        """Take the bytes and who it is."""
        self.identity = identity
        self.raw = raw


class Packing:
    """Packs and unpacks the objects of one kind (`kube.form.Form`)."""

    def __init__(self, api_version: str, kind: str) -> None:
        """Prepare for a kind."""
        self._form = Dicts(api_version, kind)
        self._unpacked: dict[Packed, Json] = {}

    def decode(self, raw: bytes | msgspec.Raw) -> Packed:
        """Read one object."""
        return self.pack(self._form.decode(raw))

    def identity(self, each: Packed) -> Identity:
        """Say which object this is."""
        return each.identity

    def pack(self, obj: Json) -> Packed:
        """Pack an object, without what no controller reads: who wrote which field."""
        if "managedFields" in obj["metadata"]:
            metadata = {key: one for key, one in obj["metadata"].items() if key != "managedFields"}
            obj = {**obj, "metadata": metadata}
        # A copy of its own size: the encoder's buffer is several times larger.
        packed = Packed(self._form.identity(obj), bytes(memoryview(orjson.dumps(obj))))
        self._keep(packed, obj)
        return packed

    def unpack(self, packed: Packed) -> Json:
        """Return the object; nobody may change it."""
        found = self._unpacked.get(packed)
        if found is None:
            found = orjson.loads(packed.raw)
            self._keep(packed, found)
        return found

    def _keep(self, packed: Packed, obj: Json) -> None:
        if len(self._unpacked) >= MOST_UNPACKED:
            del self._unpacked[next(iter(self._unpacked))]
        self._unpacked[packed] = obj

    def index(self, of: Callable[[Json], Iterable[str]]) -> Callable[[Packed], Iterable[str]]:
        """Return an index over packed objects."""
        return lambda packed: of(self.unpack(packed))
