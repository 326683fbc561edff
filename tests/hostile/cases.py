"""Cases: what is sent, and what it is about.

A case of a number is always the same while the schemas are: the first ones take every field of
every kind once, in an order that mixes kinds, with a value drawn by the number; all others take two
fields of one kind. Half of them create an object, the others change a right one that is at work.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.hostile import fields
from tests.hostile.bases import NAME, NAMESPACE, base_of
from tests.hostile.fields import Field, NoWay, fields_of
from tests.hostile.stage import Send, Stage
from tests.hostile.values import BY_SORT, Absent
from unisono.kinds.shapes.served import Served
from unisono.kube.form import Json

# Objects of the noisy queue that are in use before a case begins: changing them moves something.
_IN_USE = frozenset({"ClusterQueue", "LocalQueue", "ResourceFlavor"})
# Kinds whose objects cannot be changed, or are only questions.
_ONLY_MADE = frozenset({"Binding"})


@dataclass(frozen=True, slots=True)
class Case:
    """A story: what is right, what is hostile, and the object to ask `why` about."""

    title: str
    setup: Sequence[Send]
    hostile: Sequence[Send]
    about: Sequence[tuple[Served, str]] = ()  # kind and name
    seconds: float = 5.0  # for every controller to react; retries begin at milliseconds
    check: Callable[[Stage], list[str]] | None = None  # what else must hold; returns what does not

    @property
    def size(self) -> int:
        """How many bytes are sent."""
        return sum(len(send.body) for send in (*self.setup, *self.hostile))


def path_of(kind: Served, name: str = "", namespace: str = NAMESPACE, part: str = "") -> str:
    """Return where objects of a kind are, or one of them."""
    steps = ["/apis" if kind.group else "/api", kind.api_version]
    if kind.namespaced:
        steps += ["namespaces", namespace]
    return "/".join([*steps, *(each for each in (kind.plural, name, part) if each)])


def body_of(obj: Any) -> bytes:
    """Return an object as JSON; numbers may be of any size."""
    return json.dumps(obj, ensure_ascii=False, separators=(",", ":")).encode()


def creating(kind: Served, obj: Json) -> Send:
    """Return the request that makes an object."""
    namespace = obj["metadata"].get("namespace") if isinstance(obj.get("metadata"), dict) else ""
    where = namespace if isinstance(namespace, str) and namespace else NAMESPACE
    return Send("POST", path_of(kind, namespace=where), body_of(obj))


# ---- drawn by number -----------------------------------------------------------------------------


@cache
def every_field(kind: str = "") -> tuple[Field, ...]:
    """Return the fields that are tried once each, mixed; `kind` narrows them to one kind.

    A pod's fields stand in the templates of every kind of job. There its texts are tried in pods
    alone, and everything else in the version that a kind is stored in.
    """
    found = [
        field
        for served in fields.kinds()
        if kind in ("", served.kind, f"{served.kind}.{served.group}")
        for field in fields_of(served)
        if not field.is_of_a_pod
        or served.kind == "Pod"
        or (served.is_storage and field.sort != "text")
    ]
    random.Random(0).shuffle(found)
    return tuple(found)


@cache
def own_fields(kind: str = "") -> tuple[Field, ...]:
    """Return those that are neither of a pod nor metadata: what a kind is about."""
    found = every_field(kind)
    own = [one for one in found if not one.is_of_a_pod and one.path[0] != "metadata"]
    return tuple(own or found)


def case_of(number: int, kind: str = "") -> Case:
    """Return the case of a number."""
    known = every_field(kind)
    dice = random.Random(number)
    if number < len(known):
        chosen = [known[number]]
    else:
        first = dice.choice(own_fields(kind))
        others = fields_of(first.kind) if dice.random() < 0.5 else own_fields(first.kind.kind)
        chosen = [first, dice.choice([one for one in others if one.kind is first.kind])]
    return _case(chosen, dice)


def _case(chosen: Sequence[Field], dice: random.Random) -> Case:
    kind = chosen[0].kind
    obj = base_of(kind)
    changes = dice.random() < 0.5 and kind.kind not in _ONLY_MADE
    if changes and kind.kind in _IN_USE:
        obj["metadata"]["name"] = NAMESPACE
    right = json.loads(json.dumps(obj))
    said = []
    for field in chosen:
        values = BY_SORT[field.sort]
        name = dice.choice([*values])
        try:
            value = values[name](field, fields.there(obj, field))
            if value is Absent:
                fields.drop(obj, field)
            else:
                fields.put(obj, field, value)
        except NoWay:  # the other field has put something else there
            continue
        said.append(f"{field} is {name}")
    verb = "change" if changes else "create"
    title = f"{verb} {kind.kind} ({kind.api_version}): {', '.join(said)}"
    if not changes:
        return Case(title, (), (creating(kind, obj),), ((kind, NAME),))
    name = right["metadata"]["name"]
    setup = () if kind.kind in _IN_USE else (creating(kind, right),)
    change = Send("PUT", path_of(kind, name), body_of(obj))
    return Case(title, setup, (change,), ((kind, name),))
