"""What a controller may do: small writes, each of which can be repeated without harm.

A controller never calls the API. It yields actions; the driver carries each out and hands back the
resulting object. The process may die between any two of them, so every controller has to resume
from what is stored alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Literal

import msgspec

from unisono.kube.form import Json
from unisono.kube.mapping import Kind

__all__ = ["Json"]  # what most modules take from here along with the actions


class Ref(msgspec.Struct, frozen=True):
    """An object as it was seen: which one, and in which state."""

    kind: Kind
    namespace: str
    name: str
    uid: str = ""
    version: str = ""  # resourceVersion

    @staticmethod
    def to(obj: Json) -> Ref:
        """Return the reference to an object."""
        metadata = obj["metadata"]
        return Ref(
            Kind(obj["apiVersion"], obj["kind"]),
            metadata.get("namespace", ""),
            metadata["name"],
            metadata.get("uid", ""),
            metadata.get("resourceVersion", ""),
        )


class Create(msgspec.Struct, frozen=True):
    """Make an object. Its name follows from why it exists, so twice is the same as once.

    Found there already, it counts as made if it has the same owner; else the key is tried again.
    """

    obj: Json


class Patch(msgspec.Struct, frozen=True):
    """Change fields by a JSON merge patch, of the state that was seen or not at all."""

    ref: Ref
    changes: Json
    subresource: str = ""
    # False: whatever its state is now. Only for changes that are right in every state.
    exact: bool = True
    # Says whether what was decided still holds; asked right before the write is sent. If not, it
    # fails with Expired. The object's own state is what `exact` is for; this is about the rest.
    holds: Callable[[], bool] | None = None


class Delete(msgspec.Struct, frozen=True):
    """Delete the object of this uid; gone already is as good."""

    ref: Ref
    grace: int | None = None
    policy: Literal["Background", "Foreground", "Orphan"] = "Background"


class Bind(msgspec.Struct, frozen=True):
    """Give a pod its node."""

    pod: Ref
    node: str
    annotations: dict[str, str] = {}  # msgspec gives every struct its own copy
    holds: Callable[[], bool] | None = None  # as of a patch


class Note(msgspec.Struct, frozen=True):
    """Record an Event about an object."""

    about: Ref
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"
    # Reasons of events not written yet that this one makes needless.
    instead_of: tuple[str, ...] = ()


class Again(msgspec.Struct, frozen=True):
    """Requeue this key at a time (seconds since 1970)."""

    at: float


class Wake(msgspec.Struct, frozen=True):
    """Queue a key for another controller."""

    controller: str
    namespace: str
    name: str


class Breathe(msgspec.Struct, frozen=True):
    """Let other tasks run; there is more to do."""


class Read(msgspec.Struct, frozen=True):
    """Ask the API for an object as it is now, and let the view show it; None if it is gone.

    The view is enough for nearly everything, as whatever it missed will wake the controller again.
    This is for what cannot be undone, and for a write whose outcome is unknown.
    """

    kind: Kind
    namespace: str
    name: str


class Adopt(msgspec.Struct, frozen=True):
    """Follow a kind and put a controller to work that was not there when the others began."""

    kind: Kind
    controller: Any  # a Controller, which is made of actions


class Dismiss(msgspec.Struct, frozen=True):
    """Let an adopted controller work no more; its kind goes on being followed."""

    kind: Kind
    controller: str


class Together(msgspec.Struct, frozen=True):
    """Independent actions, carried out at the same time; the key fails if one of them does."""

    actions: Sequence[Create | Patch | Delete | Bind | Read]
    # Hand back what became of each, trouble included, and fail for none of them.
    tells: bool = False


Write = Create | Patch | Delete | Bind
Action = Write | Read | Note | Again | Wake | Breathe | Adopt | Dismiss | Together

# What a controller's step is: it yields actions and gets back what became of each (None for notes
# and deletions).
Steps = Generator[Action, Any, None]


def and_again(steps: Iterator[Action], now: float) -> Steps:
    """Carry steps out; if there were any, look at the key once more."""
    is_left = False
    with contextlib.suppress(StopIteration):
        action = next(steps)
        is_left = True
        while True:
            result = yield action
            action = steps.send(result) if isinstance(steps, Generator) else next(steps)
    if is_left:
        yield Again(now)
