"""Which top-level fields of an object a write through some address is responsible for.

address     built-in kinds      custom resources
main        all but status      all but status
status      all but spec        status alone
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from unisono.kinds.shapes.served import BUILT_IN

Tracked = Callable[[str], bool]

_NEVER = frozenset({"apiVersion", "kind"})


def is_built_in(api_version: str) -> bool:
    """Say whether a kind of this version belongs to every Kubernetes."""
    return api_version.rpartition("/")[0] in BUILT_IN


def tracked_fields(
    api_version: str, subresource: str, ignored: Collection[str] | None = None
) -> Tracked:
    """Return a function that says whether the writers of a top-level field are remembered.

    `ignored` names those that are not; without it, the table above holds.
    """
    if ignored is None and subresource == "status" and not is_built_in(api_version):
        return _is_status
    if ignored is None:
        ignored = ("spec",) if subresource == "status" else ("status",)
    untracked = _NEVER.union(ignored)
    return lambda name: name not in untracked


def _is_status(name: str) -> bool:
    return name == "status"
