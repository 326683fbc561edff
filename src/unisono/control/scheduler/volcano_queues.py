"""Volcano's queues as changes of the engine's state: only what is new about any of them.

They share a tree (`kinds.volcano.queue_quota`), so a change of one may move quota of others, and
where something is guaranteed to a queue, a node that comes or goes moves what the rest may use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from unisono.engine.model.names import CohortName, QueueName
from unisono.engine.model.queue import ClusterQueue, Cohort
from unisono.engine.state import changes
from unisono.kinds.volcano.queue_quota import quota_of
from unisono.kinds.volcano.queues import ANY_NODE, Queue


class SharedQueues:
    """Remembers what the engine was told of Volcano's queues, and what each node has."""

    def __init__(self) -> None:
        """Begin with an engine that knows none."""
        self._queues: dict[QueueName, ClusterQueue] = {}
        self._cohorts: dict[CohortName, Cohort] = {}
        self._has_flavor = False
        self._of_nodes: dict[str, Mapping[str, int]] = {}
        self._totals: dict[str, int] = {}
        self._guaranteed: frozenset[str] = frozenset()

    def changes(self, queues: Iterable[Queue]) -> Iterator[changes.Change]:
        """Yield the changes after which the engine knows these queues, and no others."""
        known = list(queues)
        self._guaranteed = frozenset(name for one in known for name in one.spec.guarantee.resource)
        made = quota_of(known, self._totals)
        if made.needs_flavor and not self._has_flavor:
            self._has_flavor = True
            yield changes.FlavorSet(ANY_NODE)
        for cohort in made.cohorts:
            if self._cohorts.get(cohort.name) != cohort:
                self._cohorts[cohort.name] = cohort
                yield changes.CohortSet(cohort)
        for queue in made.queues:
            if self._queues.get(queue.name) != queue:
                self._queues[queue.name] = queue
                yield changes.QueueSet(queue)
        for name in self._cohorts.keys() - {one.name for one in made.cohorts}:
            del self._cohorts[name]
            yield changes.CohortGone(name)

    def gone(self, name: str) -> QueueName:
        """Forget a queue; return what the engine calls it."""
        queue = QueueName(f"volcano/{name}")
        self._queues.pop(queue, None)
        return queue

    def nodes_hold(self, name: str, amounts: Mapping[str, int]) -> bool:
        """Note what a node has, nothing if it is gone; say whether that moves quota."""
        before = self._of_nodes.pop(name, {})
        if amounts:
            self._of_nodes[name] = amounts
        moved = {one for one in (*before, *amounts) if before.get(one) != amounts.get(one)}
        for one in moved:
            total = self._totals.get(one, 0) + amounts.get(one, 0) - before.get(one, 0)
            self._totals[one] = total
        return bool(moved & self._guaranteed)
