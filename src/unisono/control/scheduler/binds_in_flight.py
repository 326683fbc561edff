"""Binds in flight of pods without a workload: sent, and not in the view yet.

A binding returns no object that could be shown, and its watch event may take a while. Meanwhile the
pod has its place; by the view alone it would seem to wait, and its place to be free. If the answer
was lost, the place is kept for a while, long enough for any watch event.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

from unisono.control.actions import Json
from unisono.control.controller import own_key
from unisono.kube.form import Key

_DOUBT_SECONDS = 30.0


@dataclass(slots=True)
class _Sent:
    uid: str
    node: str
    until: float = math.inf


class BindsInFlight:
    """Remembers the nodes of pods. A restarted scheduler reads pods after all that was written."""

    def __init__(self) -> None:
        """Begin with none."""
        self._sent: dict[Key, _Sent] = {}
        self._written: list[_Sent] = []
        self.is_writing = False

    def note(self, pod: Json, node: str) -> None:
        """Hear that a pod is about to be bound."""
        self._sent[own_key(pod)] = made = _Sent(pod["metadata"]["uid"], node)
        self._written.append(made)

    @contextlib.contextmanager
    def writing(self, now: float) -> Iterator[None]:
        """Doubt the pods noted in this block if it ends before all are known to be bound."""
        self._written = []
        self.is_writing = True
        try:
            yield
        except BaseException:
            for one in self._written:
                one.until = now + _DOUBT_SECONDS
            raise
        finally:
            self.is_writing = False

    def node_of(self, pod: Json) -> str:
        """Return the node that a pod has, or was sent to."""
        node = str(pod["spec"].get("nodeName") or "")
        sent = self._sent.get(own_key(pod))
        if sent is None:
            return node
        if node or sent.uid != pod["metadata"]["uid"]:
            del self._sent[own_key(pod)]
            return node
        return sent.node

    def gone(self, key: Key) -> None:
        """Hear that a pod is no more."""
        self._sent.pop(key, None)

    def expired(self, now: float) -> Iterator[Key]:
        """Forget, and yield, pods without news for so long that they cannot be bound any more."""
        for key in [key for key, one in self._sent.items() if one.until <= now]:
            del self._sent[key]
            yield key

    def next_due(self) -> float | None:
        """Return when the next one expires."""
        due = min((one.until for one in self._sent.values()), default=math.inf)
        return due if due < math.inf else None
