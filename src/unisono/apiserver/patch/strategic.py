"""Strategic merge patch: a merge patch that knows which lists are merged, and by which key.

The schema decides; a patch can say more with directives, which are fields of their own:

    $patch: delete | replace | merge     in an object or an item of a list
    $retainKeys: [a, b]                  drop every other field of this object
    $deleteFromPrimitiveList/<f>: [x]    take x out of the list f
    $setElementOrder/<f>: [...]          the order of the list f afterwards

A patch that is not well formed is 400 BadRequest, one that does not fit the lists 422 Invalid.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import orjson

from unisono.apiserver.errors import ApiError, bad_request
from unisono.apiserver.objects import Json, bounded, copied
from unisono.apiserver.patch.merge_schema import METADATA
from unisono.kinds.shapes.shape import Shape

PATCH = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ELEMENT_ORDER = "$setElementOrder/"


@bounded
def strategic_merge(target: Json, patch: Json, shape: Shape) -> Json:
    """Return the object with the patch merged in, as its schema says."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    # Both are copies, so that everything below may cut them up as it likes.
    return _merge_objects(copied(target), copied(patch), shape, is_root=True)


def _misfit(message: str) -> ApiError:
    return ApiError(422, "Invalid", message)


# ---- objects ---------------------------------------------------------------------------------


def _merge_objects(
    original: Json, patch: Json, shape: Shape | None, *, is_root: bool = False
) -> Json:
    directive = _directive(patch)
    if directive == "replace":
        return _plain_object(patch)
    if directive == "delete":
        return {}
    _retain_keys(original, patch)
    orders = _take_lists(patch, ELEMENT_ORDER)
    removals = _take_lists(patch, DELETE_FROM)
    order_before = {name: original.get(name) for name in orders}

    for name, value in patch.items():
        if value is None:
            original.pop(name, None)
            continue
        child = METADATA if is_root and name == "metadata" else shape and shape.field(name)
        if name in orders and isinstance(value, list):
            _check_order(value, orders[name], child.merge_key if child is not None else "")
        _set_field(original, name, value, child)
    for name, unwanted in removals.items():
        there = original.get(name)
        if isinstance(there, list):
            gone = {identity(item) for item in unwanted}
            original[name] = [item for item in there if identity(item) not in gone]
    for name, order in orders.items():
        there = original.get(name)
        if isinstance(there, list):
            key = _merge_key(shape, name)
            original[name] = _put_in_order(there, order, order_before[name], key)
    return original


def _set_field(original: Json, name: str, value: Any, shape: Shape | None) -> None:
    there = original.get(name)
    strategies = shape.strategies if shape is not None else frozenset()
    if isinstance(value, dict) and isinstance(there, dict) and "replace" not in strategies:
        original[name] = _merge_objects(there, value, shape)
    elif isinstance(value, list) and isinstance(there, list) and "merge" in strategies:
        assert shape is not None  # a list is merged because its schema says so
        original[name] = _merge_lists(there, value, shape)
    else:
        plain = _plain(value)
        if plain is _NOTHING:
            original.pop(name, None)
        else:
            original[name] = plain


def _directive(patch: Json) -> str:
    """Take the directive out of an object; empty if there is none."""
    if PATCH not in patch:
        return ""
    directive = patch.pop(PATCH)
    if directive not in ("delete", "replace", "merge"):
        raise _misfit(f"$patch is {directive!r}; it is one of delete, replace, merge")
    return str(directive)


def _retain_keys(original: Json, patch: Json) -> None:
    if RETAIN_KEYS not in patch:
        return
    keys = patch.pop(RETAIN_KEYS)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise bad_request("$retainKeys must be a list of field names")
    kept = set(keys)
    for name, value in patch.items():
        if value is not None and name not in kept and not name.startswith("$"):
            raise bad_request(f"the patch sets {name!r}, which $retainKeys does not list")
    for name in [name for name in original if name not in kept]:
        del original[name]


