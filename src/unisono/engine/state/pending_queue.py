"""The pending queue of one ClusterQueue: the order its workloads are evaluated in (spec quota §5).

A workload that was found inadmissible is set aside together with all of its equivalence class, so
that a thousand equal workloads cost what one costs. `PendingQueue` is what the state asks of every
queue; `HeapQueue` orders by priority and time, or by the recent usage of LocalQueues first. A
policy with multifactor priority brings a queue of its own (`state.priority_order`).

The base class is a class rather than a Protocol because these modules are compiled: a call through
a native base class costs a look-up in a table, one through a Protocol a look-up by name.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.overriding import override
from unisono.engine.model.workload import PositionKey, Workload
from unisono.engine.state.gang_request import GangRequest

# Gang request, priority, and relation to maintenance reservations; or the
# uid of a workload with a history of its own (a back-off before it may preempt). The type has no
# length, so that compiled code keeps the tuple as it is: it is looked up in many places.
EquivalenceClass = tuple[int | str, ...]
UsageOf = Callable[[LocalQueueKey], int]


class PendingWorkload:
    """A pending workload: it holds no quota."""

    __slots__ = (
        "alone",
        "equivalence_class",
        "is_plain",
        "key",
        "priority",
        "queue",
        "request",
        "since",
        "slot",
        "subclass",
        "tie",
        "workload",
    )

    def __init__(
        self, workload: Workload, request: GangRequest, *, alone: bool = False, subclass: str = ""
    ) -> None:
        self.workload = workload
        self.key = workload.key
        self.queue = workload.queue
        self.priority = workload.priority
        self.is_plain = False  # nothing about the workload itself holds it back or ends it
        self.request = request
        self.alone = alone  # in an equivalence class of its own
        # What sets it apart from its equals: advance reservations, opportunistic use of held nodes.
        self.subclass = subclass
        # What orders it among equals, ...
        queued_at = workload.queued_at
        self.since = workload.created_at if queued_at is None else queued_at
        self.tie = (
            workload.tie if workload.submit_options.number else workload.uid
        )  # ... of one instant
        # Where its pending queue keeps it, which alone knows what that is; None while it is in none
        # because it, or its LocalQueue, is held back.
        self.slot: object | None = None
        own = workload.uid if alone or workload.may_preempt_at is not None else subclass
        self.equivalence_class: EquivalenceClass = (request.number, self.priority, own)


def equivalence_class_of(waiting: PendingWorkload) -> EquivalenceClass:
    """Return the equivalence class of a workload."""
    return waiting.equivalence_class


class PendingQueue(ABC):
    """All pending workloads of one ClusterQueue that nothing holds back."""

    def __init__(self, *, preemptor: WorkloadKey | None = None) -> None:
        # The preemptor whose preemption is pending: it stays the head until it is admitted.
        self.preemptor = preemptor
        # Set: admission fair sharing orders LocalQueues by their recent usage first.
        self.usage_of: UsageOf | None = None
        # Equivalence classes that were found inadmissible, and why.
        self.inadmissible: dict[EquivalenceClass, tuple[Blocker, ...]] = {}

    @abstractmethod
    def push(self, waiting: PendingWorkload) -> bool:
        """Add a workload; say whether it may become the head, i.e. will be evaluated."""

    @abstractmethod
    def drop(self, waiting: PendingWorkload) -> None:
        """Remove a workload."""

    @abstractmethod
    def head(self, preemptor: PendingWorkload | None) -> PendingWorkload | None:
        """Return the next to evaluate: the entry of `self.preemptor` if it is given, in a queue."""

    @abstractmethod
    def set_aside(self, equivalence_class: EquivalenceClass, blockers: tuple[Blocker, ...]) -> None:
        """Set an equivalence class aside as inadmissible; later ones of that class join it."""

    @abstractmethod
    def wake(self, equivalence_class: EquivalenceClass) -> bool:
        """Bring an inadmissible equivalence class back; False if it was not set aside."""

    @abstractmethod
    def in_order(self) -> list[PendingWorkload]:
        """Return all workloads, inadmissible or not, in queue order."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many workloads are pending."""

    def drop_preemptor(self, key: WorkloadKey) -> None:
        """Let a workload no longer be the preemptor whose preemption is pending."""
        if self.preemptor == key:
            self.preemptor = None

    def inadmissible_heads(self) -> list[PendingWorkload]:
        """Return the first workload of every inadmissible equivalence class, in queue order."""
        found: dict[EquivalenceClass, PendingWorkload] = {}
        for waiting in self.in_order():
            if waiting.equivalence_class in self.inadmissible:
                found.setdefault(waiting.equivalence_class, waiting)
        return list(found.values())

    def limit_blocked_heads(self) -> list[tuple[PendingWorkload, tuple[Blocker, ...]]]:
        """Return the first workload of every limit-blocked class and its blockers."""
        return []

    def blockers_of(self, waiting: PendingWorkload) -> tuple[Blocker, ...] | None:
        """Return why a workload is not evaluated for now; None if it is."""
        return self.inadmissible.get(waiting.equivalence_class)


