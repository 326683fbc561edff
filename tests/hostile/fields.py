"""Every field of every served kind that a stranger may fill with anything, as the schemas have it.

A field is where a number, an amount, a text, a list or a map may stand. Nothing here names a kind:
what is served tomorrow is tried tomorrow. A schema that contains itself is followed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from tests.hostile.bases import least_of
from unisono.kinds.overriding import override
from unisono.kinds.shapes.served import Served, served_kinds
from unisono.kinds.shapes.shape import Shape
from unisono.kube.form import Json

Sort = Literal["number", "quantity", "either", "text", "list", "map", "any"]
ITEM, VALUE = "[]", "{}"  # steps of a path: the first item of a list, one value of a map
# Status is the controllers' to write; of nodes it is what a kubelet reports, true or not.
_STATUS_TOO = frozenset({"Node"})
_ENVELOPE = frozenset({"apiVersion", "kind"})
# Below these is what a pod is made of.
_PODS = frozenset(
    (
        "containers", "initContainers", "ephemeralContainers", "volumes", "affinity",
        "topologySpreadConstraints", "securityContext", "volumeClaimTemplates",
    )
)  # fmt: skip
# Keys for maps that are empty: amounts go by resource.
_RESOURCE, _KEY = "nvidia.com/gpu", "example.org/key"


@dataclass(frozen=True, slots=True)
class Field:
    """A place in a kind's objects."""

    kind: Served
    path: tuple[str, ...]
    sort: Sort
    shape: Shape

    @property
    def is_of_a_pod(self) -> bool:
        """Whether it is one of a pod's, of which every kind of job has a thousand."""
        return any(step in _PODS for step in self.path[:-1])

    @override
    def __str__(self) -> str:
        return ".".join(self.path).replace(f".{ITEM}", ITEM).replace(f".{VALUE}", VALUE)


def kinds() -> Sequence[Served]:
    """Return every kind that objects can be sent of."""
    return [kind for kind in served_kinds() if not kind.is_computed]


@cache
def fields_of(kind: Served) -> tuple[Field, ...]:
    """Return the fields of a kind, as its schema lists them."""
    return tuple(
        Field(kind, path, sort, shape) for path, sort, shape in _below(kind, kind.shape, (), ())
    )


Found = tuple[tuple[str, ...], Sort, Shape]


def _below(
    kind: Served, shape: Shape, path: tuple[str, ...], inside: tuple[str, ...]
) -> Iterator[Found]:
    sort = _sort(shape)
    if sort is not None:
        yield path, sort, shape
    if sort == "list":
        yield from _child(kind, shape.raw.get("items"), shape.items, (*path, ITEM), inside)
    elif sort == "map":
        more = shape.raw.get("additionalProperties")
        yield from _child(kind, more, shape.values, (*path, VALUE), inside)
    elif sort is None:
        for name in shape.names:
            if not path and (name in _ENVELOPE or _is_others(kind, name)):
                continue
            found = shape.raw["properties"][name]
            yield from _child(kind, found, shape.field(name), (*path, name), inside)


def _is_others(kind: Served, name: str) -> bool:
    return name == "status" and kind.kind not in _STATUS_TOO


def _child(
    kind: Served,
    raw: Mapping[str, Any] | None,
    shape: Shape | None,
    path: tuple[str, ...],
    inside: tuple[str, ...],
) -> Iterator[Found]:
    reference = raw.get("$ref", "") if isinstance(raw, Mapping) else ""
    if shape is None or (reference and reference in inside):
        return
    yield from _below(kind, shape, path, (*inside, reference) if reference else inside)


def _sort(shape: Shape) -> Sort | None:
    """Say what may stand there; None for an object of known fields, and for yes or no."""
    if shape.is_quantity:
        return "quantity"
    if shape.is_int_or_string:
        return "either"
    match shape.type:
        case "integer" | "number":
            return "number"
        case "string":
            return "text"
        case "array":
            return "list"
        case "boolean":
            return None
        case "object" | "" if shape.names:
            return None
        case "object":
            return "map"
        case _:
            return "any"


# ---- going there ---------------------------------------------------------------------------------


class NoWay(Exception):
    """What stands on the way is no object or list, so nothing can be put below it."""


def put(obj: Json, field: Field, value: Any) -> None:
    """Put a value into a field; what is missing on the way is made as the schema requires it."""
    here, key = _parent(obj, field)
    here[key] = value


def drop(obj: Json, field: Field) -> None:
    """Leave a field out."""
    here, key = _parent(obj, field)
    if isinstance(here, dict):
        here.pop(key, None)
    else:
        del here[key]


def there(obj: Json, field: Field) -> Any:
    """Return what stands in a field; None if nothing does."""
    here, key = _parent(obj, field)
    return here.get(key) if isinstance(here, dict) else here[key]


def _parent(obj: Json, field: Field) -> tuple[Any, Any]:
    here: Any = obj
    shape: Shape | None = field.kind.shape
    assert shape is not None
    for place, step in enumerate(field.path):
        if step == ITEM:
            if not isinstance(here, list):
                raise NoWay
            shape = shape.items if shape is not None else None
            if not here:
                here.append(least_of(shape) if shape is not None else {})
            key: Any = 0
        elif step == VALUE:
            if not isinstance(here, dict):
                raise NoWay
            shape = shape.values if shape is not None else None
            is_amount = shape is not None and shape.is_quantity
            key = next(iter(here), _RESOURCE if is_amount else _KEY)
        else:
            if not isinstance(here, dict):
                raise NoWay
            shape = shape.field(step) if shape is not None else None
            key = step
        if place == len(field.path) - 1:
            return here, key
        if isinstance(here, dict) and here.get(key) is None:
            here[key] = [] if field.path[place + 1] == ITEM else _made(shape)
        here = here[key]
    raise AssertionError(f"{field} has no path")


def _made(shape: Shape | None) -> Any:
    return least_of(shape) if shape is not None and shape.type == "object" else {}
