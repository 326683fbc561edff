"""What a job kind may look at while one of its objects is submitted: what is stored.

Nodes are left out on purpose: whether a job fits on them is found out when it is decided about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from unisono.apiserver.builtin.typed_validation import known_kind
from unisono.apiserver.strategy import Surroundings
from unisono.kinds.decode import decode
from unisono.kinds.notes import Notes
from unisono.kinds.resource_rules import ResourceRules
from unisono.kinds.shapes.served import served_kinds

_LEFT_OUT = ("Node", "HyperNode", "Pod")


@cache
def _keys() -> Mapping[str, str]:
    """Find where a kind is stored by its name, with and without its group; the first one counts."""
    found: dict[str, str] = {}
    for served in served_kinds():
        found.setdefault(served.kind, served.key)
        found.setdefault(f"{served.kind}.{served.group}", served.key)
    return found


@dataclass(frozen=True, slots=True)
class StoredContext:
    """The surroundings of a write as `kinds.registry.Context` wants them."""

    namespace: str
    notes: Notes
    around: Surroundings
    rules: ResourceRules

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any | None:
        """Return a decoded object by kind and name, or None."""
        key = _keys().get(kind)
        found = self.around.find(key, namespace, name) if key is not None else None
        return _manifest(found) if found is not None else None

    def every(self, kind: str, *, namespace: str = "") -> tuple[Any, ...]:
        """Return all decoded objects of a kind."""
        key = _keys().get(kind)
        if key is None or kind in _LEFT_OUT:
            return ()
        decoded = (_manifest(one) for one in self.around.every(key, namespace))
        return tuple(one for one in decoded if one is not None)


def _manifest(obj: Mapping[str, Any]) -> Any | None:
    kind = known_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
    if kind is None:
        return None
    manifest, _ = decode(kind.struct, obj, ignore_unknown=True)
    return kind.upgrade(manifest) if manifest is not None and kind.upgrade else manifest
