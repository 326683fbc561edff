"""What a controller is: which changes concern which of its keys, and what to do about a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from unisono.control.actions import Json, Steps
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

# What a controller reads of an object: if that is equal, nothing is new to it.
Reads = Callable[[Json], object]


class Controller(Protocol):
    """A pure function from what is seen to what is to be done, and when to look.

    `reconcile` is called with the key of an object that may be gone by now. It reads the view and
    yields actions until the object is as it should be; it keeps nothing in memory that it could
    not find again in the view. A failed action ends it, and the key comes back later.

    One that hears of all other kinds only for the sake of their owners of one kind may say so with
    an attribute `follows`. Then it is not asked about each of them: there are many such, and one
    look at an object serves them all; `by_owner` names these kinds if they are not all others. One
    that can do nothing while there is no object of some kind names that as `idle_without`. One that
    leaves nothing to be done about what it wrote itself says so with `is_thorough`, and is not
    woken by that. One that reads only part of the objects of a kind may say which with `minds` (a
    mapping from kinds to `Reads`); it does not hear of changes elsewhere in them. One whose
    `touched` goes by the name of an object alone says `is_by_name`.
    """

    @property
    def name(self) -> str:
        """How logs and metrics call it."""

    @property
    def watches(self) -> Sequence[Kind]:
        """The kinds whose changes it wants to hear of."""

    def touched(self, kind: Kind, obj: Json, view: View) -> Iterable[Key]:
        """Yield the keys that a change of an object concerns."""

    def reconcile(self, key: Key, view: View, now: float) -> Steps:
        """Do what is to be done about a key."""


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
