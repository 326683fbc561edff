"""Safe access to fields of objects that are not validated yet.

Defaults are filled in before the schema is checked, so any field may hold anything. These
functions give back something to write on in every case; what has the wrong type is left as it is,
for the schema to complain about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from unisono.apiserver.objects import Json


def child(obj: Json, name: str) -> Json:
    """Return the object in a field, made if it is absent; a throw-away if it is no object."""
    found = obj.get(name)
    if found is None:
        found = obj[name] = {}
    return found if isinstance(found, dict) else {}


def at(obj: Mapping[str, Any], *names: str) -> Json:
    """Return the object at the end of a path, or an empty one; nothing is made."""
    found: Any = obj
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def items(obj: Mapping[str, Any], name: str) -> list[Json]:
    """Return the objects in a list."""
    found = obj.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def numbered(obj: Mapping[str, Any], name: str, path: str) -> Iterator[tuple[str, Json]]:
    """Yield the objects in a list, each with its path."""
    found = obj.get(name)
    for index, one in enumerate(found if isinstance(found, list) else ()):
        if isinstance(one, dict):
            yield f"{path}.{name}[{index}]", one


def fill(obj: Json, **defaults: object) -> None:
    """Give fields that are absent or null a value; the names are those of the fields."""
    for name, value in defaults.items():
        if obj.get(name) is None:
            obj[name] = value


def fill_text(obj: Json, **defaults: str) -> None:
    """Give texts that are absent, null or empty a value, as typed kinds do."""
    for name, value in defaults.items():
        if not obj.get(name):
            obj[name] = value


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of an object."""
    return at(obj, "metadata", "labels")


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the annotations of an object."""
    return at(obj, "metadata", "annotations")
