"""Taking away what a manager no longer applies and no other manager owns."""

from __future__ import annotations

from typing import Any

from unisono.apiserver.objects import Json
from unisono.apiserver.patch.compare import claims
from unisono.apiserver.patch.field_set import (
    Tree,
    difference,
    holds,
    intersection,
    union,
    with_parents,
)
from unisono.apiserver.patch.merge_schema import FIELDS, LEAF, MergeSchema


def pruned(
    merge_schema: MergeSchema,
    value: Any,
    *,
    last: Tree,
    owned: Tree,
    claimed: Tree,
    keeps_empty: bool,
) -> tuple[Any, Any]:
    """Return a merged object without what only the last configuration claimed.

    `last` is what the manager claimed when it applied before, `claimed` what it claims now, and
    `owned` what any manager owns now. `keeps_empty` is false for built-in kinds, which on a real
    server lose what becomes empty even if the configuration has it so. The first result is for
    comparing, the second for storing.
    """
    gone = _gone_since(merge_schema, value, last, owned)
    # An object with nothing but empty lists in it counts as nothing; it stays nevertheless if the
    # configuration has it.
    gone = difference(gone, with_parents(claimed, merge_schema))
    if not gone:
        return value, value
    return removed(merge_schema, value, gone) or {}, remainder(
        merge_schema, value, gone, claimed if keeps_empty else {}
    )


def _gone_since(merge_schema: MergeSchema, value: Any, last: Tree, owned: Tree) -> Tree:
    """Return the paths to take out of a merged object.

    What was never claimed (a default below a removed item, say) goes with the item that it
    belongs to, and stays otherwise.
    """
    last = with_parents(last, merge_schema)
    owned = with_parents(owned, merge_schema)
    there = with_parents(claims(merge_schema, value), merge_schema)
    without_last = with_parents(
        claims(merge_schema, removed(merge_schema, value, last)), merge_schema
    )
    without_unowned = removed(merge_schema, value, difference(there, union(without_last, owned)))
    gone = difference(there, with_parents(claims(merge_schema, without_unowned), merge_schema))
    return intersection(gone, last)


def removed(merge_schema: MergeSchema, value: Any, paths: Tree) -> Any:
    """Return a value without the paths and all below them, for working out sets.

    What becomes empty becomes null: its own path may be owned even if nothing is below it.
    """
    if merge_schema.kind == FIELDS and isinstance(value, dict):
        return _fields_left(merge_schema, value, paths, None) or None
    if merge_schema.kind not in (FIELDS, LEAF) and isinstance(value, list):
        return _items_left(merge_schema, value, paths, None) or None
    # Below a value that is owned as a whole there is nothing to take away.
    return None if isinstance(value, (dict, list)) else value


def remainder(merge_schema: MergeSchema, value: Any, paths: Tree, claimed: Tree) -> Any:
    """Return a value without the paths and all below them, as it is to be stored.

    A declared field that becomes empty is left out, because many kinds refuse it empty, unless
    the configuration itself says that it shall be there; what stands in a map or a list stays.
    """
    if merge_schema.kind == FIELDS and isinstance(value, dict):
        return _fields_left(merge_schema, value, paths, claimed)
    if merge_schema.kind not in (FIELDS, LEAF) and isinstance(value, list):
        return _items_left(merge_schema, value, paths, claimed)
    return value


def _fields_left(merge_schema: MergeSchema, value: Json, paths: Tree, claimed: Tree | None) -> Json:
    fields = {}
    for name, child in value.items():
        text, below, is_declared = merge_schema.field(name)
        node = paths.get(text)
        if node is None:
            fields[name] = child
        elif holds(node):
            continue
        elif claimed is None:
            fields[name] = removed(below, child, node)
        else:
            claim = claimed.get(text)
            rest = remainder(below, child, node, claim or {})
            if not is_declared or rest not in ({}, []) or holds(claim):
                fields[name] = rest
    return fields


def _items_left(
    merge_schema: MergeSchema, value: list[Any], paths: Tree, claimed: Tree | None
) -> list[Any]:
    items = []
    for item in value:
        text = merge_schema.text(item)
        node = paths.get(text)
        if node is None:
            items.append(item)
        elif holds(node):
            continue
        elif claimed is None:
            items.append(removed(merge_schema.items, item, node))
        else:
            items.append(remainder(merge_schema.items, item, node, claimed.get(text) or {}))
    return items
