"""The pending workloads of a queue in their order, as the visibility API of Kueue lists them.

The order of all queues is worked out once for a state of the cluster (`ClusterCache`), and only the
workloads of the window that was asked for are looked up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from unisono.kinds.kueue.visibility import Place, Window, item
from unisono.kinds.views import Raw
from unisono.kube.mapping import Kind
from unisono.monitor.cache import WORKLOAD, ClusterCache
from unisono.monitor.records import WorkloadRecord

Item = dict[str, Any]
_Placed = tuple[WorkloadRecord, Place]


class PendingWorkloads:
    """Answers for every queue of a cluster."""

    def __init__(self, cache: ClusterCache, find: Callable[[Kind, str, str], Raw | None]) -> None:
        """Take the records of a cluster, and what finds an object by kind, name and namespace."""
        self._cache = cache
        self._find = find
        self._made_for: tuple[int, int] | None = None
        self._orders: dict[str, list[WorkloadRecord]] = {}

    def of_cluster_queue(self, name: str, window: Window) -> list[Item] | None:
        """Return a window of the workloads in a ClusterQueue; None if there is no such queue."""
        self._refresh()
        if name not in self._cache.queues:
            return None
        return self._items(islice(self._placed(name), window.offset, window.offset + window.limit))

    def of_local_queue(self, namespace: str, name: str, window: Window) -> list[Item] | None:
        """Return a window of the workloads in a LocalQueue; None if there is no such queue."""
        self._refresh()
        cluster_queue = self._cache.local_queues.get((namespace, name))
        if cluster_queue is None:
            return None
        of_queue = (
            (one, place)
            for one, place in self._placed(cluster_queue)
            if (one.namespace, one.local_queue) == (namespace, name)
        )
        return self._items(islice(of_queue, window.offset, window.offset + window.limit))

    def _refresh(self) -> None:
        self._cache.refresh()
        version = (self._cache.workloads_version, self._cache.queues_version)
        if version != self._made_for:
            self._orders = self._cache.pending_by_queue()
            self._made_for = version

    def _placed(self, queue: str) -> Iterator[_Placed]:
        before: Counter[tuple[str, str]] = Counter()
        for at, one in enumerate(self._orders.get(queue, ())):
            local_queue = one.namespace, one.local_queue
            yield one, Place(at, before[local_queue])
            before[local_queue] += 1

    def _items(self, placed: Iterable[_Placed]) -> list[Item]:
        found = ((self._find(WORKLOAD, *one.key[::-1]), place) for one, place in placed)
        return [item(workload, place) for workload, place in found if workload is not None]
