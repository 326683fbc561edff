"""Take out what a schema does not know, and say where it stood.

A pass returns the paths of what it removed, each relative to its own value, or None. Everything
unknown goes, but only the first paths are told: a hostile body can have a hundred thousand of them,
and each step here is work for all that is below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unisono.apiserver.schema.node import Node, Pass, later

# As many as Kubernetes' own decoder collects of a body (sigs.k8s.io/json).
MAX_UNKNOWN_FIELDS = 100
# A key is shown up to this length; Kubernetes cuts warnings that are too long at 256 characters.
_MAX_SHOWN_KEY = 128
_ANYTHING = frozenset(("", "object"))


def compile_prune(node: Node) -> Pass | None:
    """Make the pass for one place; None where nothing below could be unknown."""
    kind = node.shape.type
    if kind == "array":
        items = node.items
        below = None if items is None else items.compiled(compile_prune)
        return None if below is None else _list(below)
    if kind not in _ANYTHING or (not kind and node.shape.is_int_or_string):
        return None
    if node.values is not None and not node.fields:
        below = node.values.compiled(compile_prune)
        return None if below is None else _map(below)
    if node.is_open and not node.fields:
        return None
    return _object(node)


def _object(node: Node) -> Pass:
    children: dict[Any, Pass | None] = {}
    for name, child in node.fields.items():
        children[name] = None if child.is_scalar else later(child, compile_prune, children, name)
    get: Callable[[str, Pass], Pass | None] = children.get
    # Not structural, but accepted by Kubernetes' own types: fields and free keys side by side.
    otherwise = node.values.compiled(compile_prune) if node.values is not None else None
    keeps_unknown = node.is_open or node.values is not None

    def prune(value: Any) -> list[str] | None:
        if type(value) is not dict:
            return None
        found: list[str] | None = None
        unknown: list[str] | None = None
        below: Sequence[str] | None
        for name, item in value.items():
            child = get(name, _unknown)
            if child is None:
                continue
            if child is not _unknown:
                below = child(item)
            elif not keeps_unknown:
                below = _ITSELF
                if unknown is None:
                    unknown = []
                unknown.append(name)
            else:
                below = None if otherwise is None else otherwise(item)
            if below:
                found = _more(found, name, below)
        if unknown:
            for name in unknown:
                del value[name]
        return found

    return prune


def _list(below: Pass) -> Pass:
    def prune(value: Any) -> list[str] | None:
        if type(value) is not list:
            return None
        found: list[str] | None = None
        for index, item in enumerate(value):
            unknown = below(item)
            if unknown:
                found = _more(found, f"[{index}]", unknown)
        return found

    return prune


def _map(below: Pass) -> Pass:
    def prune(value: Any) -> list[str] | None:
        if type(value) is not dict:
            return None
        found: list[str] | None = None
        for key, item in value.items():
            unknown = below(item)
            if unknown:
                found = _more(found, key, unknown)
        return found

    return prune


_ITSELF = ("",)


def _more(found: list[str] | None, step: str, below: Sequence[str]) -> list[str]:
    """Return the paths found so far and those one step further down, as far as they are told."""
    if found is None:
        found = []
    elif len(found) >= MAX_UNKNOWN_FIELDS:
        return found
    if len(step) > _MAX_SHOWN_KEY:
        step = f"{step[: _MAX_SHOWN_KEY - 3]}..."
    room = MAX_UNKNOWN_FIELDS - len(found)
    found.extend([f"{step}{_joined(path)}" for path in below[:room]])
    return found


def _joined(path: str) -> str:
    return path if not path or path[0] == "[" else f".{path}"


def _unknown(_value: Any) -> None:
    """Stand for a field that the schema does not know; never called."""
