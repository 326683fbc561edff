"""Objects of a view as bytes, unpacked when they are read.

A pod as a dictionary takes 9 KB, as bytes less than one. A view of ten thousand pods is looked at
a few at a time, so the dictionaries of the last thousand are kept and no more. Of what a watch
brings only the identity is read at first: most of it is the echo of our own writes, and known.
Where the store of the API is in the same process, its bytes and names are used and nothing is kept
twice.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec
import orjson

from unisono.control.actions import Json
from unisono.kinds.kueue.status_shape import wrong_with_status
from unisono.kube.errors import BadResponse
from unisono.kube.form import Dicts, Identity, Key, Meta

MOST_UNPACKED = 1024
# Of an object as JSON. Unpacked, it takes ten times as much, in every version that was read; so a
# larger one is unpacked anew each time. Jobs and pods have some kilobytes.
MOST_KEPT_BYTES = 32 * 1024

# The writers of fields: a third of many an object, and no controller reads it.
_UNREAD = "managedFields"


class _Identified(msgspec.Struct, frozen=True):
    metadata: Meta


class Stored(Protocol):
    """One version of an object as a store in this process has it."""

    @property
    def data(self) -> bytes:
        """The object."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def uid(self) -> str:
        """Its uid."""


# This version of an object, if a store in this process has it.
Storing = Callable[[Identity], Stored | None]

_identify = msgspec.json.Decoder(_Identified).decode


class Packed:
    """One version of one object."""

    __slots__ = ("identity", "is_neat", "problem", "raw")

    def __init__(self, identity: Identity, raw: bytes, *, is_neat: bool) -> None:
        """Take identity and bytes; neat ones hold no field that is never read."""
        self.identity = identity
        self.raw = raw
        self.is_neat = is_neat
        self.problem: Problem | None = None  # None until it was asked for


# Where an object is not what its readers rely on, and why; two empty texts if it is.
Problem = tuple[str, str]
_SOUND: Problem = ("", "")
# What is looked at before controllers may read objects of a kind: group and kind.
_JUDGES: Mapping[tuple[str, str], Callable[[Json], Problem]] = {
    ("kueue.x-k8s.io", "Workload"): wrong_with_status
}


class Packing:
    """Packs and unpacks the objects of one kind (`kube.form.Form`)."""

    def __init__(self, api_version: str, kind: str, stored: Storing | None = None) -> None:
        """Prepare for a kind."""
        self._stored = stored
        self._judge = _JUDGES.get((api_version.rpartition("/")[0], kind))
        self._form = Dicts(api_version, kind)
        # Ordered: a plain dictionary looks for its first key among all that were taken out.
        self._unpacked: OrderedDict[Packed, Json] = OrderedDict()

    def decode(self, raw: bytes | msgspec.Raw) -> Packed:
        """Read the identity of an object; the rest is read when it is needed."""
        try:
            meta = _identify(raw).metadata
        except msgspec.DecodeError as error:
            raise BadResponse(f"an object cannot be read: {error}") from error
        key = Key(sys.intern(meta.namespace), meta.name)
        identity = Identity(key, meta.uid, meta.resource_version)
        stored = self._stored(identity) if self._stored is not None else None
        if stored is not None:
            key = Key(key.namespace, stored.name)
            identity = Identity(key, stored.uid, identity.resource_version)
            return Packed(identity, stored.data, is_neat=True)
        return Packed(identity, bytes(raw), is_neat=False)

    def identity(self, each: Packed) -> Identity:
        """Say which object this is."""
        return each.identity

    def pack(self, obj: Json, raw: bytes = b"") -> Packed:
        """Pack an object; `raw` is the same as JSON, if that is at hand.

        Such bytes belong to a store in this process and take no more room here.
        """
        if _UNREAD in obj["metadata"]:
            metadata = {key: one for key, one in obj["metadata"].items() if key != _UNREAD}
            obj = {**obj, "metadata": metadata}
        packed = Packed(self._form.identity(obj), raw or _dumped(obj), is_neat=True)
        self._keep(packed, self._shown(obj))
        return packed

    def unpack(self, packed: Packed) -> Json:
        """Return the object, which must not be changed."""
        found = self._unpacked.get(packed)
        if found is None:
            found = self._form.decode(packed.raw)
            # Readers that keep its identity then share the same strings.
            metadata, identity = found["metadata"], packed.identity
            metadata["name"], metadata["uid"] = identity.key.name, identity.uid
            if not packed.is_neat:
                packed.raw, packed.is_neat = _dumped(found), True
            found = self._shown(found)
            self._keep(packed, found)
        return found

    def _shown(self, obj: Json) -> Json:
        """Return an object without its status if it is being deleted and that cannot be read."""
        if self._judge is None or "deletionTimestamp" not in obj["metadata"]:
            return obj
        return {**obj, "status": {}} if self._judge(obj)[0] else obj

    def problem(self, packed: Packed) -> Problem:
        """Return what is wrong with an object; it is looked at once."""
        if self._judge is None:
            return _SOUND
        if packed.problem is None:
            packed.problem = self._judge(self.unpack(packed))
        return packed.problem

    def _keep(self, packed: Packed, obj: Json) -> None:
        if len(packed.raw) > MOST_KEPT_BYTES:
            return
        if len(self._unpacked) >= MOST_UNPACKED:
            self._unpacked.popitem(last=False)
        self._unpacked[packed] = obj

    def forget(self) -> None:
        """Drop all that is unpacked while no controller works; the bytes stay."""
        self._unpacked.clear()

    def index(self, of: Callable[[Json], Iterable[str]]) -> Callable[[Packed], Iterable[str]]:
        """Return an index over packed objects."""
        return lambda packed: () if self.problem(packed)[0] else of(self.unpack(packed))


def _dumped(obj: Json) -> bytes:
    # A copy of its own size: the encoder's buffer is several times larger.
    return bytes(memoryview(orjson.dumps(obj)))
