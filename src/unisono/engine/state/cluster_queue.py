"""What the state keeps about each ClusterQueue and LocalQueue: pending and running workloads."""

from __future__ import annotations

from dataclasses import dataclass, field

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import FlavorName, Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.queue import ClusterQueue
from unisono.engine.model.workload import AdmittedWorkload
from unisono.engine.state.occupancy import PlacedPods
from unisono.engine.state.pending_queue import HeapQueue, PendingQueue, PendingWorkload
from unisono.engine.state.quota_tree import Node
from unisono.engine.state.transaction import Charges
from unisono.engine.state.wake_index import Wakes


class Running:
    """A workload that holds quota, with its charges resolved to cells of the quota tree."""

    __slots__ = (
        "admitted",
        "charges",
        "cq",
        "end",
        "is_plain",
        "key",
        "placed_pods",
        "queue",
        "since",
    )

    def __init__(self, admitted: AdmittedWorkload, cq: ClusterQueueState, charges: Charges) -> None:
        workload = admitted.workload
        self.admitted = admitted
        self.key = workload.key
        self.queue = workload.queue  # its local queue
        # Nothing about the workload itself can end it, and it belongs to no array.
        self.is_plain = False
        self.cq = cq
        self.charges = charges
        started = admitted.admitted_at
        self.since = admitted.reserved_at if started is None else started  # when it started
        self.placed_pods: tuple[PlacedPods, ...] = ()  # its pods on nodes, if it was placed
        self.end = (Instant(0), 0)  # its entry on the timeline, with backfill


@dataclass(slots=True, eq=False)
class CohortTree:
    """What the queues of one cohort tree share: what sleeps, and until what."""

    wakes: Wakes = field(default_factory=Wakes)
    # Queues with workloads to evaluate, in which nothing can change until the tree changes.
    asleep: dict[ClusterQueueState, None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class ClusterQueueState:
    """One ClusterQueue."""

    spec: ClusterQueue
    node: Node
    tree: CohortTree
    pending: PendingQueue = field(default_factory=HeapQueue)
    running: dict[WorkloadKey, Running] = field(default_factory=dict)
    # What rules have worked out from the queue's configuration, by type (see `ClusterState`).
    derived: dict[type, object] = field(default_factory=dict)
    blocker: Blocker | None = None  # inactive or stopped: nothing here is evaluated
    # The last verdict on a head that stays where it is.
    head_wait: tuple[WorkloadKey, tuple[Blocker, ...]] | None = None
    # StrictFIFO: the head does not fit and cannot until something is freed; it reserves nothing.
    blocked_by_head: bool = False

    @property
    def is_strict(self) -> bool:
        """Say whether the head blocks those behind it."""
        return self.spec.strategy == "StrictFIFO"

    def flavors(self) -> set[FlavorName]:
        """Return every flavor the queue lists."""
        return {quota.flavor for group in self.spec.groups for quota in group.flavors}


@dataclass(slots=True, eq=False)
class LocalQueueState:
    """One local queue; a closed one keeps its workloads out of pending queues."""

    key: LocalQueueKey
    cq: ClusterQueueState | None = None  # None while closed
    blocker: Blocker | None = None
    waiting: dict[WorkloadKey, PendingWorkload] = field(default_factory=dict)
    running: dict[WorkloadKey, Running] = field(default_factory=dict)
