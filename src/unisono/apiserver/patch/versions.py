"""The differences between two objects, in the terms of every version that an entry is written in.

A manager that wrote in v1beta1 owns paths of v1beta1; whether a write in v1beta2 touches them can
only be seen after both objects are translated. Without a translation the paths are taken as they
are, which is right for all fields that have the same name in both versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from unisono.apiserver.patch.compare import object_differences
from unisono.apiserver.patch.entries import Entries
from unisono.apiserver.patch.field_set import Tree, difference
from unisono.apiserver.patch.grain import Grain, grain_of
from unisono.apiserver.patch.tracking import Tracked
from unisono.kinds.shapes.shape import Shape

Json = dict[str, Any]

# Returns an object in another version, and that version's shape; None if it is no longer served.
Translate = Callable[[Mapping[str, Any], str], tuple[Json, Shape] | None]


class Comparison:
    """What a write changed, added and removed, by version."""

    def __init__(
        self,
        old: Mapping[str, Any],
        new: Json,
        *,
        grain: Grain,
        api_version: str,
        tracked: Tracked,
        translate: Translate | None,
        known: Mapping[str, Tree | None] | None = None,
    ) -> None:
        """Compare two objects in their own version; others when they are asked for."""
        self._old = old
        self._new = new
        self._tracked = tracked
        self._translate = translate
        self.own = object_differences(grain, old, new, tracked, known)
        self._found: dict[str, tuple[Tree, Tree] | None] = {api_version: self.own}

    def in_version(self, version: str) -> tuple[Tree, Tree] | None:
        """Return what came and what went; None if there is no such version any more."""
        if version not in self._found:
            self._found[version] = self._translated(version)
        return self._found[version]

    def _translated(self, version: str) -> tuple[Tree, Tree] | None:
        if self._translate is None:
            return self.own
        old, new = self._translate(self._old, version), self._translate(self._new, version)
        if old is None or new is None:
            return None
        return object_differences(grain_of(new[1]), old[0], new[0], self._tracked)

    def take_from(self, entries: Entries, *, but: object = None) -> None:
        """Take what came and what went away from all entries but one."""
        for who in list(entries):
            if who == but:
                continue
            owned = entries[who]
            found = self.in_version(owned.version)
            if found is None:
                del entries[who]
                continue
            owned.fields = difference(difference(owned.fields, found[0]), found[1])
            if not owned.fields:
                del entries[who]
