"""Surroundings of a write that a test can fill: stored objects, a user, a fixed time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unisono.apiserver.builtin import STRATEGIES
from unisono.apiserver.builtin.typed_validation import TypedStrategy
from unisono.apiserver.objects import Json
from unisono.apiserver.request import User
from unisono.apiserver.strategy import Strategy
from unisono.kinds.shapes.served import Served, served_kinds

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


@dataclass
class Around:
    """What a strategy may look at (`strategy.Surroundings`)."""

    stored: dict[tuple[str, str, str], Json] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    user: User = field(default_factory=lambda: User(name="ada"))
    now: float = NOW
    shape_key: bytes = b""
    remembered: dict[str, Any] = field(default_factory=dict)

    def add(self, key: str, obj: Json) -> Json:
        """Store an object as it is."""
        metadata = obj["metadata"]
        self.stored[key, metadata.get("namespace", ""), metadata["name"]] = obj
        return obj

    def find(self, key: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a stored object or None."""
        return self.stored.get((key, namespace, name))

    def every(
        self, key: str, namespace: str = "", *, saying: bytes = b""
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the stored objects of a kind."""
        for (kind, where, _), obj in self.stored.items():
            if kind == key and namespace in ("", where):
                yield obj

    def stamp(self, key: str) -> int:
        """Return a number that is another one after a change of a kind's objects."""
        return hash(repr([*self.every(key)]))

    def warn(self, text: str) -> None:
        """Remember a warning."""
        self.warnings.append(text)


def served_as(key: str, version: str = "") -> Served:
    """Return a kind by its key, in a version or in the one that is stored."""
    for served in served_kinds():
        if served.key == key and (served.version == version if version else served.is_storage):
            return served
    raise KeyError(f"{key} {version}")


def strategy_of(served: Served) -> Strategy:
    """Return the strategy of a kind."""
    found = STRATEGIES.get(served.key) or TypedStrategy.of(served)
    assert found is not None
    return found


def created(key: str, obj: Json, context: Around | None = None) -> Json:
    """Bring a new object as far as its kind's defaults."""
    strategy = strategy_of(served_as(key))
    metadata = obj.setdefault("metadata", {})
    metadata.setdefault("name", "it")
    metadata.setdefault("uid", "uid-1")
    strategy.default(obj)
    strategy.prepare_create(obj, context or Around())
    strategy.default(obj)
    return obj


def refusals(
    key: str, obj: Json, old: Json | None = None, context: Around | None = None
) -> list[tuple[str, str]]:
    """Return reason and field of everything that is wrong with a new or changed object."""
    context = context or Around()
    strategy = strategy_of(served_as(key))
    if old is None:
        created(key, obj, context)
    else:
        strategy.prepare_update(obj, old, context)
        strategy.default(obj)
    causes = strategy.check(obj, old, context)
    return [(cause.reason.removeprefix("FieldValue"), cause.field) for cause in causes]
