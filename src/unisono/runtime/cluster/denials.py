"""Rights that were taken away while we run, told once in a while and not at every try."""

from __future__ import annotations

import re
from collections.abc import Callable

from unisono.kube.errors import Forbidden, KubeError
from unisono.runtime.log import Journal

# What is still so after this time is told again.
_AGAIN_S = 300.0
# A role has some hundred rights; the log of a replica that is denied more says enough.
_MOST_KEPT = 256
_CANNOT = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


class Denials:
    """Tells which verb on which resource is missing; work that needs it is tried again anyway."""

    def __init__(self, journal: Journal, monotonic: Callable[[], float]) -> None:
        """Write to a journal; `monotonic` is in seconds."""
        self._journal = journal
        self._monotonic = monotonic
        self._told: dict[tuple[str, str], float] = {}

    def hear(self, trouble: KubeError | None) -> None:
        """Look at what stopped a task."""
        if not isinstance(trouble, Forbidden):
            return
        verb, resource = _right_of(str(trouble))
        now = self._monotonic()
        if now - self._told.get((verb, resource), -_AGAIN_S) < _AGAIN_S:
            return
        if len(self._told) >= _MOST_KEPT:
            self._told.clear()
        self._told[verb, resource] = now
        self._journal.error("not allowed", verb=verb, resource=resource, reason=str(trouble))


def _right_of(message: str) -> tuple[str, str]:
    """Read the right that an API server misses.

    >>> _right_of('pods "a" is forbidden: User "u" cannot patch resource "pods" in API group "x.y"')
    ('patch', 'pods.x.y')
    """
    found = _CANNOT.search(message)
    if found is None:
        return "", ""  # another reason to refuse: a policy, a quota
    verb, resource, group = found.groups()
    return verb, f"{resource}.{group}" if group else resource
