"""Why workloads wait that no cycle evaluates.

A plan explains what it evaluated. A workload in a closed LocalQueue (missing, or stopped) is not
evaluated, nor is the second of two equal workloads when the first was refused. They are explained
when they arrive, and again when their LocalQueue opens or closes; the second of two also if the
first was refused after it had come.

Behind the head of a StrictFIFO queue nothing is evaluated, for as long as the head waits. After
some seconds such workloads are told which one is ahead; a place that has changed since is told
again at most once a minute, and only to so many, because every explanation costs a write.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from unisono.engine.explain.waiting import recorded_explanation
from unisono.engine.model.explanation import BehindInQueue, Blocker, Explanation
from unisono.engine.model.names import Instant, LocalQueueKey, QueueName, WorkloadKey
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import LocalQueueState

# Most workloads are admitted or evaluated sooner than that, and need no explanation.
_PATIENCE_MS = 3_000
_PAUSE_MS = 60_000
# How many places are told at once: to workloads that know none, and that know another one.
_MOST_FIRST = 1000
_MOST_CHANGED = 50
_MOST_EACH_TIME = 16


class Unevaluated:
    """Remembers arrivals since the last cycle, and what blocked each LocalQueue then."""

    def __init__(self, state: ClusterState) -> None:
        """Look at a state."""
        self._state = state
        self._arrived: dict[WorkloadKey, None] = {}
        self._blockers: dict[LocalQueueKey, Blocker | None] = {}
        self._may_have_moved = False
        # The workloads that no cycle has evaluated, and which place each was told.
        self._places: dict[WorkloadKey, BehindInQueue | None] = {}
        self._places_due: Instant | None = None

    def arrived(self, key: WorkloadKey) -> None:
        """Note that a workload is new or changed."""
        self._arrived[key] = None

    def forget(self, key: WorkloadKey) -> None:
        """Note that a workload has been told nothing: it ended, or is a new one of that name."""
        self._places.pop(key, None)

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
            elif lq.cq is not None and key not in self._places:
                self._places[key] = None
                soon = Instant(self._state.now + _PATIENCE_MS)
                self._places_due = min(self._places_due or soon, soon)
        yield from self._refused_since()

    def _refused_since(self) -> Iterator[Explanation]:
        """Yield what is known by now of some of those that no cycle evaluated: one like it waits.

        Of a few each time, as this is asked in every cycle; of the others with the places.
        """
        for key in [*islice(self._places, _MOST_EACH_TIME)]:
            found = recorded_explanation(self._state, key) if key in self._state.waiting else None
            if found is not None:
                del self._places[key]
                yield found

    def next_due(self) -> Instant | None:
        """Return when to tell places; None: there is no workload that none is known of."""
        return self._places_due if self._places else None

    def places(self, now: Instant) -> Iterator[Explanation]:
        """Yield the places of workloads that no cycle evaluates, if it is time to."""
        if not self._places or self._places_due is None or now < self._places_due:
            return
        self._places_due = Instant(now + _PAUSE_MS)
        queues: dict[QueueName, None] = {}
        for key in list(self._places):
            waiting = self._state.waiting.get(key)
            cq = None if waiting is None else self._state.local_queue(waiting.workload.queue).cq
            found = None if cq is None else recorded_explanation(self._state, key)
            if cq is None or found is not None:
                del self._places[key]
                if found is not None:  # perhaps that of one like it, which was refused since
                    yield found
            else:
                queues[cq.spec.name] = None
        left = {True: _MOST_FIRST, False: _MOST_CHANGED}
        for name in queues:
            order = self._state.queues[name].pending.in_order()
            for position, waiting in enumerate(order):
                key = waiting.workload.key
                if key not in self._places:
                    continue
                behind = BehindInQueue(queue=name, head=order[0].workload.key, position=position)
                published = self._places[key]
                if published != behind and left[published is None]:
                    left[published is None] -= 1
                    self._places[key] = behind
                    yield Explanation(workload=key, queue=name, blockers=(behind,))

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