class Bucket:
    """Pending workloads of one equivalence class, first come first served."""

    __slots__ = (
        "_members",
        "equivalence_class",
        "key",
        "local_queue",
        "offered",
        "priority",
        "size",
    )

    def __init__(
        self,
        key: EquivalenceClass,
        equivalence_class: EquivalenceClass,
        priority: int,
        local_queue: LocalQueueKey,
    ) -> None:
        self.key = key  # among all buckets of the queue
        self.equivalence_class = equivalence_class
        self.priority = priority
        self.local_queue = local_queue
        self._members: list[tuple[Instant, str, int, PendingWorkload]] = []
        self.size = 0
        self.offered = 0  # the sequence of the member that is on the queue's heap for it

    def push(self, waiting: PendingWorkload, sequence: int) -> None:
        """Add a workload; `sequence` keeps comparisons away from the object itself."""
        heapq.heappush(self._members, (waiting.since, waiting.tie, sequence, waiting))
        waiting.slot = self
        self.size += 1

    def drop(self, waiting: PendingWorkload) -> None:
        """Remove a workload from anywhere; its entry is discarded when it comes first."""
        waiting.slot = None
        self.size -= 1
        if len(self._members) > 2 * self.size + 16:
            self._members = [entry for entry in self._members if entry[3].slot is self]
            heapq.heapify(self._members)

    def first(self) -> tuple[Instant, str, int, PendingWorkload] | None:
        """Return the first member's entry."""
        members = self._members
        while members and members[0][3].slot is not self:
            heapq.heappop(members)
        return members[0] if members else None

    def __iter__(self) -> Iterator[PendingWorkload]:
        """Yield members in no particular order."""
        return (entry[3] for entry in self._members if entry[3].slot is self)


