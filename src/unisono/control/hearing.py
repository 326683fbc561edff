"""Who is to look at what, after something became different in the view.

Every write of a gang is heard of by a dozen controllers, and most of them do not care: a pod that
became ready is nothing to whoever places it. A controller says what it reads of the objects of a
kind (`minds`), and is not woken by a change that leaves this as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from unisono.control.actions import Json
from unisono.control.controller import Controller, Reads
from unisono.control.view import Difference, View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class Task(NamedTuple):
    """One controller's look at one key."""

    controller: str
    key: Key


class _Ear(NamedTuple):
    """What one controller hears of one kind."""

    controller: str
    touched: Callable[[Kind, Json, View], Iterable[Key]]
    reads: Reads | None
    is_by_name: bool


# Ears by the group and kind of the owners for whose sake they hear.
_Followers = dict[tuple[str, str], list[_Ear]]


class Hearing:
    """Knows which controllers hear of which kinds."""

    def __init__(self, controllers: Sequence[Controller]) -> None:
        """Ask each controller what it wants to hear of."""
        self._interested: dict[Kind, list[_Ear]] = {}
        self._followers: dict[Kind, _Followers] = {}
        self._thorough = {one.name for one in controllers if getattr(one, "is_thorough", False)}
        for controller in controllers:
            follows: Kind | None = getattr(controller, "follows", None)
            minds: Mapping[Kind, Reads] = getattr(controller, "minds", {})
            is_by_name: bool = getattr(controller, "is_by_name", False)
            for kind in controller.watches:
                ear = _Ear(controller.name, controller.touched, minds.get(kind), is_by_name)
                if follows is None or kind == follows:
                    self._interested.setdefault(kind, []).append(ear)
                else:
                    sorts = self._followers.setdefault(kind, {})
                    sorts.setdefault(_sort_of(*follows), []).append(ear)

    def concerned(
        self, kind: Kind, difference: Difference, view: View, by: Task | None = None
    ) -> Iterator[Task]:
        """Yield who has to look at what, perhaps after what a task of ours wrote."""
        own = by if by is not None and by.controller in self._thorough else None
        for task in self._all_concerned(kind, difference, view):
            if task != own:
                yield task

    def _all_concerned(self, kind: Kind, difference: Difference, view: View) -> Iterator[Task]:
        old, new = difference
        compared: dict[Reads, bool] = {}  # several controllers may read the same
        followers = self._followers.get(kind)
        if followers is not None:
            yield from _told_for_owners(followers, difference, compared)
        for ear in self._interested.get(kind, ()):
            if _is_the_same(ear, difference, compared):
                continue
            keys: dict[Key, None] = {}
            if new is not None:
                keys.update(dict.fromkeys(ear.touched(kind, new, view)))
            if old is not None and (new is None or not ear.is_by_name):
                keys.update(dict.fromkeys(ear.touched(kind, old, view)))
            for key in keys:
                yield Task(ear.controller, key)


def _told_for_owners(
    followers: _Followers, difference: Difference, compared: dict[Reads, bool]
) -> Iterator[Task]:
    """Have those look at an object's owner who hear of it only for the owner's sake."""
    old, new = difference
    owners = new["metadata"].get("ownerReferences") if new is not None else None
    if old is None or old["metadata"].get("ownerReferences") == owners:
        told: Sequence[Json | None] = (new,)  # as nearly always: they belong to whom they did
    else:
        told = (new, old)
    seen: list[tuple[tuple[str, str], str]] = []
    for obj in told:
        if obj is None:
            continue
        metadata = obj["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if not owner.get("controller"):
                continue
            sort = _sort_of(owner["apiVersion"], owner["kind"])
            if (sort, owner["name"]) in seen:
                continue
            seen.append((sort, owner["name"]))
            for ear in followers.get(sort, ()):
                if not _is_the_same(ear, difference, compared):
                    yield Task(ear.controller, Key(metadata.get("namespace", ""), owner["name"]))


def _is_the_same(ear: _Ear, difference: Difference, compared: dict[Reads, bool]) -> bool:
    """Say whether a change leaves everything as it was that a controller reads."""
    old, new = difference
    if ear.reads is None or old is None or new is None:
        return False
    same = compared.get(ear.reads)
    if same is None:
        same = compared[ear.reads] = bool(ear.reads(old) == ear.reads(new))
    return same


@lru_cache(maxsize=1024)  # more than there are kinds that own something
def _sort_of(api_version: str, kind: str) -> tuple[str, str]:
    """Return group and kind: an owner may be named in another version."""
    return api_version.rpartition("/")[0], kind
