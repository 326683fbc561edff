"""Time limits of workloads that name none: their queue's default, else learnt from earlier runs.

What is learned is in the finished Workloads that the API still has, so a new process knows as much
as the old one as soon as it has read them.
"""

from __future__ import annotations

from typing import Any

from unisono.control import names
from unisono.control.actions import Json
from unisono.control.view import View
from unisono.engine.model.names import LocalQueueKey
from unisono.engine.model.workload import Workload
from unisono.engine.state.run_history import History, alike, with_limit
from unisono.kinds.kueue.workload_rules import owner_of, run_of
from unisono.kinds.times import DEFAULT_LIMIT, limit_ms
from unisono.kube.form import Key
from unisono.kube.mapping import Kind


class Limits:
    """Fills in what a Workload leaves open."""

    def __init__(self, view: View) -> None:
        """Begin without history."""
        self._view = view
        self._history = History()
        self._defaults: dict[tuple[Kind, Key], str] = {}

    def filled_in(self, made: Workload, written: Any) -> Workload:
        """Return a workload that says how long it runs, if that can be known."""
        return with_limit(
            made,
            owner=owner_of(written),
            default_ms=self._default_ms(made.queue),
            history=self._history,
        )

    def learn(self, made: Workload, written: Any) -> None:
        """Note how long a workload ran that is over."""
        ran = run_of(written)
        if ran is not None:
            kind = alike(made, owner_of(written))
            self._history.note(kind, uid=made.uid, ended_at=ran[0], ran_ms=ran[1])

    def changed(self, kind: Kind, key: Key) -> bool:
        """Say whether the default of a queue is another than when this was last asked."""
        text = default_text(self._view.get(kind, key.name, key.namespace))
        if self._defaults.get((kind, key), "") == text:
            return False
        self._defaults[kind, key] = text
        return True

    def _default_ms(self, key: LocalQueueKey) -> int | None:
        namespace, _, name = key.partition("/")
        lq = self._view.get(names.LOCAL_QUEUE, name, namespace)
        if lq is None:
            return None
        found = _read(default_text(lq))
        if found is None:
            queue = self._view.get(names.CLUSTER_QUEUE, lq["spec"].get("clusterQueue", ""))
            found = _read(default_text(queue))
        return found


def default_text(queue: Json | None) -> str:
    """Return the default limit of a queue as it is written; empty if there is none."""
    metadata = queue["metadata"] if queue is not None else {}
    return str((metadata.get("annotations") or {}).get(DEFAULT_LIMIT, ""))


def _read(text: str) -> int | None:
    """Return a limit; the API warned about one that cannot be read."""
    try:
        return limit_ms(text) if text else None
    except ValueError:
        return None
