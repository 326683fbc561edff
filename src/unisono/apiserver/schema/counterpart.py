"""Which part of the old object a part of the new one corresponds to.

Fields and map entries correspond by name, items of a list of type map by the fields that tell them
apart. Items of any other list have no counterpart: such a list is one value.
"""

from __future__ import annotations

from typing import Any, Final

from unisono.apiserver.schema.fault import Fault
from unisono.apiserver.schema.node import Node


class _Nothing:
    """There is no counterpart."""

    __slots__ = ()


NOTHING: Final = _Nothing()


def item_before(items: list[Any], keys: tuple[str, ...], item: Any) -> Any:
    """Return the item of an old list with the same keys, or NOTHING."""
    if not keys or type(item) is not dict:
        return NOTHING
    wanted = [item.get(key) for key in keys]
    for candidate in items:
        if type(candidate) is dict and [candidate.get(key) for key in keys] == wanted:
            return candidate
    return NOTHING


def stood_before(fault: Fault, node: Node, new: Any, old: Any) -> bool:
    """Say whether a fault concerns a value that an update left as it was."""
    at: Node | None = node
    for step in reversed(fault.steps):
        if new == old:
            return True
        if isinstance(step, int):
            keys = at.shape.list_keys if at is not None and at.shape.list_type == "map" else ()
            new = new[step]
            old = item_before(old, keys, new) if type(old) is list else NOTHING
            at = at.items if at is not None else None
        else:
            name = step[0] if isinstance(step, tuple) else step
            new = new[name]
            old = old.get(name, NOTHING) if type(old) is dict else NOTHING
            at = (at.fields.get(name) or at.values) if at is not None else None
        if old is NOTHING:
            return False
    return bool(new == old)
