"""What a view is: an object as the API sent it, and fields that read one key of it each.

    class PodSpec(View):
        node_name = Text("nodeName")

A field is read when it is asked for, from the dictionary itself, so a view costs one small object
and no copy. null and a missing key read as absent. A value of another type, as another definition
of a kind may let in, raises `Malformed` with its field: what reads the object leaves it out, counts
it or puts it into quarantine (ADR 0025), as for any other manifest that is wrong. Two things are
left unchecked, because API servers check them for every object and hot paths read them: the values
of text maps (labels, annotations, selectors), and amounts, which `Quantity.from_raw` reads. `type`
is asked before `isinstance`, which costs a call.

Rejected: TypedDict (it says what should be there, and a wrong type still raises somewhere else),
and decoding into structs (`kinds.decode`), which copies the object and is ten times slower. Hot
loops keep a part in a variable (`spec = pod.spec`): that reads it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Generic, TypeVar

from unisono.engine.model.errors import InvalidManifest

# An object, or a part of one, as JSON has it. Nothing that reads may change it.
Raw = Mapping[str, object]

_NOTHING: Raw = {}
_NO_TEXTS: Mapping[str, str] = {}


_NAMES = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list"}


class Malformed(InvalidManifest):
    """A stored object has a field of another type than its kind says."""

    def __init__(self, path: str, wanted: str, found: object) -> None:
        """Name the field, what it must be, and what it is."""
        super().__init__(path, f"must be {wanted}, not {_NAMES.get(type(found), 'an object')}")


class View:
    """A part of an object, read field by field."""

    __slots__ = ("raw",)

    def __init__(self, raw: Raw) -> None:
        """Look at a dictionary; it is neither copied nor checked."""
        self.raw = raw

    def has(self, key: str) -> bool:
        """Say whether a key is there and not null."""
        return self.raw.get(key) is not None


V = TypeVar("V", bound=View)


class Text:
    """A string; empty if absent."""

    __slots__ = ("_default", "_key")

    def __init__(self, key: str, default: str = "") -> None:
        """Read this key."""
        self._key = key
        self._default = default

    def __get__(self, view: View, _: type[View]) -> str:
        """Return the text."""
        found = view.raw.get(self._key)
        if type(found) is str:
            return found
        if found is None:
            return self._default
        raise Malformed(self._key, "a text", found)


class Number:
    """A whole number; zero if absent, unless the API has another default."""

    __slots__ = ("_default", "_key")

    def __init__(self, key: str, default: int = 0) -> None:
        """Read this key."""
        self._key = key
        self._default = default

    def __get__(self, view: View, _: type[View]) -> int:
        """Return the number."""
        found = view.raw.get(self._key)
        if type(found) is int:
            return found
        if found is None:
            return self._default
        raise Malformed(self._key, "a number", found)


class NumberIfAny:
    """A whole number; None if absent."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """Read this key."""
        self._key = key

    def __get__(self, view: View, _: type[View]) -> int | None:
        """Return the number."""
        found = view.raw.get(self._key)
        if found is None or type(found) is int:
            return found
        raise Malformed(self._key, "a number", found)


class Flag:
    """True or false; false if absent, unless the API has another default."""

    __slots__ = ("_default", "_key")

    def __init__(self, key: str, *, default: bool = False) -> None:
        """Read this key."""
        self._key = key
        self._default = default

    def __get__(self, view: View, _: type[View]) -> bool:
        """Return the flag."""
        found = view.raw.get(self._key)
        if type(found) is bool:
            return found
        if found is None:
            return self._default
        raise Malformed(self._key, "true or false", found)


class Texts:
    """A list of strings; empty if absent."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """Read this key."""
        self._key = key

    def __get__(self, view: View, _: type[View]) -> tuple[str, ...]:
        """Return the strings."""
        found = view.raw.get(self._key)
        if found is None:
            return ()
        if not isinstance(found, list | tuple):
            raise Malformed(self._key, "a list", found)
        for one in found:
            if type(one) is not str:
                raise Malformed(self._key, "a list of texts", one)
        return tuple(found)


class TextMap:
    """An object of strings, such as labels; empty if absent."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """Read this key."""
        self._key = key

    def __get__(self, view: View, _: type[View]) -> Mapping[str, str]:
        """Return the map itself."""
        found = view.raw.get(self._key)
        if type(found) is dict or isinstance(found, dict):
            return found
        if found is None:
            return _NO_TEXTS
        raise Malformed(self._key, "an object", found)


class Amounts:
    """Amounts by resource, as they are written: "500m" or 2; empty if absent."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """Read this key."""
        self._key = key

    def __get__(self, view: View, _: type[View]) -> Raw:
        """Return the map itself."""
        found = view.raw.get(self._key)
        if type(found) is dict or isinstance(found, dict):
            return found
        if found is None:
            return _NOTHING
        raise Malformed(self._key, "an object", found)


class Part(Generic[V]):
    """An object inside; one without fields if absent."""

    __slots__ = ("_key", "_kind")

    def __init__(self, key: str, kind: type[V]) -> None:
        """Read this key in this way."""
        self._key = key
        self._kind = kind

    def __get__(self, view: View, _: type[View]) -> V:
        """Return the view of it."""
        found = view.raw.get(self._key)
        if type(found) is dict or isinstance(found, dict):
            return self._kind(found)
        if found is None:
            return self._kind(_NOTHING)
        raise Malformed(self._key, "an object", found)


class PartIfAny(Generic[V]):
    """An object inside; None if absent."""

    __slots__ = ("_key", "_kind")

    def __init__(self, key: str, kind: type[V]) -> None:
        """Read this key in this way."""
        self._key = key
        self._kind = kind

    def __get__(self, view: View, _: type[View]) -> V | None:
        """Return the view of it."""
        found = view.raw.get(self._key)
        if type(found) is dict or isinstance(found, dict):
            return self._kind(found)
        if found is None:
            return None
        raise Malformed(self._key, "an object", found)


class Parts(Generic[V]):
    """A list of objects; empty if absent."""

    __slots__ = ("_key", "_kind")

    def __init__(self, key: str, kind: type[V]) -> None:
        """Read this key in this way."""
        self._key = key
        self._kind = kind

    def __get__(self, view: View, _: type[View]) -> list[V]:
        """Return a view of each."""
        found = view.raw.get(self._key)
        if found is None:
            return []
        kind, parts = self._kind, []
        if type(found) is list:  # the usual case, without a generator
            for index, one in enumerate(found):
                if type(one) is not dict:
                    raise Malformed(f"{self._key}[{index}]", "an object", one)
                parts.append(kind(one))
            return parts
        return [kind(one) for one in objects_in(found, self._key)]


class Raws:
    """A list of objects as they are, to be copied into another object; empty if absent."""

    __slots__ = ("_key",)

    def __init__(self, key: str) -> None:
        """Read this key."""
        self._key = key

    def __get__(self, view: View, _: type[View]) -> tuple[Raw, ...]:
        """Return the objects."""
        return tuple(objects_in(view.raw.get(self._key), self._key))


def objects_in(found: object, path: str) -> Iterator[Raw]:
    """Yield the objects of a list; nothing without one."""
    if found is None:
        return
    if not isinstance(found, list | tuple):
        raise Malformed(path, "a list", found)
    for index, one in enumerate(found):
        if not isinstance(one, dict):
            raise Malformed(f"{path}[{index}]", "an object", one)
        yield one


@lru_cache(maxsize=1024)  # what happens within a second has one time, and is read many times
def seconds_of(text: str) -> float:
    """Return an RFC 3339 time in seconds since 1970; 0 if it is empty or no time.

    >>> seconds_of("1970-01-01T00:01:00Z"), seconds_of(""), seconds_of("soon")
    (60.0, 0.0, 0.0)
    """
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
