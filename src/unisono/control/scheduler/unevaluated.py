"""Why workloads wait that no cycle evaluates.

A plan explains what it evaluated. A workload in a closed LocalQueue (missing, or stopped) is not
evaluated, nor is the second of two equal workloads when the first was refused. They are explained
when they arrive, and again when their LocalQueue opens or closes.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.explain.waiting import recorded_explanation
from unisono.engine.model.explanation import BehindInQueue, Blocker, Explanation
from unisono.engine.model.names import LocalQueueKey, WorkloadKey
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import LocalQueueState


class Unevaluated:
    """Remembers arrivals since the last cycle, and what blocked each LocalQueue then."""

    def __init__(self, state: ClusterState) -> None:
        """Look at a state."""
        self._state = state
        self._arrived: dict[WorkloadKey, None] = {}
        self._blockers: dict[LocalQueueKey, Blocker | None] = {}
        self._may_have_moved = False

    def arrived(self, key: WorkloadKey) -> None:
        """Note that a workload is new or changed."""
        self._arrived[key] = None

    def configured(self) -> None:
        """Note that LocalQueues may have opened or closed."""
        self._may_have_moved = True

    def explanations(self) -> Iterator[Explanation]:
        """Yield what is known of workloads that arrived, are held otherwise, or changed queues."""
        self._state.refresh()
        keys, self._arrived = {**self._arrived, **self._state.moved}, {}
        self._state.moved.clear()
        if self._may_have_moved:
            self._may_have_moved = False
            for gone in self._blockers.keys() - self._state.local_queues.keys():
                del self._blockers[gone]
            for lq in self._state.local_queues.values():
                blocker = _blocker(lq)
                if self._blockers.get(lq.key) != blocker:
                    self._blockers[lq.key] = blocker
                    keys.update(dict.fromkeys(lq.waiting))
                    yield from self._positions(lq)
        for key in keys:
            waiting = self._state.waiting.get(key)
            if waiting is None:
                continue
            lq = self._state.local_queue(waiting.workload.queue)
            self._blockers.setdefault(lq.key, _blocker(lq))
            found = recorded_explanation(self._state, key)
            if found is not None:
                yield found

    def _positions(self, lq: LocalQueueState) -> Iterator[Explanation]:
        """Tell workloads of an open LocalQueue their position, if nothing else is known of them."""
        if lq.cq is None or lq.cq.blocker is not None:
            return
        queue, order = lq.cq.spec.name, lq.cq.pending.in_order()
        for position, waiting in enumerate(order):
            key = waiting.workload.key
            if key in lq.waiting and recorded_explanation(self._state, key) is None:
                behind = BehindInQueue(queue=queue, head=order[0].workload.key, position=position)
                yield Explanation(workload=key, queue=queue, blockers=(behind,))


def _blocker(lq: LocalQueueState) -> Blocker | None:
    if lq.cq is None:
        return lq.blocker
    return lq.cq.blocker
