"""Evictions that no preemptor asks for: stopped queues, deadlines, failed checks, deactivation.

Hold lets admitted workloads run on and takes back reservations that were not admitted yet;
HoldAndDrain takes everything back (spec quota §11). The rules for a single workload (deadlines,
checks, deactivation) are in `state/lifecycle.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.engine.model.explanation import QueueStopped
from unisono.engine.model.names import Instant, WorkloadKey
from unisono.engine.model.plan import Stop, StopReason
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.cluster_queue import ClusterQueueState, LocalQueueState
from unisono.engine.state.lifecycle import stop_for


def evictions_due(state: ClusterState, now: Instant) -> list[Stop]:
    """Return the admitted workloads to evict, each once, in order of name."""
    if not state.eviction_triggers.suspects and not state.stopped:
        return []
    stops: dict[WorkloadKey, Stop] = {}
    for key in state.eviction_triggers.suspects:
        state.evaluating = key
        admitted = state.running[key].admitted
        stop = None if admitted.evicting else stop_for(admitted, state.policy, now)
        if stop is not None:
            stops[key] = stop
    for stop in _from_stopped_queues(state):
        stops.setdefault(stop.workload, stop)
    return [stops[key] for key in sorted(stops)]


def _from_stopped_queues(state: ClusterState) -> Iterator[Stop]:
    # A queue's reason goes before a local queue's, whichever was stopped first.
    for stopped in sorted(state.stopped, key=lambda stopped: isinstance(stopped, LocalQueueState)):
        blocker = stopped.blocker
        if not isinstance(blocker, QueueStopped):
            continue
        of_queue = isinstance(stopped, ClusterQueueState)
        reason: StopReason = "ClusterQueueStopped" if of_queue else "LocalQueueStopped"
        for key, running in stopped.running.items():
            admitted = running.admitted
            if not admitted.evicting and (blocker.drain or not admitted.may_start):
                yield Stop(workload=key, reason=reason)