def _take_lists(patch: Json, prefix: str) -> dict[str, list[Any]]:
    """Take the directives with that prefix out of an object, by the field that they are about."""
    found = {}
    for key in [key for key in patch if key.startswith(prefix)]:
        value = patch.pop(key)
        if not isinstance(value, list):
            raise bad_request(f"{key} must be a list")
        found[key.removeprefix(prefix)] = value
    return found


# ---- lists -----------------------------------------------------------------------------------


def _merge_lists(original: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    items = [*original, *patch]
    if any(isinstance(item, list) for item in items):
        raise _misfit("lists of lists cannot be merged")
    objects = sum(isinstance(item, dict) for item in items)
    if objects == 0:
        merged = list({identity(item): item for item in items}.values())
        return interleave(merged, [identity(item) for item in patch], original, "")
    if objects < len(items):
        raise _misfit("a list of objects and plain values cannot be merged")
    if not shape.merge_key:
        raise _misfit("a list of objects without a merge key cannot be merged")
    return _merge_items(original, patch, shape.merge_key, shape.items)


def _merge_items(
    original: list[Json], patch: list[Json], key: str, shape: Shape | None
) -> list[Any]:
    wanted: list[Json] = []
    unwanted: set[Any] = set()
    is_replacing = False
    for item in patch:
        directive = _directive(item)
        if directive == "replace":
            is_replacing = True
            if item.keys() - {key}:
                wanted.append(item)
        elif key not in item:
            raise _misfit(f"an item of the patch lacks its merge key {key!r}")
        elif directive == "delete":
            unwanted.add(identity(item[key]))
        else:
            wanted.append(item)
    if is_replacing:
        return [_plain_object(item) for item in wanted]
    if unwanted:
        original = [there for there in original if _identity_by(there, key) not in unwanted]

    places: dict[Any, int] = {}
    for place, there in enumerate(original):
        places.setdefault(_identity_by(there, key), place)
    merged: list[Any] = list(original)
    for item in wanted:
        place = places.setdefault(identity(item[key]), len(merged))
        if place == len(merged):
            merged.append(_plain_object(item))
        else:
            merged[place] = _merge_objects(merged[place], item, shape)
    return interleave(merged, [identity(item[key]) for item in wanted], original, key)


def _identity_by(item: Any, key: str) -> Any:
    return identity(item.get(key)) if isinstance(item, dict) else identity(item)


def _merge_key(shape: Shape | None, name: str) -> str:
    child = shape.field(name) if shape is not None else None
    return child.merge_key if child is not None else ""


def _put_in_order(there: list[Any], order: list[Any], before: Any, key: str) -> list[Any]:
    """Put the listed items into the given order; the others keep their place among them."""
    listed = identities(order, key)
    return interleave(there, listed, before if isinstance(before, list) else [], key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse a patch whose items are not in the order that it asks for."""
    listed = {where: place for place, where in enumerate(identities(order, key))}
    last = -1
    for item in patch:
        if isinstance(item, dict) and item.get(PATCH) in ("delete", "replace"):
            continue
        place = listed.get(identities([item], key)[0], -1)
        if place <= last:
            raise bad_request("the items of the patch are not in the order of $setElementOrder")
        last = place


# ---- values that nothing is merged with --------------------------------------------------------

_NOTHING: Any = object()


def _plain(value: Any) -> Any:
    """Return a value without directives and nulls: there is nothing that they could remove."""
    if isinstance(value, dict):
        return _NOTHING if _directive(value) == "delete" else _plain_object(value)
    if isinstance(value, list):
        return [kept for item in value if (kept := _plain_item(item)) is not _NOTHING]
    return value


def _plain_object(value: Json) -> Json:
    plain: Json = {}
    for name, child in value.items():
        if name in (PATCH, RETAIN_KEYS) or name.startswith((DELETE_FROM, ELEMENT_ORDER)):
            continue
        kept = _plain(child)
        if kept is not None and kept is not _NOTHING:
            plain[name] = kept
    return plain


def _plain_item(item: Any) -> Any:
    if item == {PATCH: "replace"}:
        return _NOTHING
    return _plain(item)


# ---- the order of a merged list ------------------------------------------------------------------


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
