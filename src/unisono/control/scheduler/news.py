"""Which changes of queues the scheduler need not hear of: those of their counts.

The statuses of queues change whenever a workload does. Nothing in them decides anything, except
what a local queue used lately; waking the scheduler for each would double its work.
"""

from __future__ import annotations

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.controller import own_key
from unisono.control.view import View
from unisono.kube.form import Key
from unisono.kube.mapping import Kind

_QUEUES = (names.CLUSTER_QUEUE, names.LOCAL_QUEUE, names.COHORT)


class News:
    """Remembers what was last heard of each queue that could matter."""

    def __init__(self) -> None:
        """Begin with everything unheard."""
        self._heard: dict[tuple[Kind, Key], object] = {}

    def is_news(self, kind: Kind, obj: Json, view: View) -> bool:
        """Say whether an object is different in anything that a decision reads."""
        if kind not in _QUEUES:
            return True
        key = own_key(obj)
        now = view.get(kind, key.name, key.namespace)
        if now is None:
            self._heard.pop((kind, key), None)
            return True
        metadata, status = now["metadata"], now.get("status") or {}
        matters = (
            metadata.get("uid"),
            metadata.get("generation"),
            metadata.get("deletionTimestamp"),
            (status.get("fairSharing") or {}).get("admissionFairSharingStatus"),
        )
        if self._heard.get((kind, key)) == matters:
            return False
        self._heard[kind, key] = matters
        return True
