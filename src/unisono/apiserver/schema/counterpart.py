"""Which part of the old object a part of the new one corresponds to.

Fields and map entries correspond by name, items of a list of type map by the fields that tell them
apart. Items of any other list have no counterpart: such a list is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import orjson

from unisono.apiserver.schema.fault import Fault
from unisono.apiserver.schema.node import Node


class _Nothing:
    """There is no counterpart."""

    __slots__ = ()


NOTHING: Final = _Nothing()


# Finds what an item of a new list was in the old one, or NOTHING.
Find = Callable[[Any], Any]


def finder(items: list[Any], keys: tuple[str, ...]) -> Find:
    """Index an old list once, so that looking up each item of the new one costs the same."""
    if not keys:
        return lambda item: NOTHING
    known: dict[Hashable, Any] = {}
    for candidate in items:
        if type(candidate) is dict:
            known.setdefault(_identity(candidate, keys), candidate)
    return lambda item: known.get(_identity(item, keys), NOTHING) if type(item) is dict else NOTHING


def _identity(item: dict[str, Any], keys: tuple[str, ...]) -> Hashable:
    told_by = tuple(item.get(key) for key in keys)
    try:
        hash(told_by)
    except TypeError:  # an object or a list, which the check of types refuses
        return orjson.dumps(told_by, option=orjson.OPT_SORT_KEYS)
    return told_by


class Comparing:
    """A new object beside the old one, each pair of their parts compared once.

    An update may carry a fault in each of a million items; every one of them asks about the lists
    and objects above it.
    """

    def __init__(self, node: Node, new: Any, old: Any) -> None:
        """Take both states of an object, which do not change meanwhile."""
        self._node = node
        self._new = new
        self._old = old
        self._same: dict[tuple[int, int], bool] = {}
        self._finders: dict[int, Find] = {}

    def stood_before(self, fault: Fault) -> bool:
        """Say whether a fault concerns a value that the update left as it was."""
        return _stood_before(self, fault, self._node, self._new, self._old)

    def are_same(self, new: Any, old: Any) -> bool:
        """Compare two parts."""
        pair = id(new), id(old)
        known = self._same.get(pair)
        if known is None:
            known = self._same[pair] = bool(new == old)
        return known

    def item_before(self, items: list[Any], keys: tuple[str, ...], item: Any) -> Any:
        """Return the item of an old list with the same keys, or NOTHING."""
        find = self._finders.get(id(items))
        if find is None:
            find = self._finders[id(items)] = finder(items, keys)
        return find(item)


def _stood_before(both: Comparing, fault: Fault, node: Node, new: Any, old: Any) -> bool:
    at: Node | None = node
    for step in reversed(fault.steps):
        if both.are_same(new, old):
            return True
        if isinstance(step, int):
            keys = at.shape.list_keys if at is not None and at.shape.list_type == "map" else ()
            new = new[step]
            old = both.item_before(old, keys, new) if type(old) is list else NOTHING
            at = at.items if at is not None else None
        else:
            name = step[0] if isinstance(step, tuple) else step
            new = new[name]
            old = old.get(name, NOTHING) if type(old) is dict else NOTHING
            at = (at.fields.get(name) or at.values) if at is not None else None
        if old is NOTHING:
            return False
    return bool(new == old)
