"""Where a cluster's state is made: empty, or as a snapshot recorded it.

The state imports no rule, yet a policy may order workloads by one. This is the place above both
that puts them together; nothing else calls `ClusterState` itself.
"""

from __future__ import annotations

from unisono.engine.model.names import Instant
from unisono.engine.model.policy import Policy
from unisono.engine.model.snapshot import Snapshot
from unisono.engine.ordering.priority_order import MultifactorOrder
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.snapshots import load


def new_cluster(policy: Policy | None = None, *, now: Instant = Instant(0)) -> ClusterState:
    """Return the state of a cluster of which nothing is known but its policy."""
    return ClusterState(policy, now=now, priority_order=MultifactorOrder)


def restore(recorded: Snapshot) -> ClusterState:
    """Return a state as a snapshot recorded it, at the same version."""
    state = new_cluster(recorded.policy, now=recorded.now)
    load(state, recorded)
    return state
