"""What a controller is: which changes concern which of its keys, and what to do about a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from unisono.control.actions import Json, Steps
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# The part of an object that a controller reads: if that is equal, nothing is new to it.
Reads = Callable[[Json], object]


class Controller(Protocol):
    """A pure function from what is seen to what is to be done, and when to look.

    `reconcile` is called with the key of an object that may be gone by now. It reads the view and
    yields actions until the object is as it should be; it keeps nothing in memory that it could
    not find again in the view. A failed action ends it, and the key comes back later.

    The protocols below say what a controller may declare besides, to be woken less often.
    """

    @property
    def name(self) -> str:
        """The name in logs and metrics."""

    @property
    def watches(self) -> Sequence[Kind]:
        """The kinds whose changes may wake it."""

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Yield the keys that a change of an object concerns."""

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Do what is to be done about a key."""


@runtime_checkable
class WorksOnOwners(Protocol):
    """A controller whose keys are owners of one kind: changes of dependents wake their owner.

    It is not asked (`touched`) about each dependent: there are many, and one look at their owner
    references serves all such controllers.
    """

    @property
    def owner_kind(self) -> Kind:
        """The kind of its keys."""


@runtime_checkable
class NamesDependents(Protocol):
    """One that works on owners, and is asked about some of its other kinds all the same."""

    @property
    def dependent_kinds(self) -> Sequence[Kind]:
        """The kinds whose changes wake their owner; without this, all that it watches."""


@runtime_checkable
class ReadsPartly(Protocol):
    """A controller that reads only a part of some objects, and is not woken by other changes."""

    @property
    def reads(self) -> Mapping[Kind, Reads]:
        """The part of the objects of each kind that it reads."""


@runtime_checkable
class IdleWithout(Protocol):
    """A controller that has nothing to do while no object of some kind exists."""

    @property
    def idle_without(self) -> Kind:
        """That kind."""


@runtime_checkable
class SettlesItself(Protocol):
    """A controller that its own writes need not wake: it leaves nothing to be done after them."""

    @property
    def ignores_own_writes(self) -> bool:
        """Whether that is so."""


@runtime_checkable
class RoutesByName(Protocol):
    """A controller whose `touched` depends on the name of an object alone."""

    @property
    def routes_by_name(self) -> bool:
        """Whether that is so: then it is asked once per change, not about old and new."""


@runtime_checkable
class WantsUnreadable(Protocol):
    """A controller that also counts, or reports, objects that cannot be worked on."""

    @property
    def wants_unreadable(self) -> bool:
        """Whether that is so."""


def owner_key(obj: Json, kind: Kind) -> Iterable[Key]:
    """Yield the key of the controller owner of an object if it is of a kind."""
    group = kind.api_version.rpartition("/")[0]
    for owner in obj["metadata"].get("ownerReferences") or ():
        same_group = owner["apiVersion"].rpartition("/")[0] == group
        if owner.get("controller") and owner["kind"] == kind.kind and same_group:
            yield Key(obj["metadata"].get("namespace", ""), owner["name"])


def own_key(obj: Json) -> Key:
    """Return the key of an object itself."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