class HeapQueue(PendingQueue):
    """Pending workloads by priority and time, in one bucket per equivalence class.

    With admission fair sharing a bucket also belongs to one LocalQueue, because the recent usage of
    that LocalQueue outranks priority.
    """

    def __init__(
        self, *, usage_of: UsageOf | None = None, preemptor: WorkloadKey | None = None
    ) -> None:
        super().__init__(preemptor=preemptor)
        self.usage_of = usage_of
        self._buckets: dict[
            EquivalenceClass, Bucket
        ] = {}  # the key has the LocalQueue too where it matters
        # (-priority, time, uid, member's sequence, entry's number, bucket): the number ends ties.
        self._heap: list[tuple[int, Instant, str, int, int, Bucket]] = []
        # Buckets whose first member may have changed; the heap is updated when a head is wanted.
        self._changed: dict[Bucket, None] = {}
        self._sequence = 0

    @override
    def push(self, waiting: PendingWorkload) -> bool:
        """Add a workload; say whether its bucket is active, i.e. it will be evaluated."""
        equivalence_class = waiting.equivalence_class
        key = equivalence_class if self.usage_of is None else (*equivalence_class, waiting.queue)
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(
                key, equivalence_class, waiting.priority, waiting.queue
            )
        self._sequence += 1
        bucket.push(waiting, self._sequence)
        if self.inadmissible and equivalence_class in self.inadmissible:
            first = bucket.first()
            if first is None or first[3] is not waiting:
                return False
            # A workload older than all that were found inadmissible may be admissible (some rules
            # compare times), so the class is evaluated once more.
            self.wake(equivalence_class)
        self._changed[bucket] = None
        return True

    @override
    def drop(self, waiting: PendingWorkload) -> None:
        """Remove a workload."""
        bucket = waiting.slot
        assert isinstance(bucket, Bucket), f"{waiting.workload.key} is in no bucket"
        bucket.drop(waiting)
        self.drop_preemptor(waiting.key)
        if bucket.size == 0:
            bucket.offered = 0  # its entry on the heap is void
            self._changed.pop(bucket, None)
            del self._buckets[bucket.key]
            if self.inadmissible and not self._keys(bucket.equivalence_class):
                self.inadmissible.pop(bucket.equivalence_class, None)
        elif not self.inadmissible or bucket.equivalence_class not in self.inadmissible:
            self._changed[bucket] = None

    @override
    def head(self, preemptor: PendingWorkload | None) -> PendingWorkload | None:
        """Return the next to evaluate: the entry of `self.preemptor` if it is given, in a queue."""
        if preemptor is not None and preemptor.slot is not None:
            return preemptor
        if self.usage_of is not None:
            return self._fairest(self.usage_of)
        if self._changed:
            for bucket in self._changed:
                if bucket.equivalence_class not in self.inadmissible:
                    self._offer(bucket)
            self._changed.clear()
        while self._heap:
            _, _, _, sequence, _, bucket = self._heap[0]
            first = bucket.first()
            if (
                first is not None
                and first[2] == sequence
                and bucket.equivalence_class not in self.inadmissible
            ):
                return first[3]
            heapq.heappop(self._heap)
            if bucket.offered == sequence:
                bucket.offered = 0
        return None

    @override
    def set_aside(self, equivalence_class: EquivalenceClass, blockers: tuple[Blocker, ...]) -> None:
        """Set an equivalence class aside; its buckets leave the heap when they come first."""
        self.inadmissible[equivalence_class] = blockers

    @override
    def wake(self, equivalence_class: EquivalenceClass) -> bool:
        """Bring an inadmissible equivalence class back; False if it was not set aside."""
        if self.inadmissible.pop(equivalence_class, None) is None:
            return False
        for key in self._keys(equivalence_class):
            self._changed[self._buckets[key]] = None
        return True

    @override
    def in_order(self) -> list[PendingWorkload]:
        """Return all workloads, inadmissible or not, in queue order."""
        usage_of = self.usage_of

        def place(waiting: PendingWorkload) -> tuple[bool, int, PositionKey]:
            workload = waiting.workload
            usage = usage_of(workload.queue) if usage_of else 0
            return workload.key != self.preemptor, usage, workload.position_key

        return sorted((w for bucket in self._buckets.values() for w in bucket), key=place)

    @override
    def __len__(self) -> int:
        """Return how many workloads are pending."""
        return sum(bucket.size for bucket in self._buckets.values())

    def _keys(self, equivalence_class: EquivalenceClass) -> list[EquivalenceClass]:
        if self.usage_of is None:
            return [equivalence_class] if equivalence_class in self._buckets else []
        return [key for key in self._buckets if key[:-1] == equivalence_class]

    def _offer(self, bucket: Bucket) -> None:
        """Put a bucket's first member on the heap (`head` discards entries that became void)."""
        first = bucket.first()
        if first is None or self.usage_of is not None or bucket.offered == first[2]:
            return
        if len(self._heap) > 4 * len(self._buckets) + 16:
            self._heap = [entry for entry in self._heap if entry[5].offered == entry[3]]
            heapq.heapify(self._heap)
        bucket.offered = first[2]
        self._sequence += 1
        heapq.heappush(
            self._heap, (-bucket.priority, first[0], first[1], first[2], self._sequence, bucket)
        )

    def _fairest(self, usage_of: UsageOf) -> PendingWorkload | None:
        """Return the head when the recent usage of LocalQueues comes before priority."""
        best: tuple[tuple[int, int, Instant, str, int], PendingWorkload] | None = None
        for bucket in self._buckets.values():
            first = bucket.first()
            if bucket.equivalence_class in self.inadmissible or first is None:
                continue
            rank = (usage_of(bucket.local_queue), -bucket.priority, first[0], first[1], first[2])
            if best is None or rank < best[0]:
                best = (rank, first[3])
        return best[1] if best else None
