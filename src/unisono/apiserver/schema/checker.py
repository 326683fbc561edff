"""The three passes over an object that its schema asks for, compiled once per kind.

    prune   what the schema does not know goes
    fill    what it has a default for comes
    check   what breaks it is named

An update is measured against the object it changes: a mistake that stood there before is let be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.schema import fault
from unisono.apiserver.schema.body_checks import refuse_deep
from unisono.apiserver.schema.fault import Fault
from unisono.apiserver.schema.fill import compile_fill
from unisono.apiserver.schema.node import Node, Pass, later, node_of
from unisono.apiserver.schema.rules import NOTHING, Comparing, compile_rules
from unisono.apiserver.schema.structure import compile_check
from unisono.kinds.nearest import did_you_mean
from unisono.kinds.shapes.shape import Shape

# A hostile document could have a mistake per byte.
_MAX_CAUSES = 50
# With these words alone, an object is sound if its parts are.
_SAYS_NOTHING_OF_THE_WHOLE = frozenset(
    ("type", "properties", "required", "description", "x-kubernetes-validations")
)
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


class Checker:
    """Prunes, fills and checks the objects of one kind in one version."""

    __slots__ = ("_node",)

    def __init__(self, shape: Shape, *, typed: bool) -> None:
        """Take the kind's schema; `typed` is true for Kubernetes' own kinds."""
        self._node = node_of(shape, typed=typed, is_whole=True)

    def prune(self, obj: Json, *, is_shallow: bool = False) -> list[str]:
        """Remove unknown fields and return their paths; raise a 400 for absurdly deep objects.

        `is_shallow` says that the object is known not to be one.
        """
        if not is_shallow:
            refuse_deep(obj)
        prune = self._node.compiled(_compile_prune)
        return [] if prune is None else prune(obj) or []

    def fill(self, obj: Json) -> None:
        """Put defaults in, take nulls out that mean nothing, and write amounts canonically."""
        fill = self._node.compiled(compile_fill)
        if fill is not None:
            fill(obj)

    def check(self, obj: Json, old: Json | None) -> list[Cause]:
        """Return what is wrong: with the structure or, if that is sound, by the rules."""
        try:
            faults = self._structure(obj, old)
            if not faults and (rules := self._node.compiled(compile_rules)) is not None:
                faults = rules(obj, NOTHING if old is None else old) or []
        except RecursionError:
            return [Cause(fault.INVALID, "is nested too deeply")]
        return [found.cause() for found in faults[:_MAX_CAUSES]]

    def check_rest(self, obj: Json) -> list[Cause]:
        """Check a new object of a kind without rules whose spec is sound.

        Its status and managedFields were written by the server.
        """
        check = self._node.compiled(compile_check)
        if check is None:
            return []
        rest = {name: part for name, part in obj.items() if name not in ("spec", "status")}
        rest["metadata"] = {
            name: part for name, part in obj["metadata"].items() if name != "managedFields"
        }
        faults = [found for found in check(rest) or () if found.steps or found.lacking not in obj]
        return [found.cause() for found in faults[:_MAX_CAUSES]]

    def hint(self, path: str) -> str:
        """Return `; did you mean "x"?` for the path of an unknown field, or nothing."""
        node: Node | None = self._node
        *parents, last = _STEP.findall(path) or [("", "")]
        for name, _ in parents:
            if node is None:
                return ""
            node = (node.fields.get(name) or node.values) if name else node.items or node.values
        return "" if node is None else did_you_mean(last[0], node.fields)

    def _structure(self, obj: Json, old: Json | None) -> list[Fault]:
        check = self._node.compiled(compile_check)
        if check is None:
            return []
        if old is None:
            return check(obj) or []
        new = obj
        if self._node.raw.keys() <= _SAYS_NOTHING_OF_THE_WHOLE:
            # Most updates change the spec or the status, not both: the other need not be read.
            new = {name: part for name, part in obj.items() if name not in old or old[name] != part}
        both = Comparing(self._node, obj, old)
        return [
            found
            for found in check(new) or ()
            if (found.steps or found.lacking not in obj) and not both.stood_before(found)
        ]


# ---- pruning -------------------------------------------------------------------------------------
#
# Take out what a schema does not know, and say where it stood.
#
# A pass returns the paths of what it removed, each relative to its own value, or None. Everything
# unknown goes, but only the first paths are told: a hostile body can have a hundred thousand of
# them, and each step here is work for all that is below it.

# As many as Kubernetes' own decoder collects of a body (sigs.k8s.io/json).
MAX_UNKNOWN_FIELDS = 100
# A key is shown up to this length; Kubernetes cuts warnings that are too long at 256 characters.
_MAX_SHOWN_KEY = 128
_ANYTHING = frozenset(("", "object"))


def _compile_prune(node: Node) -> Pass | None:
    """Make the pass for one place; None where nothing below could be unknown."""
    kind = node.shape.type
    if kind == "array":
        items = node.items
        below = None if items is None else items.compiled(_compile_prune)
        return None if below is None else _list(below)
    if kind not in _ANYTHING or (not kind and node.shape.is_int_or_string):
        return None
    if node.values is not None and not node.fields:
        below = node.values.compiled(_compile_prune)
        return None if below is None else _map(below)
    if node.is_open and not node.fields:
        return None
    return _object(node)


def _object(node: Node) -> Pass:
    children: dict[Any, Pass | None] = {}
    for name, child in node.fields.items():
        children[name] = None if child.is_scalar else later(child, _compile_prune, children, name)
    get: Callable[[str, Pass], Pass | None] = children.get
    # Not structural, but accepted by Kubernetes' own types: fields and free keys side by side.
    otherwise = node.values.compiled(_compile_prune) if node.values is not None else None
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
