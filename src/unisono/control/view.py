"""What controllers look at: the objects of the cluster as far as we know them.

The view may be late, but never behind our own writes: what a write returned is in it at once. The
objects are shared and must not be changed.

An object whose status breaks what its readers rely on (`Packing`) is returned as it is by
`raw` alone. `get` raises an exception, which the driver turns into an event; the other methods
leave it out. So it stops no work but that on itself.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
import orjson

from unisono.control.actions import Json
from unisono.engine.model.errors import InvalidManifest
from unisono.kinds.kueue.status_shape import wrong_with_status
from unisono.kube.cache import Delta, Remove, Store, Upsert
from unisono.kube.errors import BadResponse
from unisono.kube.form import Dicts, Identity, Key, Meta
from unisono.kube.mapping import Kind

BY_OWNER = "owner"
BY_NAMESPACE = "namespace"

Index = Callable[[Json], Iterable[str]]


def owners(obj: Json) -> list[str]:
    """Return the uids of the objects that an object belongs to."""
    return [one["uid"] for one in obj["metadata"].get("ownerReferences") or ()]


def _namespace(obj: Json) -> list[str]:
    return [obj["metadata"].get("namespace", "")]


# Indexes that every kind has; a controller may bring more for the kinds it watches.
COMMON: Mapping[str, Index] = {BY_OWNER: owners, BY_NAMESPACE: _namespace}


def wrapped(
    packing: Packing, indexes: Mapping[str, Index]
) -> dict[str, Callable[[Packed], Iterable[str]]]:
    """Return these indexes and the common ones, over packed objects."""
    return {name: packing.index(one) for name, one in {**COMMON, **indexes}.items()}


@dataclass(frozen=True, slots=True)
class KindStore:
    """The objects of one kind, packed."""

    packing: Packing
    objects: Store[Packed]
    is_followed: bool = True  # else it stays empty: no watch would report what becomes of an object

    @staticmethod
    def of(kind: Kind, indexes: Mapping[str, Index]) -> KindStore:
        """Make an empty one."""
        packing = Packing(*kind)
        return KindStore(packing, Store(packing, wrapped(packing, indexes)))


class Difference(NamedTuple):
    """What became different in the view: how an object was, and how it is."""

    old: Json | None
    new: Json | None
    is_readable: bool = True  # as it is now; what cannot be read has no status here


class Unreadable(InvalidManifest):
    """An object that cannot be worked on until it changes."""

    def __init__(self, kind: Kind, name: str, path: str, problem: str) -> None:
        """Say which object it is, and what is wrong with it."""
        super().__init__(path, problem)
        self.kind = kind
        self.name = name


class View:
    """All caches together."""

    def __init__(self, stores: Mapping[Kind, KindStore]) -> None:
        """Take a store for each watched kind."""
        self._stores = dict(stores)

    def add(self, kind: Kind, store: KindStore) -> None:
        """Show one more kind."""
        self._stores[kind] = store

    # ---- looking -----------------------------------------------------------------------------

    def get(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object to work on, or None; raise Unreadable if its status is broken."""
        kind_store = self._stores[kind]
        packed = kind_store.objects.get(name, namespace)
        if packed is None:
            return None
        path, why = kind_store.packing.problem(packed)
        if path:
            raise Unreadable(kind, name, path, why)
        return kind_store.packing.unpack(packed)

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object that another refers to; None also if it cannot be read."""
        kind_store = self._stores[kind]
        packed = kind_store.objects.get(name, namespace)
        if packed is None or kind_store.packing.problem(packed)[0]:
            return None
        return kind_store.packing.unpack(packed)

    def raw(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object as it is, whatever is wrong with it."""
        kind_store = self._stores[kind]
        packed = kind_store.objects.get(name, namespace)
        return kind_store.packing.unpack(packed) if packed is not None else None

    def find(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object of a kind that may not be watched, or None."""
        return self.get(kind, name, namespace) if kind in self._stores else None

    def all(self, kind: Kind) -> Iterator[Json]:
        """Yield every object of a kind, in order of arrival."""
        packing, every = self._stores[kind].packing, list(self._stores[kind].objects)
        return (packing.unpack(one) for one in every if not packing.problem(one)[0])

    def keys(self, kind: Kind) -> list[Key]:
        """Return the key of every object of a kind, in order of arrival."""
        return self._stores[kind].objects.keys()

    def within(self, kind: Kind, namespace: str) -> list[Json]:
        """Return the objects of a kind in a namespace."""
        return self.by(kind, BY_NAMESPACE, namespace)

    def owned(self, kind: Kind, uid: str) -> list[Json]:
        """Return the objects of a kind that belong to another, in order of arrival."""
        return self.by(kind, BY_OWNER, uid)

    def by(self, kind: Kind, index: str, value: str) -> list[Json]:
        """Return the objects that an index of a kind has under a value."""
        kind_store = self._stores[kind]
        packing, found = kind_store.packing, kind_store.objects.by(index, value)
        return [packing.unpack(one) for one in found if not packing.problem(one)[0]]

    def has(self, kind: Kind) -> bool:
        """Say whether a kind is watched."""
        return kind in self._stores

    def is_any(self, kind: Kind) -> bool:
        """Say whether there is any object of a kind."""
        store = self._stores.get(kind)  # it may not be followed at all
        return store is not None and bool(store.objects.objects)

    def kinds(self) -> Iterable[Kind]:
        """Return the watched kinds."""
        return self._stores.keys()

    def forget(self) -> None:
        """Drop what was unpacked; the next read unpacks it again."""
        for kind_store in self._stores.values():
            kind_store.packing.forget()

    # ---- changes -----------------------------------------------------------------------------

    def unpacked(self, kind: Kind, deltas: Iterable[Delta[Packed]]) -> Iterator[Difference]:
        """Yield what deltas of a kind's store mean."""
        packing = self._stores[kind].packing
        for delta in deltas:
            old, new = delta.old, delta.new
            yield Difference(
                _told(packing, old) if old is not None else None,
                _told(packing, new) if new is not None else None,
                new is None or not packing.problem(new)[0],
            )

    def upsert(self, kind: Kind, obj: Json) -> Iterator[Difference]:
        """Take an object as it is now."""
        kind_store = self._stores[kind]
        return self.unpacked(kind, kind_store.objects.apply(Upsert(kind_store.packing.pack(obj))))

    def remove(self, kind: Kind, obj: Json) -> Iterator[Difference]:
        """Take an object as it last was."""
        kind_store = self._stores[kind]
        return self.unpacked(kind, kind_store.objects.apply(Remove(kind_store.packing.pack(obj))))

    def assume(self, kind: Kind, obj: Json, raw: bytes = b"") -> Iterator[Difference]:
        """Show what an own write returned; `raw` is the same as JSON, if that is at hand."""
        kind_store = self._stores[kind]
        if not kind_store.is_followed:
            return iter(())
        return self.unpacked(kind, kind_store.objects.assume(kind_store.packing.pack(obj, raw)))

    def assume_gone(self, kind: Kind, key: Key, uid: str) -> Iterator[Difference]:
        """Show that an own call deleted an object for good."""
        kind_store = self._stores[kind]
        packed = kind_store.objects.get(key.name, key.namespace)
        if packed is None or packed.identity.uid != uid:
            return iter(())
        return self.unpacked(kind, kind_store.objects.assume_deleted(packed))


def _told(packing: Packing, packed: Packed) -> Json:
    obj = packing.unpack(packed)
    return {**obj, "status": {}} if packing.problem(packed)[0] else obj


# ---- packed objects ------------------------------------------------------------------------------
#
# Objects of a view as bytes, unpacked when they are read.
#
# A pod as a dictionary takes 9 KB, as bytes less than one. A view of ten thousand pods is looked at
# a few at a time, so the dictionaries of the last thousand are kept and no more. Of what a watch
# brings only the identity is read at first: most of it is the echo of our own writes, and known.
# Where the store of the API is in the same process, its bytes and names are used and nothing is
# kept twice.

_MOST_UNPACKED = 1024
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
_Storing = Callable[[Identity], Stored | None]

_identify = msgspec.json.Decoder(_Identified).decode


class Packed:
    """One version of one object."""

    __slots__ = ("identity", "is_neat", "problem", "raw")

    def __init__(self, identity: Identity, raw: bytes, *, is_neat: bool) -> None:
        """Take identity and bytes; neat ones hold no field that is never read."""
        self.identity = identity
        self.raw = raw
        self.is_neat = is_neat
        self.problem: _Problem | None = None  # None until it was asked for


# Where an object is not what its readers rely on, and why; two empty texts if it is.
_Problem = tuple[str, str]
_SOUND: _Problem = ("", "")
# What is looked at before controllers may read objects of a kind: group and kind.
_JUDGES: Mapping[tuple[str, str], Callable[[Json], _Problem]] = {
    ("kueue.x-k8s.io", "Workload"): wrong_with_status
}


class Packing:
    """Packs and unpacks the objects of one kind (`kube.form.Form`)."""

    def __init__(self, api_version: str, kind: str, stored: _Storing | None = None) -> None:
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

    def problem(self, packed: Packed) -> _Problem:
        """Return what is wrong with an object; it is looked at once."""
        if self._judge is None:
            return _SOUND
        if packed.problem is None:
            packed.problem = self._judge(self.unpack(packed))
        return packed.problem

    def _keep(self, packed: Packed, obj: Json) -> None:
        if len(packed.raw) > MOST_KEPT_BYTES:
            return
        if len(self._unpacked) >= _MOST_UNPACKED:
            self._unpacked.popitem(last=False)
        self._unpacked[packed] = obj

    def forget(self) -> None:
        """Drop all that is unpacked while no controller works; the bytes stay."""
        self._unpacked.clear()

    def index(self, of: Callable[[Json], Iterable[str]]) -> Callable[[Packed], Iterable[str]]:
        """Return an index over packed objects."""
        if self._judge is None:
            return lambda packed: of(self.unpack(packed))
        return lambda packed: () if self.problem(packed)[0] else of(self.unpack(packed))


def _dumped(obj: Json) -> bytes:
    # A copy of its own size: the encoder's buffer is several times larger.
    return bytes(memoryview(orjson.dumps(obj)))
