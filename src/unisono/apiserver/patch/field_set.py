"""Sets of field paths, in the very form in which FieldsV1 stores them.

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}}}

holds `.metadata.labels`, `.metadata.labels.app` and `.spec.replicas`. A node belongs to the set if
it has nothing below it, or a "." among what is below it. The root never belongs to a set, and `{}`
there is the empty set. Keys of a tree:

    f:<name>          a field
    k:{"name":"a"}    an item of a list, by its keys in order
    v:"a"             an item of a set, by its value
    i:0               an item of a list, by its place (never made, but understood)

Sets are never changed once they are made, so they may share branches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from unisono.apiserver.patch.merge_schema import (
    DEDUCED,
    FIELDS,
    KEYED,
    LEAF,
    MergeSchema,
    Unshareable,
    json_text,
)

Tree = dict[str, Any]
SELF = "."


def union(left: Tree, right: Tree) -> Tree:
    """Return the paths in either set."""
    if not right or left is right:
        return left
    if not left:
        return right
    merged = dict(left)
    for key, node in right.items():
        mine = merged.get(key)
        merged[key] = node if mine is None else _either(mine, node)
    return merged


def union_of(trees: list[Tree]) -> Tree:
    """Return the paths in any of many sets.

    In pairs, and the results in pairs again: one after the other, a set that grows would be copied
    once for each of them.
    """
    while len(trees) > 1:
        pairs = [union(*trees[at : at + 2]) for at in range(0, len(trees) - 1, 2)]
        trees = [*pairs, trees[-1]] if len(trees) % 2 else pairs
    return trees[0] if trees else {}


def _either(left: Tree, right: Tree) -> Tree:
    if left and right:
        return union(left, right)
    below = left or right
    return below if not below or SELF in below else {SELF: {}, **below}


def difference(left: Tree, right: Tree) -> Tree:
    """Return the paths in the left set that are not in the right one."""
    if not right:
        return left
    rest = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            rest[key] = node
        elif (kept := _without(node, other)) is not None:
            rest[key] = kept
    return rest


def _without(node: Tree, other: Tree) -> Tree | None:
    """Subtract below a node; None if nothing is left."""
    is_in = (not node or SELF in node) and other and SELF not in other
    below = {}
    for key, child in node.items():
        if key == SELF:
            continue
        match = other.get(key)
        if match is None:
            below[key] = child
        elif (kept := _without(child, match)) is not None:
            below[key] = kept
    if is_in:
        return {SELF: {}, **below} if below else {}
    return below or None


def intersection(left: Tree, right: Tree) -> Tree:
    """Return the paths in both sets."""
    both = {}
    for key, node in left.items():
        other = right.get(key)
        if other is not None and (kept := _within(node, other)) is not None:
            both[key] = kept
    return both


def _within(node: Tree, other: Tree) -> Tree | None:
    is_in = (not node or SELF in node) and (not other or SELF in other)
    below = {}
    for key, child in node.items():
        if key == SELF:
            continue
        match = other.get(key)
        if match is not None and (kept := _within(child, match)) is not None:
            below[key] = kept
    if is_in:
        return {SELF: {}, **below} if below else {}
    return below or None


def holds(node: Tree | None) -> bool:
    """Say whether a node of a tree belongs to the set; None stands for no node at all."""
    return node is not None and (not node or SELF in node)


def with_parents(tree: Tree, merge_schema: MergeSchema) -> Tree:
    """Return the set with every declared field that has a path below it.

    A field of an object is there whenever something below it is; the key of a map or an item of a
    list is not, a client must have put it there.
    """
    whole = {}
    for key, node in tree.items():
        if key == SELF or not node:
            whole[key] = node
            continue
        child, is_declared = _below(merge_schema, key)
        below = with_parents(node, child)
        whole[key] = {SELF: {}, **below} if is_declared and SELF not in below else below
    return whole


def collapsed(tree: Tree, merge_schema: MergeSchema) -> Tree:
    """Return the set as it is after a value that was shared by parts is owned as a whole.

    Schemas change; an owner of a part of such a value then owns all of it.
    """
    result = {}
    for key, node in tree.items():
        if key == SELF or not node:
            result[key] = node
            continue
        child, _ = _below(merge_schema, key)
        result[key] = {} if child.kind == LEAF else collapsed(node, child)
    return result


def _below(merge_schema: MergeSchema, key: str) -> tuple[MergeSchema, bool]:
    """Return the merge schema of what a key stands for, and whether it is a declared field."""
    if key.startswith("f:") and merge_schema.kind == FIELDS:
        _, child, is_declared = merge_schema.field(key[2:])
        return child, is_declared
    if key.startswith("k:") and merge_schema.kind == KEYED:
        return merge_schema.items, False
    return DEDUCED, False


# ---- reading and writing -----------------------------------------------------------------------


def read_fields(raw: Any) -> Tree:
    """Return a set as a client wrote it, in the form that all functions here expect.

    Raises ValueError if it is no FieldsV1.
    """
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ValueError("fieldsV1 is not an object")
    tree = {}
    for key, below in raw.items():
        if not isinstance(below, dict) and below is not None:
            raise ValueError(f"what is below {key!r} in fieldsV1 is not an object")
        # A dot at the root would be the whole object, which has no owner. Other unknown keys may
        # come from a version yet to come.
        if key[:2] in ("f:", "i:", "v:", "k:"):
            tree[_read_key(key)] = _read_node(below or {})
    return tree


def _read_node(raw: Tree) -> Tree:
    below = read_fields(raw)
    return {SELF: {}, **below} if SELF in raw and below else below


def _read_key(key: str) -> str:
    """Return a key in the one form that is compared, letter by letter."""
    kind, value = key[:2], key[2:]
    try:
        match kind:
            case "i:":
                return f"i:{int(value)}"
            case "v:":
                return "v:" + json_text(orjson.loads(value))
            case "k:":
                keys = orjson.loads(value)
                return "k:" + json_text(dict(sorted(keys.items())))
            case _:
                return key
    except (ValueError, AttributeError, Unshareable):
        raise ValueError(f"{key!r} is not a key of fieldsV1") from None


def paths_of(tree: Tree, prefix: str = "") -> Iterator[str]:
    """Return the paths of a set in order, as messages write them.

    >>> list(paths_of({"f:spec": {'k:{"name":"a"}': {".": {}, "f:image": {}}, 'v:"x"': {}}}))
    ['.spec[name="a"]', '.spec[name="a"].image', '.spec[="x"]']
    """
    for key in sorted(tree):
        if key == SELF:
            continue
        node = tree[key]
        path = prefix + _path_text(key)
        if holds(node):
            yield path
        yield from paths_of(node, path)


def _path_text(key: str) -> str:
    kind, value = key[:2], key[2:]
    match kind:
        case "f:":
            return "." + value
        case "v:":
            return f"[={value}]"
        case "k:":
            keys = orjson.loads(value)
            listed = ",".join(f"{name}={orjson.dumps(of).decode()}" for name, of in keys.items())
            return f"[{listed}]"
        case _:
            return f"[{value}]"
