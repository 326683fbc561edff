"""Keeps the status of disruption budgets true while pods come and go."""

from __future__ import annotations

import asyncio

from unisono.apiserver.builtin.policy import allowed_disruptions, counted, selects
from unisono.apiserver.rest.context import ServerContext
from unisono.apiserver.rest.writer import Writer
from unisono.apiserver.storage.record import Change

_BUDGETS = "policy/poddisruptionbudgets"


class DisruptionBudgetController:
    """Looks at the budgets of a namespace when a pod or a budget in it changed."""

    def __init__(self, server: ServerContext, writer: Writer) -> None:
        """Begin to listen."""
        self._server = server
        self._writer = writer
        self._due: set[str] = set()
        server.store.on_change.append(self._changed)

    def _changed(self, change: Change) -> None:
        if change.record.key[0] not in ("/pods", _BUDGETS) or not self._server.store.count(
            _BUDGETS
        ):
            return
        if not self._due:
            asyncio.get_running_loop().call_soon(self._update)
        self._due.add(change.record.namespace)

    def _update(self) -> None:
        due, self._due = self._due, set()
        store = self._server.store
        for record in store.listing(_BUDGETS):
            newest = store.newest(record.key)
            if newest is None or record.namespace not in due:
                continue
            budget = newest.load()
            pods = [
                one.load()
                for one in store.listing("/pods")
                if one.namespace == record.namespace and selects(budget, one.labels)
            ]
            healthy, needed, expected = counted(budget, pods)
            status = {
                **(budget.get("status") or {}),
                "currentHealthy": healthy,
                "desiredHealthy": needed,
                "expectedPods": expected,
                "disruptionsAllowed": allowed_disruptions(budget, pods),
                "observedGeneration": budget["metadata"].get("generation", 1),
            }
            if status != budget.get("status"):
                budget["status"] = status
                self._writer.put(newest, budget)
