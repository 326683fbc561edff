"""The three passes over an object that its schema asks for, compiled once per kind.

    prune   what the schema does not know goes
    fill    what it has a default for comes
    check   what breaks it is named

An update is measured against the object it changes: a mistake that stood there before is let be.
"""

from __future__ import annotations

import re

from unisono.apiserver.errors import Cause
from unisono.apiserver.objects import Json
from unisono.apiserver.schema import fault
from unisono.apiserver.schema.body_checks import refuse_deep
from unisono.apiserver.schema.counterpart import NOTHING, Comparing
from unisono.apiserver.schema.fault import Fault
from unisono.apiserver.schema.fill import compile_fill
from unisono.apiserver.schema.node import Node, node_of
from unisono.apiserver.schema.prune import compile_prune
from unisono.apiserver.schema.rules import compile_rules
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

    def prune(self, obj: Json) -> list[str]:
        """Remove unknown fields and return their paths; raise a 400 for absurdly deep objects."""
        refuse_deep(obj)
        prune = self._node.compiled(compile_prune)
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
