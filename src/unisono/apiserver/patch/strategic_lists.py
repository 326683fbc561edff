"""The order of a merged list: the patch's items in the patch's order, the others around them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import orjson


def identity(value: Any) -> Hashable:
    """Return what tells a plain value of a list, or the key of an item, from the others."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return ("constant", value)  # in Python true equals 1
    if isinstance(value, (int, float)):
        return value
    try:
        return ("json", orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
    except (TypeError, ValueError):
        return ("json", repr(value))


def identities(items: Sequence[Any], key: str) -> list[Hashable]:
    """Return what tells the items of a list apart: their key, or themselves."""
    return [
        identity(item.get(key)) if key and isinstance(item, dict) else identity(item)
        for item in items
    ]


def interleave(
    items: Sequence[Any], listed: Sequence[Hashable], before: Sequence[Any], key: str
) -> list[Any]:
    """Order items: those listed as they are listed, the others before what they stood before.

    `before` is the list as it was. An item that is not listed goes in front of the next listed
    item if it stood in front of it there; otherwise it waits. So new items come first:

    >>> interleave(["a", "b", "new"], ["new"], ["a", "b"], "")
    ['new', 'a', 'b']
    >>> interleave(["a", "b", "c"], ["c"], ["a", "b", "c"], "")
    ['a', 'b', 'c']
    """
    rank = {where: place for place, where in reversed(list(enumerate(listed)))}
    stood = {where: place for place, where in reversed(list(enumerate(identities(before, key))))}
    mine: list[tuple[int, Hashable, Any]] = []
    others: list[tuple[Hashable, Any]] = []
    for where, item in zip(identities(items, key), items, strict=True):
        if where in rank:
            mine.append((rank[where], where, item))
        else:
            others.append((where, item))
    mine.sort(key=lambda entry: entry[0])  # stable: equal keys stay as they are
    others.sort(key=lambda entry: stood.get(entry[0], len(stood)))

    ordered: list[Any] = []
    waiting = 0
    for _, where, item in mine:
        place = stood.get(where)
        while place is not None and waiting < len(others):
            other = stood.get(others[waiting][0])
            if other is None or other >= place:
                break
            ordered.append(others[waiting][1])
            waiting += 1
        ordered.append(item)
    ordered.extend(item for _, item in others[waiting:])
    return ordered
