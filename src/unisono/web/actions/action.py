"""An action as data: which fields it takes, what it writes, and what is known to follow.

Nothing here decides whether a user may do something: every write goes to the API as that user, and
the API's own rules answer. `Right` is only asked to say beforehand what the API would.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from unisono.engine.model.errors import UnisonoError
from unisono.engine.state.changes import Change
from unisono.engine.state.cluster import ClusterState
from unisono.kinds.overriding import override
from unisono.kinds.shapes.served import served_kinds
from unisono.kube.client import Client
from unisono.kube.form import Json
from unisono.kube.mapping import Kind

# What an action means to the engine: changes of a copy of its state.
Edit = Callable[[ClusterState], Iterable[Change]]


class CannotAct(UnisonoError):
    """The action does not apply to the object as it is, or a field is wrong; says why."""


class Right(NamedTuple):
    """A permission, as a review asks about it."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @override
    def __str__(self) -> str:
        """Say it in Kubernetes' words.

        >>> str(Right("patch", "batch", "jobs", "ml", "train"))
        'patch jobs.batch in namespace ml'
        """
        whole = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        what = f"{whole}.{self.group}" if self.group else whole
        return f"{self.verb} {what}" + (f" in namespace {self.namespace}" if self.namespace else "")


class Write(NamedTuple):
    """One write; a patch is a merge patch, or a JSON patch where it is a list."""

    verb: Literal["patch", "delete", "evict", "create"]
    kind: Kind
    name: str
    namespace: str = ""
    changes: Json | list[Json] | None = None
    uid: str = ""  # only this object, not another one of the same name

    @property
    def right(self) -> Right:
        """The permission that it needs."""
        group, _, _ = self.kind.api_version.rpartition("/")
        resource = plural(self.kind)
        if self.verb == "evict":
            return Right("create", group, resource, self.namespace, self.name, "eviction")
        name = "" if self.verb == "create" else self.name
        return Right(self.verb, group, resource, self.namespace, name)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an action asks for."""

    name: str
    label: str
    kind: Literal["choice", "text", "number", "time"] = "text"
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()  # value and name of each
    is_required: bool = msgspec.field(default=True, name="required")


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done, and what is known to follow from it."""

    title: str  # in the imperative, with the object's name
    done: str  # in the past, for afterwards
    writes: tuple[Write, ...]
    commands: tuple[str, ...]  # the same in a terminal
    says: tuple[str, ...] = ()
    edit: Edit | None = None
    # The workload that it is about, as the engine has it; empty if it is about another object.
    workload: str = ""


class Asked(NamedTuple):
    """What a user wants to do."""

    action: str
    namespace: str
    name: str
    fields: Mapping[str, str]

    def field(self, name: str, label: str) -> str:
        """Return a field that is required."""
        value = self.fields.get(name, "").strip()
        if not value:
            raise CannotAct(f"{label}: is required")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What preparing an action may use: the API as the user, the user's name, the time."""

    api: Client
    user: str
    now: float
    may_create_policy: bool = False
    read: dict[str, Json] = field(default_factory=dict)  # by what was asked for

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Json:
        """Return an object; of one request it is read once."""
        address = f"{kind.api_version}/{kind.kind}/{namespace}/{name}"
        if address not in self.read:
            found = await self.api.get(kind, name, namespace)
            self.read[address] = {**found, "apiVersion": kind.api_version, "kind": kind.kind}
        return self.read[address]


class Action(NamedTuple):
    """An action on one kind of object."""

    name: str
    label: str
    prepare: Callable[[Here, Json, Asked], Awaitable[Prepared]]
    # Which fields it asks for with this object; None: it does not apply to it as it is.
    fields: Callable[[Here, Json], Awaitable[Sequence[Field] | None]]
    # The permissions that its writes will need.
    needs: Callable[[Here, Json], Awaitable[Sequence[Right]]]
    is_grave: bool = False  # what it ends does not come back


async def no_fields(here: Here, target: Json) -> Sequence[Field]:
    """Ask for nothing."""
    return ()


async def patches_it(here: Here, target: Json) -> Sequence[Right]:
    """Return the permission to patch the object itself."""
    return (right_to("patch", target),)


def right_to(verb: str, obj: Json) -> Right:
    """Return a permission on one object."""
    metadata = obj["metadata"]
    group, _, _ = str(obj["apiVersion"]).rpartition("/")
    namespace = str(metadata.get("namespace") or "")
    return Right(verb, group, plural(kind_of(obj)), namespace, metadata["name"])


def plural(kind: Kind) -> str:
    """Return the resource of a kind."""
    group, _, _ = kind.api_version.rpartition("/")
    known = _plurals().get((group, kind.kind))
    return known if known is not None else f"{kind.kind.lower()}s"


def _plurals() -> Mapping[tuple[str, str], str]:
    if not _KNOWN:
        _KNOWN.update({(one.group, one.kind): one.plural for one in served_kinds()})
    return _KNOWN


_KNOWN: dict[tuple[str, str], str] = {}


def kind_of(obj: Json) -> Kind:
    """Return the kind of an object."""
    return Kind(str(obj["apiVersion"]), str(obj["kind"]))


def spoken(obj: Json) -> str:
    """Return an object as kubectl takes it, unmistakably.

    >>> spoken({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}})
    'job/a'
    >>> spoken({"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "a"}})
    'rayjobs.ray.io/a'
    """
    group, _, _ = str(obj["apiVersion"]).rpartition("/")
    is_plain = group in ("", "batch")
    word = str(obj["kind"]).lower() if is_plain else f"{plural(kind_of(obj))}.{group}"
    return f"{word}/{obj['metadata']['name']}"


def line(*words: str) -> str:
    """Return a command for a shell.

    >>> line("kubectl", "label", "job/a", "x=it's")
    "kubectl label job/a 'x=it'\\"'\\"'s'"
    """
    return shlex.join(word for word in words if word)


def place(obj: Json) -> tuple[str, ...]:
    """Return the words that say in which namespace an object is."""
    namespace = str(obj["metadata"].get("namespace") or "")
    return ("-n", namespace) if namespace else ()


def patch(obj: Json, changes: Json) -> Write:
    """Return the write of a merge patch on an object, and on no later one of its name."""
    metadata = obj["metadata"]
    uid = str(metadata.get("uid") or "")
    whole = {**changes, "metadata": {**(changes.get("metadata") or {}), "uid": uid}}
    return Write(
        "patch", kind_of(obj), metadata["name"], metadata.get("namespace") or "", whole, uid
    )


def merge_command(obj: Json, changes: Json) -> str:
    """Return the command of a merge patch."""
    text = json.dumps(changes, separators=(",", ":"))
    return line("kubectl", "patch", *place(obj), spoken(obj), "--type=merge", "-p", text)
