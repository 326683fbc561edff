"""What became of a spec: objects of one kind come in thousands with the same one.

A new object's spec is pruned, filled in, checked, and its fields are noted as their writer's. All
of that depends on the spec alone, so for the same spec it is done once, with the same result. What
depends on more (names, priorities, queues) is done for every object. One text of a spec may differ
between them (`Strategy.distinct_field`): it is put back as it came.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from unisono.apiserver.caches import VerdictCache
from unisono.apiserver.catalogue import Resource
from unisono.apiserver.objects import Json
from unisono.apiserver.patch.field_set import Tree

# A filled spec has one or two kilobytes; more templates than this are hardly in use at once.
_MOST_KEPT = 256
# A larger one is worked out each time: 256 of the largest, with their fields, take a gigabyte.
_MOST_KEPT_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class CachedSpec:
    """What was made of a spec before; it must not be changed."""

    filled: bytes
    owned: Tree | None


class SpecCache:
    """The specs of all kinds that were seen lately."""

    def __init__(self) -> None:
        """Begin with none."""
        self._filled: dict[Resource, VerdictCache[CachedSpec]] = {}
        self._sound: dict[Resource, VerdictCache[bool]] = {}

    def key(self, resource: Resource, obj: Json) -> bytes:
        """Return what a new object's spec is known by; nothing if it has none that can be kept."""
        spec = obj.get("spec")
        if not resource.strategy.is_typed or type(spec) is not dict or not spec:
            return b""
        try:
            return VerdictCache.key(spec)
        except (TypeError, ValueError):
            return b""  # a number that no kind has

    def key_without_distinct_field(self, resource: Resource, obj: Json) -> tuple[bytes, str | None]:
        """Return what a spec is known by but for its distinct field, and that text."""
        name, spec = resource.strategy.distinct_field, obj.get("spec")
        if not name or type(spec) is not dict or type(spec.get(name)) is not str:
            return self.key(resource, obj), None
        return self.key(resource, {"spec": {**spec, name: ""}}), spec[name]

    def find(self, resource: Resource, key: bytes) -> CachedSpec | None:
        """Return what was made of a spec."""
        seen = self._filled.get(resource)
        return seen.get(key) if seen is not None and key else None

    def keep(self, resource: Resource, key: bytes, obj: Json) -> None:
        """Remember what was made of a spec: it is filled in, and its owner is noted."""
        filled = orjson.dumps(obj["spec"])
        if len(filled) > _MOST_KEPT_BYTES:
            return
        entries = obj["metadata"].get("managedFields") or [{}]
        owned = entries[0].get("fieldsV1", {}).get("f:spec")
        seen = self._filled.setdefault(resource, VerdictCache(_MOST_KEPT))
        # Copied: the encoder's own buffer is several times larger.
        seen.keep(key, CachedSpec(bytes(memoryview(filled)), owned))

    def is_sound(self, resource: Resource, key: bytes) -> bool:
        """Say whether a spec is known to fit its schema."""
        seen = self._sound.get(resource)
        return seen is not None and bool(key) and seen.get(key) is not None

    def note_sound(self, resource: Resource, key: bytes) -> None:
        """Remember that a spec fits its schema."""
        if key:
            self._sound.setdefault(resource, VerdictCache(_MOST_KEPT)).keep(key, verdict=True)
