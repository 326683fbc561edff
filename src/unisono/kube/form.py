"""In which form a cache keeps its objects: dictionaries, or structs with only what is needed.

A pod as a dictionary takes 13 KB, as a struct with the fields that a scheduler reads about 3 KB,
and decoding it is several times quicker (kube-api.md, 4.1). Either way the cache only has to know
which object it is and how new it is: its `Identity`.

A struct for a cache has a field `metadata` that looks like `Meta` below (more fields are fine, so
`class PodMeta(Meta): labels: …` is the usual way). Fields it does not name are skipped.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import orjson

from unisono.kinds.digits import whole_number
from unisono.kube.errors import BadResponse

T = TypeVar("T")
Json = dict[str, Any]


class Key(NamedTuple):
    """Where an object stands in its kind; the namespace is empty for kinds without."""

    namespace: str
    name: str


class Identity(NamedTuple):
    """Which object this is, and which state of it."""

    key: Key
    uid: str
    resource_version: str


class Form(Protocol[T]):
    """How a cache reads its objects."""

    def decode(self, raw: bytes | msgspec.Raw) -> T:
        """Read one object; raises BadResponse if it has not the form that it should have."""

    def identity(self, each: T) -> Identity:
        """Say which object this is."""


class Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The part of `metadata` that every cache needs."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class HasMeta(Protocol):
    """A struct with metadata."""

    @property
    def metadata(self) -> Meta:
        """Name, namespace, uid and resource version, at least."""


S = TypeVar("S", bound=HasMeta)


class Structs(Generic[S]):
    """Objects as structs of one type."""

    def __init__(self, struct: type[S]) -> None:
        """Prepare to decode this type."""
        self._decode = msgspec.json.Decoder(struct).decode
        self._name = struct.__name__

    def decode(self, raw: bytes | msgspec.Raw) -> S:
        """Read the fields that the struct has."""
        try:
            return self._decode(raw)
        except msgspec.DecodeError as error:
            raise BadResponse(f"an object does not read as {self._name}: {error}") from error

    def identity(self, each: S) -> Identity:
        """Say which object this is."""
        meta = each.metadata
        return Identity(Key(meta.namespace, meta.name), meta.uid, meta.resource_version)


class Dicts:
    """Objects as dictionaries, without `managedFields`, which have no reader and are a third.

    Sending such an object back is safe: an update that does not mention them leaves them alone.
    Real servers leave `apiVersion` and `kind` out of the items of a list of a built-in kind; here
    every object has them.
    """

    def __init__(self, api_version: str, kind: str) -> None:
        """Prepare for objects of one kind."""
        self._api_version = api_version
        self._kind = kind

    def decode(self, raw: bytes | msgspec.Raw) -> Json:
        """Read everything."""
        try:
            read: Json = orjson.loads(memoryview(raw))
            read["metadata"].pop("managedFields", None)
            read.setdefault("apiVersion", self._api_version)
            read.setdefault("kind", self._kind)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadResponse(f"an object cannot be read: {error!r}") from error
        return read

    def identity(self, each: Json) -> Identity:
        """Say which object this is."""
        meta = each["metadata"]
        return Identity(
            Key(meta.get("namespace", ""), meta["name"]),
            meta.get("uid", ""),
            meta.get("resourceVersion", ""),
        )


def is_newer(one: str, other: str) -> bool:
    """Say whether a resource version is newer than another.

    They are numbers on every server there is, though documented as opaque. If one is not, then
    what came last counts as newer: that is all that can be known.
    """
    number, before = whole_number(one), whole_number(other)
    return number > before if number is not None and before is not None else one != other
