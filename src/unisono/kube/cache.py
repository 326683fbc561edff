"""What a cache holds: objects by key, indexes over them, and own writes not yet echoed.

    changes in (from the reflector)          deltas out (to the handlers)
    Upsert, Remove, Replace, Assume, …   →   ADDED, MODIFIED, DELETED, SYNC

Promises:

- A delta is given for every change that can be seen in the store, exactly once, in order.
- An event that is no newer than what is stored changes nothing: late and doubled events are safe.
- What an own write returned (`assume`) is seen at once, and no event or list from before it brings
  the old state back (kube-api.md, 4.3). The same holds for own deletions (`assume_deleted`).
- A name that was deleted and made again is a DELETED and an ADDED, never a MODIFIED.
- An object that the store handed out must not be changed.

Pure: no clock, no loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import msgspec

from unisono.kube.form import Form, Identity, Key, is_newer

T = TypeVar("T")

What = Literal["ADDED", "MODIFIED", "DELETED", "SYNC"]

# A list that is older than an own write keeps that write once. If a second list is older, too, the
# server has gone back in time (a restored backup), and what it says is the truth.
_LISTS_SURVIVED = 1
# The answer to an own write may come after the watch has told of the object's end. So many ends are
# remembered: more than can happen while one batch of writes is under way.
_MOST_ENDS = 4096


class Upsert(msgspec.Struct, Generic[T], frozen=True):
    """An object is new or has changed."""

    new: T


class Remove(msgspec.Struct, Generic[T], frozen=True):
    """An object is gone; this is how it last looked."""

    old: T


class Replace(msgspec.Struct, Generic[T], frozen=True):
    """This is everything there is, as of a resource version."""

    everything: tuple[T, ...]
    resource_version: str


Change = Upsert[T] | Remove[T] | Replace[T]


class Delta(msgspec.Struct, Generic[T], frozen=True):
    """What a handler is told: ADDED and SYNC have `new`, DELETED has `old`, MODIFIED has both."""

    what: What
    key: Key
    old: T | None = None
    new: T | None = None


@dataclass(slots=True)
class _Assumed:
    """An own write that the watch has not confirmed yet; `gone` for a deletion."""

    resource_version: str
    uid: str
    gone: bool
    lists: int = 0


class Store(Generic[T]):
    """The objects of one kind, as far as we know."""

    def __init__(
        self,
        form: Form[T],
        indexes: Mapping[str, Callable[[T], Iterable[str]]] | None = None,
    ) -> None:
        """Make an empty store; an index names the values under which an object is found."""
        self._form = form
        self._objects: dict[Key, T] = {}
        # The same, to be read where a call would cost more than the answer.
        self.objects: Mapping[Key, T] = self._objects
        self._assumed: dict[Key, _Assumed] = {}
        self._ended: dict[str, None] = {}  # uids of objects that are gone for good
        self._indexers = dict(indexes or {})
        # Keys are kept in dictionaries rather than sets: the order is that of arrival everywhere.
        self._indexed: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._indexers}

    # --- reading ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many objects there are."""
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        """Every object, in order of arrival."""
        return iter(self._objects.values())

    def keys(self) -> list[Key]:
        """Return the key of every object, in order of arrival."""
        return list(self._objects)

    def __contains__(self, key: Key) -> bool:
        """Whether there is such an object."""
        return key in self._objects

    def get(self, name: str, namespace: str = "") -> T | None:
        """Return one object, or None."""
        return self._objects.get(Key(namespace, name))

    def by(self, index: str, value: str) -> list[T]:
        """Return the objects that an index has under a value, in order of arrival."""
        return [self._objects[key] for key in self._indexed[index].get(value, ())]

    def values_of(self, index: str) -> Iterable[str]:
        """Return the values under which an index has objects."""
        return self._indexed[index].keys()

    @property
    def unconfirmed(self) -> int:
        """How many own writes the watch has not confirmed yet."""
        return len(self._assumed)

    # --- writing ---------------------------------------------------------------------------------

    def apply(self, change: Change[T]) -> list[Delta[T]]:
        """Take a change in, and say what became different."""
        match change:
            case Upsert():
                return self._upsert(change.new)
            case Remove():
                return self._remove(change.old)
            case Replace():
                return self._replace(change.everything, change.resource_version)

    def assume(self, written: T) -> list[Delta[T]]:
        """Take in what an own write returned, before the watch brings it."""
        identity = self._form.identity(written)
        if identity.uid and identity.uid in self._ended:
            return []  # the watch was quicker, and has seen its end
        deltas = self._upsert(written)
        if deltas:  # else the watch was quicker
            self._assumed[identity.key] = _Assumed(
                identity.resource_version, identity.uid, gone=False
            )
        return deltas

    def assume_deleted(self, written: T) -> list[Delta[T]]:
        """Forget an object that an own call deleted for good; its old states stay away, too."""
        identity = self._form.identity(written)
        held = self._objects.get(identity.key)
        if held is None or self._form.identity(held).uid != identity.uid:
            return []
        self._assumed[identity.key] = _Assumed(identity.resource_version, identity.uid, gone=True)
        return [self._drop(identity.key, held)]

    def resync(self) -> list[Delta[T]]:
        """Say everything again, for handlers that may have missed something."""
        return [Delta("SYNC", key, new=each) for key, each in self._objects.items()]

    def _upsert(self, new: T) -> list[Delta[T]]:
        identity = self._form.identity(new)
        if self._is_outdated(identity):
            return []
        old = self._objects.get(identity.key)
        if old is None:
            self._put(identity.key, None, new)
            return [Delta("ADDED", identity.key, new=new)]
        was = self._form.identity(old)
        if not is_newer(identity.resource_version, was.resource_version):
            return []
        if was.uid == identity.uid:
            self._put(identity.key, old, new)
            return [Delta("MODIFIED", identity.key, old=old, new=new)]
        gone = self._drop(identity.key, old)
        self._put(identity.key, None, new)
        return [gone, Delta("ADDED", identity.key, new=new)]

    def _remove(self, last: T) -> list[Delta[T]]:
        identity = self._form.identity(last)
        if self._is_outdated(identity, removal=True):
            return []
        old = self._objects.get(identity.key)
        if old is None:
            return []
        was = self._form.identity(old)
        if was.uid != identity.uid and not is_newer(
            identity.resource_version, was.resource_version
        ):
            return []  # of an earlier object of that name
        return [self._drop(identity.key, old)]

    def _replace(self, everything: tuple[T, ...], resource_version: str) -> list[Delta[T]]:
        listed = {self._form.identity(each).key: each for each in everything}
        kept = self._still_assumed(listed, resource_version)
        deltas = [
            self._drop(key, old)
            for key, old in list(self._objects.items())
            if key not in listed and key not in kept
        ]
        for key, new in listed.items():
            if key not in kept:
                deltas += self._put_listed(key, new)
        return deltas

    def _put_listed(self, key: Key, new: T) -> list[Delta[T]]:
        """Take an object from a list: it is the truth, even if its version is lower than ours."""
        old = self._objects.get(key)
        if old is None:
            self._put(key, None, new)
            return [Delta("ADDED", key, new=new)]
        was, now = self._form.identity(old), self._form.identity(new)
        if was.uid != now.uid:
            gone = self._drop(key, old)
            self._put(key, None, new)
            return [gone, Delta("ADDED", key, new=new)]
        if was.resource_version == now.resource_version:
            return []
        self._put(key, old, new)
        return [Delta("MODIFIED", key, old=old, new=new)]

    # --- own writes ------------------------------------------------------------------------------

    def _is_outdated(self, identity: Identity, *, removal: bool = False) -> bool:
        """Say whether an event is from before an own write; one that is not ends the assumption."""
        assumed = self._assumed.get(identity.key)
        if assumed is None:
            return False
        if assumed.gone:
            if assumed.uid == identity.uid and not removal:
                return True  # a state of the object that we deleted
            if assumed.uid != identity.uid and not is_newer(
                identity.resource_version, assumed.resource_version
            ):
                return True
        elif is_newer(assumed.resource_version, identity.resource_version):
            return True
        del self._assumed[identity.key]
        return False

    def _still_assumed(self, listed: Mapping[Key, T], resource_version: str) -> set[Key]:
        """Return the keys whose own write a list does not know yet; drop the other assumptions."""
        kept = set()
        for key, assumed in list(self._assumed.items()):
            if assumed.gone:
                # What was deleted for good never comes back: a list that has it is from before.
                there = listed.get(key)
                unknown = there is not None and self._form.identity(there).uid == assumed.uid
            else:
                unknown = is_newer(assumed.resource_version, resource_version)
            if unknown and assumed.lists < _LISTS_SURVIVED:
                assumed.lists += 1
                kept.add(key)
            else:
                del self._assumed[key]
        return kept

    # --- objects and indexes ---------------------------------------------------------------------

    def _put(self, key: Key, old: T | None, new: T) -> None:
        self._objects[key] = new
        for name, indexer in self._indexers.items():
            index = self._indexed[name]
            values = list(indexer(new))
            if old is not None:
                for value in indexer(old):
                    if value not in values:
                        _unlink(index, value, key)
            for value in values:
                index.setdefault(value, {})[key] = None

    def _drop(self, key: Key, old: T) -> Delta[T]:
        del self._objects[key]
        self._ended[self._form.identity(old).uid] = None
        if len(self._ended) > _MOST_ENDS:
            del self._ended[next(iter(self._ended))]
        for name, indexer in self._indexers.items():
            for value in indexer(old):
                _unlink(self._indexed[name], value, key)
        return Delta("DELETED", key, old=old)


def _unlink(index: dict[str, dict[Key, None]], value: str, key: Key) -> None:
    keys = index.get(value)
    if keys is None:
        return
    keys.pop(key, None)
    if not keys:
        del index[value]  # a value without objects must not be kept for ever
