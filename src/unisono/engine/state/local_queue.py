"""LocalQueues as the state has them: the ClusterQueue of each, or why it has none."""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import LocalQueueKey, WorkloadKey
from unisono.engine.state.cluster_queue import ClusterQueueState, Running
from unisono.engine.state.pending_queue import Waiting


@dataclass(slots=True, eq=False)
class LocalQueueState:
    """One local queue; a closed one keeps its workloads out of pending queues."""

    key: LocalQueueKey
    cq: ClusterQueueState | None = None  # None while closed
    blocker: Blocker | None = None
    waiting: dict[WorkloadKey, Waiting] = field(default_factory=dict)
    running: dict[WorkloadKey, Running] = field(default_factory=dict)
