"""Custom kinds that we know as typed manifests: their rules are ours, their schema is upstream's.

What `unisono decide` would refuse in a file is refused here at the door, with the same sentence;
what it would warn about becomes a warning that kubectl prints.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.apiserver.builtin.judge import judge, known_kind
from unisono.apiserver.builtin.reach import Json
from unisono.apiserver.errors import Cause
from unisono.apiserver.strategy import Strategy, Surroundings
from unisono.kinds.overriding import override
from unisono.kinds.registry import Kind
from unisono.kinds.shapes.served import Served


class KnownStrategy(Strategy):
    """A custom kind with rules of ours."""

    allows_unconditional_update = False
    is_metadata_in_status = False
    is_typed = False

    def __init__(self, kind: Kind) -> None:
        """Take the typed manifest that judges."""
        self._kind = kind

    @staticmethod
    def of(served: Served) -> KnownStrategy | None:
        """Return the strategy of a kind in one version, or None if we have no manifest for it."""
        kind = known_kind(served.api_version, served.kind)
        return KnownStrategy(kind) if kind is not None else None

    @override
    def check(self, obj: Json, old: Json | None, around: Surroundings) -> Iterator[Cause]:
        """Yield the problems of a new or changed spec; warn about the rest."""
        if old is not None and _written(obj) == _written(old):
            return
        causes, warnings = judge(self._kind, obj)
        yield from causes
        for text in warnings:
            around.warn(text)


def _written(obj: Json) -> Json:
    """Return what users write: everything but the status and the server's own metadata."""
    metadata = obj.get("metadata") or {}
    kept = {name: metadata.get(name) or {} for name in ("labels", "annotations")}
    return {**{key: obj[key] for key in obj if key not in ("metadata", "status")}, "metadata": kept}
