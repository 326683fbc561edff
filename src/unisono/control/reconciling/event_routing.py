"""Which controllers have to look at which keys after a change of the view.

Every write of a gang concerns a dozen controllers at first sight, and most of them read nothing of
what changed: a pod that became ready is no news to the controller that binds it. What a controller
declares (`control.controller`) keeps it asleep: the part of an object that it reads, a kind that it
is idle without, owners that it works on.

This code runs for every change times every controller, so it allocates no more than it must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from unisono.control.actions import Json
from unisono.control.controller import (
    Controller,
    IdleWithout,
    NamesDependents,
    Reads,
    ReadsPartly,
    RoutesByName,
    SettlesItself,
    WantsUnreadable,
    WorksOnOwners,
)
from unisono.control.view import Difference, View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class Task(NamedTuple):
    """One controller and the key that it has to look at."""

    controller: str
    key: Key


class _Subscription(NamedTuple):
    """What one controller wants to know of one kind."""

    controller: str
    touched: Callable[[Kind, Json, View], Iterable[Key]]
    reads: Reads | None
    routes_by_name: bool
    idle_without: Kind | None  # it is not asked while there is nothing of this kind
    wants_unreadable: bool


# Subscriptions by the group and kind of the owners that they work on.
_ByOwner = dict[tuple[str, str], list[_Subscription]]


class EventRouter:
    """Knows which controllers subscribed to which kinds."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        report: Callable[[Task, Exception], None] | None = None,
    ) -> None:
        """Take the subscriptions of all controllers.

        A controller that fails on a change is reported, and the others are woken all the same.
        Without `report` the exception is raised, as tests want it.
        """
        self._report = report
        self._subscriptions: dict[Kind, list[_Subscription]] = {}
        self._by_owner: dict[Kind, _ByOwner] = {}
        self._ignore_own_writes: set[str] = set()
        for controller in controllers:
            self.add(controller)

    def add(self, controller: Controller) -> None:
        """Take the subscriptions of one more."""
        if isinstance(controller, SettlesItself) and controller.ignores_own_writes:
            self._ignore_own_writes.add(controller.name)
        owner = controller.owner_kind if isinstance(controller, WorksOnOwners) else None
        dependents = controller.watches
        if isinstance(controller, NamesDependents):
            dependents = controller.dependent_kinds
        for kind in controller.watches:
            subscription = _subscription(controller, kind)
            if owner is None or kind == owner or kind not in dependents:
                self._subscriptions.setdefault(kind, []).append(subscription)
            else:
                by_owner = self._by_owner.setdefault(kind, {})
                by_owner.setdefault(_group_kind(*owner), []).append(subscription)

    def remove(self, name: str) -> None:
        """Drop the subscriptions of a controller."""
        for kind, subscriptions in self._subscriptions.items():
            self._subscriptions[kind] = [one for one in subscriptions if one.controller != name]
        for by_owner in self._by_owner.values():
            for group_kind, subscriptions in by_owner.items():
                by_owner[group_kind] = [one for one in subscriptions if one.controller != name]
        self._ignore_own_writes.discard(name)

    def tasks_for(
        self, kind: Kind, difference: Difference, view: View, by: Task | None = None
    ) -> Iterable[Task]:
        """Return the tasks that a change makes; `by` is the task that wrote it, if one of ours."""
        tasks: dict[Task, None] = {}
        compared: dict[Reads, bool] = {}  # several controllers may read the same
        is_readable = difference.is_readable
        by_owner = self._by_owner.get(kind)
        if by_owner is not None and is_readable:
            _add_owners(by_owner, difference, compared, tasks)
        for one in self._subscriptions.get(kind, ()):
            if not is_readable and not one.wants_unreadable:
                continue
            if one.idle_without is not None and not view.is_any(one.idle_without):
                continue
            try:
                _add_touched(one, kind, difference, view, compared, tasks)
            except Exception as error:
                if self._report is None:
                    raise
                self._report(Task(one.controller, _key_of(difference)), error)
        if by is not None and by.controller in self._ignore_own_writes:
            tasks.pop(by, None)
        return tasks


def _subscription(controller: Controller, kind: Kind) -> _Subscription:
    idle_without = controller.idle_without if isinstance(controller, IdleWithout) else None
    return _Subscription(
        controller.name,
        controller.touched,
        controller.reads.get(kind) if isinstance(controller, ReadsPartly) else None,
        isinstance(controller, RoutesByName) and controller.routes_by_name,
        idle_without if kind != idle_without else None,
        isinstance(controller, WantsUnreadable) and controller.wants_unreadable,
    )


def _add_touched(
    one: _Subscription,
    kind: Kind,
    difference: Difference,
    view: View,
    compared: dict[Reads, bool],
    tasks: dict[Task, None],
) -> None:
    """Add the keys of one controller that a change concerns."""
    controller, touched, reads, routes_by_name, _, _ = one
    if reads is not None and _is_the_same(reads, difference, compared):
        return
    old, new = difference.old, difference.new
    if new is not None:
        for key in touched(kind, new, view):
            tasks[Task(controller, key)] = None
    if old is not None and (new is None or not routes_by_name):
        for key in touched(kind, old, view):
            tasks[Task(controller, key)] = None


def _key_of(difference: Difference) -> Key:
    obj = difference.new or difference.old or {}
    metadata = obj.get("metadata") or {}
    return Key(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _add_owners(
    by_owner: _ByOwner,
    difference: Difference,
    compared: dict[Reads, bool],
    tasks: dict[Task, None],
) -> None:
    """Add the owners of an object for the controllers that work on such owners."""
    old, new = difference.old, difference.new
    owners = new["metadata"].get("ownerReferences") if new is not None else None
    versions: Sequence[Json | None] = (new, old)
    if old is None or old["metadata"].get("ownerReferences") == owners:
        versions = (new,)  # nearly always: the owners are the same
    seen: list[tuple[tuple[str, str], str]] = []
    for obj in versions:
        if obj is None:
            continue
        metadata = obj["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if not owner.get("controller"):
                continue
            group_kind = _group_kind(owner["apiVersion"], owner["kind"])
            if (group_kind, owner["name"]) in seen:
                continue
            seen.append((group_kind, owner["name"]))
            for one in by_owner.get(group_kind, ()):
                if one.reads is None or not _is_the_same(one.reads, difference, compared):
                    key = Key(metadata.get("namespace", ""), owner["name"])
                    tasks[Task(one.controller, key)] = None


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
def _group_kind(api_version: str, kind: str) -> tuple[str, str]:
    """Return group and kind: an owner may be named in another version."""
    return api_version.rpartition("/")[0], kind
