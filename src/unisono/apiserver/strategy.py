"""What a kind does beyond its schema when an object is written.

The order of a write, for every kind (`rest.writer`):

    decode, alias normalisation → schema defaults → `default` → managedFields
    → `prepare_create` or `prepare_update` → defaults again → mutate (queues, gates)
    → schema check → `check` → warnings → stored

Functions change the object in place; objects are plain dictionaries that are not shared yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, Protocol

from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.request import User


class Context(Protocol):
    """What a strategy may look at besides the object itself."""

    # A digest of what counts of the object that is being written: its spec, labels, annotations.
    # Set by the rules of its kind, for whatever else asks; empty if they need none.
    shape_key: bytes

    @property
    def now(self) -> float:
        """The time in seconds since 1970."""

    @property
    def user(self) -> User:
        """The user of the request."""

    def find(self, key: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a stored object in its stored version, by `group/plural`, or None."""

    def every(
        self, key: str, namespace: str = "", *, saying: bytes = b""
    ) -> Iterable[Mapping[str, Any]]:
        """Return the stored objects of a kind, of one namespace or of all.

        With `saying`, an object without this text in its JSON may be left out: it need not be read.
        """

    def stamp(self, key: str) -> int:
        """Return a number that is another one after every change of a kind's objects."""

    @property
    def remembered(self) -> MutableMapping[str, Any]:
        """What checks keep from one write to the next on this server, each under its name."""

    def warn(self, text: str) -> None:
        """Tell the client something that works, but perhaps not as its author thinks."""


class Strategy:
    """The behaviour of kinds that have none of their own; built-in kinds override it."""

    # Whether metadata.generation counts changes of the object (false for ConfigMap and such).
    has_generation = True
    # PUT without a resourceVersion replaces whatever is there; custom resources must give one.
    allows_unconditional_update = True
    # A new object's status is the server's to write; nodes bring theirs along.
    clears_status = True
    # What the status address may change besides the status: built-in kinds let labels through.
    is_metadata_in_status = True
    # `prepare_create` leaves an object in which nothing is left to be filled in.
    prepares_whole = False
    # `default` looks at nothing but the spec of an object that has no status yet.
    defaults_spec_alone = False
    # A text in the spec that tells alike objects apart and is taken as it is.
    distinct_field = ""
    # Typed kinds write amounts and times in their canonical form; custom resources keep the text.
    is_typed = True

    def prepare_create(self, obj: Json, context: Context) -> None:
        """Set what only the server sets on a new object (a phase, a finalizer, a label)."""

    def prepare_update(self, obj: Json, old: Json, context: Context) -> None:
        """Put back what an update must not change silently (a status written to the main path)."""

    def default(self, obj: Json) -> None:
        """Fill in what depends on other fields; must change nothing the second time."""

    def check(self, obj: Json, old: Json | None, context: Context) -> Iterable[Cause]:
        """Yield what breaks a rule of the kind; `old` is None for a new object."""
        return ()

    def refuse_deletion(self, obj: Mapping[str, Any], context: Context) -> str:
        """Say why an object has to stay; empty if it may go."""
        return ""

    def generation_moves(self, obj: Json, old: Json) -> bool:
        """Say whether a change counts as a new generation: anything but metadata and status."""
        return any(
            obj.get(key) != old.get(key)
            for key in obj.keys() | old.keys()
            if key not in ("metadata", "status", "apiVersion", "kind")
        )
