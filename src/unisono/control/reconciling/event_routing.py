"""Who is to look at what, after something became different in the view.

Every write of a gang is heard of by a dozen controllers, and most of them do not care: a pod that
became ready is nothing to whoever places it. A controller says what it reads of the objects of a
kind (`minds`), and is not woken by a change that leaves this as it was; one that works on objects
of a kind that a cluster need not have (`idle_without`) hears of nothing else until there is one.
What cannot be read is told to those who say so to the author, or count it (`hears_unreadable`).

What is written here runs for every change times every controller, so it makes no object that it
can do without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    idle_without: Kind | None  # nobody is asked while there is nothing of this kind
    hears_unreadable: bool  # also of what nobody can work on


# Ears by the group and kind of the owners for whose sake they hear.
_Followers = dict[tuple[str, str], list[_Ear]]


class Hearing:
    """Knows which controllers hear of which kinds."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        report: Callable[[Task, Exception], None] | None = None,
    ) -> None:
        """Ask each controller what it wants to hear of.

        A controller that fails on a change is reported, and the others hear of it all the same.
        Without `report` the exception is raised, as tests want it.
        """
        self._report = report
        self._interested: dict[Kind, list[_Ear]] = {}
        self._followers: dict[Kind, _Followers] = {}
        self._thorough = {one.name for one in controllers if getattr(one, "is_thorough", False)}
        for controller in controllers:
            follows: Kind | None = getattr(controller, "follows", None)
            minds: Mapping[Kind, Reads] = getattr(controller, "minds", {})
            is_by_name: bool = getattr(controller, "is_by_name", False)
            idle_without: Kind | None = getattr(controller, "idle_without", None)
            by_owner: Sequence[Kind] = getattr(controller, "by_owner", controller.watches)
            for kind in controller.watches:
                needs = idle_without if kind != idle_without else None
                ear = _Ear(
                    controller.name,
                    controller.touched,
                    minds.get(kind),
                    is_by_name,
                    needs,
                    getattr(controller, "hears_unreadable", False),
                )
                if follows is None or kind == follows or kind not in by_owner:
                    self._interested.setdefault(kind, []).append(ear)
                else:
                    sorts = self._followers.setdefault(kind, {})
                    sorts.setdefault(_sort_of(*follows), []).append(ear)

    def concerned(
        self, kind: Kind, difference: Difference, view: View, by: Task | None = None
    ) -> Iterable[Task]:
        """Return who has to look at what, perhaps after what a task of ours wrote."""
        tasks: dict[Task, None] = {}
        compared: dict[Reads, bool] = {}  # several controllers may read the same
        is_readable = difference.is_readable
        followers = self._followers.get(kind)
        if followers is not None and is_readable:
            _tell_for_owners(followers, difference, compared, tasks)
        for ear in self._interested.get(kind, ()):
            if not is_readable and not ear.hears_unreadable:
                continue
            try:
                _tell(ear, kind, difference, view, compared, tasks)
            except Exception as error:
                if self._report is None:
                    raise
                self._report(Task(ear.controller, _key_of(difference)), error)
        if by is not None and by.controller in self._thorough:
            tasks.pop(by, None)
        return tasks


def _tell(
    ear: _Ear,
    kind: Kind,
    difference: Difference,
    view: View,
    compared: dict[Reads, bool],
    tasks: dict[Task, None],
) -> None:
    """Have one controller look at what a change concerns."""
    controller, touched, reads, is_by_name, idle_without, _ = ear
    if idle_without is not None and not view.is_any(idle_without):
        return
    if reads is not None and _is_the_same(reads, difference, compared):
        return
    old, new = difference.old, difference.new
    if new is not None:
        for key in touched(kind, new, view):
            tasks[Task(controller, key)] = None
    if old is not None and (new is None or not is_by_name):
        for key in touched(kind, old, view):
            tasks[Task(controller, key)] = None


def _key_of(difference: Difference) -> Key:
    obj = difference.new or difference.old or {}
    metadata = obj.get("metadata") or {}
    return Key(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _tell_for_owners(
    followers: _Followers,
    difference: Difference,
    compared: dict[Reads, bool],
    tasks: dict[Task, None],
) -> None:
    """Have those look at an object's owner who hear of it only for the owner's sake."""
    old, new = difference.old, difference.new
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
                if ear.reads is None or not _is_the_same(ear.reads, difference, compared):
                    key = Key(metadata.get("namespace", ""), owner["name"])
                    tasks[Task(ear.controller, key)] = None


def _is_the_same(reads: Reads, difference: Difference, compared: dict[Reads, bool]) -> bool:
    """Say whether a change leaves everything as it was that a controller reads."""
    old, new = difference.old, difference.new
    if old is None or new is None:
        return False
    same = compared.get(reads)
    if same is None:
        same = compared[reads] = bool(reads(old) == reads(new))
    return same


@lru_cache(maxsize=1024)  # more than there are kinds that own something
def _sort_of(api_version: str, kind: str) -> tuple[str, str]:
    """Return group and kind: an owner may be named in another version."""
    return api_version.rpartition("/")[0], kind
