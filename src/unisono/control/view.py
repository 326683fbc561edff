"""What controllers look at: the objects of the cluster as far as we know them.

The view may be late, but never behind our own writes: what a write returned is in it at once. The
objects are shared and must not be changed.

An object whose status breaks what its readers rely on (`packed_objects`) is returned as it is by
`raw` alone. `get` raises an exception, which the driver turns into an event; the other methods
leave it out. So it stops no work but that on itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from unisono.control.actions import Json
from unisono.control.packed_objects import Packed, Packing
from unisono.engine.model.errors import InvalidManifest
from unisono.kube.cache.store import Delta, Remove, Store, Upsert
from unisono.kube.form import Key
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
class Shelf:
    """The objects of one kind, packed."""

    packing: Packing
    store: Store[Packed]
    is_followed: bool = True  # else it stays empty: no watch would report what becomes of an object

    @staticmethod
    def of(kind: Kind, indexes: Mapping[str, Index]) -> Shelf:
        """Make an empty one."""
        packing = Packing(*kind)
        return Shelf(packing, Store(packing, wrapped(packing, indexes)))


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

    def __init__(self, shelves: Mapping[Kind, Shelf]) -> None:
        """Take one shelf per watched kind."""
        self._shelves = shelves

    # ---- looking -----------------------------------------------------------------------------

    def get(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object to work on, or None; raise Unreadable if its status is broken."""
        shelf = self._shelves[kind]
        packed = shelf.store.get(name, namespace)
        if packed is None:
            return None
        path, why = shelf.packing.problem(packed)
        if path:
            raise Unreadable(kind, name, path, why)
        return shelf.packing.unpack(packed)

    def peek(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object that another refers to; None also if it cannot be read."""
        shelf = self._shelves[kind]
        packed = shelf.store.get(name, namespace)
        if packed is None or shelf.packing.problem(packed)[0]:
            return None
        return shelf.packing.unpack(packed)

    def raw(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object as it is, whatever is wrong with it."""
        shelf = self._shelves[kind]
        packed = shelf.store.get(name, namespace)
        return shelf.packing.unpack(packed) if packed is not None else None

    def find(self, kind: Kind, name: str, namespace: str = "") -> Json | None:
        """Return one object of a kind that may not be watched, or None."""
        return self.get(kind, name, namespace) if kind in self._shelves else None

    def all(self, kind: Kind) -> Iterator[Json]:
        """Yield every object of a kind, in order of arrival."""
        packing, every = self._shelves[kind].packing, list(self._shelves[kind].store)
        return (packing.unpack(one) for one in every if not packing.problem(one)[0])

    def keys(self, kind: Kind) -> list[Key]:
        """Return the key of every object of a kind, in order of arrival."""
        return self._shelves[kind].store.keys()

    def within(self, kind: Kind, namespace: str) -> list[Json]:
        """Return the objects of a kind in a namespace."""
        return self.by(kind, BY_NAMESPACE, namespace)

    def owned(self, kind: Kind, uid: str) -> list[Json]:
        """Return the objects of a kind that belong to another, in order of arrival."""
        return self.by(kind, BY_OWNER, uid)

    def by(self, kind: Kind, index: str, value: str) -> list[Json]:
        """Return the objects that an index of a kind has under a value."""
        shelf = self._shelves[kind]
        packing, found = shelf.packing, shelf.store.by(index, value)
        return [packing.unpack(one) for one in found if not packing.problem(one)[0]]

    def has(self, kind: Kind) -> bool:
        """Say whether a kind is watched."""
        return kind in self._shelves

    def is_any(self, kind: Kind) -> bool:
        """Say whether there is any object of a kind."""
        return len(self._shelves[kind].store) > 0

    def kinds(self) -> Iterable[Kind]:
        """Return the watched kinds."""
        return self._shelves.keys()

    def forget(self) -> None:
        """Drop what was unpacked; the next read unpacks it again."""
        for shelf in self._shelves.values():
            shelf.packing.forget()

    # ---- changes -----------------------------------------------------------------------------

    def unpacked(self, kind: Kind, deltas: Iterable[Delta[Packed]]) -> Iterator[Difference]:
        """Yield what deltas of a kind's store mean."""
        packing = self._shelves[kind].packing
        for delta in deltas:
            old, new = delta.old, delta.new
            yield Difference(
                _told(packing, old) if old is not None else None,
                _told(packing, new) if new is not None else None,
                new is None or not packing.problem(new)[0],
            )

    def upsert(self, kind: Kind, obj: Json) -> Iterator[Difference]:
        """Take an object as it is now."""
        shelf = self._shelves[kind]
        return self.unpacked(kind, shelf.store.apply(Upsert(shelf.packing.pack(obj))))

    def remove(self, kind: Kind, obj: Json) -> Iterator[Difference]:
        """Take an object as it last was."""
        shelf = self._shelves[kind]
        return self.unpacked(kind, shelf.store.apply(Remove(shelf.packing.pack(obj))))

    def assume(self, kind: Kind, obj: Json, raw: bytes = b"") -> Iterator[Difference]:
        """Show what an own write returned; `raw` is the same as JSON, if that is at hand."""
        shelf = self._shelves[kind]
        if not shelf.is_followed:
            return iter(())
        return self.unpacked(kind, shelf.store.assume(shelf.packing.pack(obj, raw)))

    def assume_gone(self, kind: Kind, key: Key, uid: str) -> Iterator[Difference]:
        """Show that an own call deleted an object for good."""
        shelf = self._shelves[kind]
        packed = shelf.store.get(key.name, key.namespace)
        if packed is None or packed.identity.uid != uid:
            return iter(())
        return self.unpacked(kind, shelf.store.assume_deleted(packed))


def _told(packing: Packing, packed: Packed) -> Json:
    obj = packing.unpack(packed)
    return {**obj, "status": {}} if packing.problem(packed)[0] else obj
