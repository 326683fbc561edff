"""The lines inside one ClusterQueue: who waits, in which order, and who is parked (spec quota §5).

Workloads that share a verdict stand in one *line* (same shape, same priority), so parking or
waking a thousand equal workloads costs what one costs. The queue's head is the best first member
of its active lines. With admission fair sharing a line also belongs to one local queue, because
what that local queue used lately outranks priority.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from unisono.engine.model.explanation import Blocker
from unisono.engine.model.names import Instant, LocalQueueKey, WorkloadKey
from unisono.engine.model.workload import Workload
from unisono.engine.state.equivalence import Shape

# What decides alike: shape, priority, and what it is to reservations; or the identity of a workload
# with a history of its own (it may have to wait before it makes others leave). The type has no
# length, so that compiled code keeps the tuple that it is: it is looked up in many places.
Kind = tuple[int | str, ...]
# Association, QOS, partition, user without account, shape, time limit: what is alike here is under
# the same limits, where turns decide.
Class = tuple[int, str, str, str, int, int | None]
UsageOf = Callable[[LocalQueueKey], int]


class Row(NamedTuple):
    """A place in a line that is ordered by turns (`turn_lines`)."""

    number: int
    kind: Kind
    group: Class


class Waiting:
    """A workload without quota."""

    __slots__ = (
        "alone",
        "is_plain",
        "key",
        "kind",
        "line",
        "priority",
        "queue",
        "shape",
        "since",
        "term",
        "tie",
        "workload",
    )

    def __init__(
        self, workload: Workload, shape: Shape, *, alone: bool = False, term: str = ""
    ) -> None:
        self.workload = workload
        self.key = workload.key
        self.queue = workload.queue
        self.priority = workload.priority
        self.is_plain = False  # nothing about it itself keeps it out of a line, or ends it
        self.shape = shape
        self.alone = alone  # shares no verdict with others of its shape
        self.term = term  # what it is to reservations; empty without any
        # What decides its place among equals, ...
        queued_at = workload.queued_at
        self.since = workload.created_at if queued_at is None else queued_at
        self.tie = workload.tie if workload.turn.number else workload.uid  # ... of one instant
        self.line: Line | Row | None = None  # None while its local queue or itself is held back
        own = workload.uid if alone or workload.may_preempt_at is not None else term
        self.kind: Kind = (shape.number, self.priority, own)


def kind_of(waiting: Waiting) -> Kind:
    """Return the class of workloads that share this one's verdict."""
    return waiting.kind


class Line:
    """Members of one kind, first come first served."""

    __slots__ = ("_members", "key", "kind", "local_queue", "offered", "priority", "size")

    def __init__(self, key: Kind, kind: Kind, priority: int, local_queue: LocalQueueKey) -> None:
        self.key = key  # among all lines of the queue
        self.kind = kind
        self.priority = priority
        self.local_queue = local_queue
        self._members: list[tuple[Instant, str, int, Waiting]] = []
        self.size = 0
        self.offered = 0  # the member that stands for the line on the queue's heap

    def push(self, waiting: Waiting, sequence: int) -> None:
        """Let a workload join; `sequence` keeps comparisons away from the object itself."""
        heapq.heappush(self._members, (waiting.since, waiting.tie, sequence, waiting))
        waiting.line = self
        self.size += 1

    def drop(self, waiting: Waiting) -> None:
        """Let a workload leave from anywhere; its entry is discarded when it surfaces."""
        waiting.line = None
        self.size -= 1
        if len(self._members) > 2 * self.size + 16:
            self._members = [entry for entry in self._members if entry[3].line is self]
            heapq.heapify(self._members)

    def first(self) -> tuple[Instant, str, int, Waiting] | None:
        """Return the first member's entry."""
        members = self._members
        while members and members[0][3].line is not self:
            heapq.heappop(members)
        return members[0] if members else None

    def __iter__(self) -> Iterator[Waiting]:
        """Yield members in no particular order."""
        return (entry[3] for entry in self._members if entry[3].line is self)


@dataclass(slots=True)
class Lines:
    """All lines of one ClusterQueue."""

    usage_of: UsageOf | None = None  # set: admission fair sharing orders local queues first
    parked: dict[Kind, tuple[Blocker, ...]] = field(default_factory=dict)
    sticky: WorkloadKey | None = None  # made others leave; goes first until it is admitted
    # By kind, and by local queue where that matters.
    _lines: dict[Kind, Line] = field(default_factory=dict)
    # (-priority, time, uid, member's sequence, entry's number, line): the number ends every tie.
    _heap: list[tuple[int, Instant, str, int, int, Line]] = field(default_factory=list)
    # Lines with perhaps another first member; they are offered when somebody asks for the head.
    _stirred: dict[Line, None] = field(default_factory=dict)
    _sequence: int = 0

    def push(self, waiting: Waiting) -> bool:
        """Let a workload join; say whether it is in an active line, i.e. will be examined."""
        kind = waiting.kind
        key = kind if self.usage_of is None else (*kind, waiting.queue)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(key, kind, waiting.priority, waiting.queue)
        self._sequence += 1
        line.push(waiting, self._sequence)
        if self.parked and kind in self.parked:
            first = line.first()
            if first is None or first[3] is not waiting:
                return False
            # Who stands in front of all that were refused may fare better (a rule may compare
            # times), so the kind is looked at once more.
            self.wake(kind)
        self._stirred[line] = None
        return True

    def drop(self, waiting: Waiting) -> None:
        """Let a workload leave."""
        line = waiting.line
        assert isinstance(line, Line), f"{waiting.workload.key} stands in no line"
        line.drop(waiting)
        self.unstick(waiting.key)
        if line.size == 0:
            line.offered = 0  # what stands for it on the heap is void
            self._stirred.pop(line, None)
            del self._lines[line.key]
            if self.parked and not self._keys(line.kind):
                self.parked.pop(line.kind, None)
        elif not self.parked or line.kind not in self.parked:
            self._stirred[line] = None

    def head(self, sticky: Waiting | None) -> Waiting | None:
        """Return who is examined next; `sticky` is the entry of `self.sticky` if it still waits."""
        if sticky is not None and sticky.line is not None:
            return sticky
        if self.usage_of is not None:
            return self._fairest(self.usage_of)
        if self._stirred:
            for line in self._stirred:
                if line.kind not in self.parked:
                    self._offer(line)
            self._stirred.clear()
        while self._heap:
            _, _, _, sequence, _, line = self._heap[0]
            first = line.first()
            if first is not None and first[2] == sequence and line.kind not in self.parked:
                return first[3]
            heapq.heappop(self._heap)
            if line.offered == sequence:
                line.offered = 0
        return None

    def park(self, kind: Kind, blockers: tuple[Blocker, ...]) -> None:
        """Set all workloads of a kind aside; newcomers of that kind join them."""
        self.parked[kind] = blockers

    def parked_heads(self) -> list[Waiting]:
        """Return the first workload of every parked kind, in queue order."""
        found: dict[Kind, Waiting] = {}
        for waiting in self.in_order():
            if kind_of(waiting) in self.parked:
                found.setdefault(kind_of(waiting), waiting)
        return list(found.values())

    def aside(self, waiting: Waiting) -> tuple[Blocker, ...] | None:
        """Return why a workload is set aside, if it is."""
        return self.parked.get(kind_of(waiting))

    def barred_heads(self) -> list[tuple[Waiting, tuple[Blocker, ...]]]:
        """Return who is over a limit: nobody, where turns do not decide."""
        return []

    @property
    def barred(self) -> dict[Class, tuple[Blocker, ...]]:
        """The classes that are over a limit: none, where turns do not decide."""
        return {}

    def unstick(self, key: WorkloadKey) -> None:
        """Let a workload be one of many again: it no longer waits for victims."""
        if self.sticky == key:
            self.sticky = None

    def wake(self, kind: Kind) -> bool:
        """Bring a parked kind back; False if it was not parked."""
        if self.parked.pop(kind, None) is None:
            return False
        for key in self._keys(kind):
            self._stirred[self._lines[key]] = None
        return True

    def in_order(self) -> list[Waiting]:
        """Return everybody, parked or not, in queue order."""
        usage_of = self.usage_of

        def place(waiting: Waiting) -> tuple[bool, int, int, Instant, str]:
            workload = waiting.workload
            usage = usage_of(workload.queue) if usage_of else 0
            late = workload.key != self.sticky
            return late, usage, -workload.priority, workload.position_time, workload.tie

        return sorted((w for line in self._lines.values() for w in line), key=place)

    def __len__(self) -> int:
        """Return how many workloads wait."""
        return sum(line.size for line in self._lines.values())

    def _keys(self, kind: Kind) -> list[Kind]:
        if self.usage_of is None:
            return [kind] if kind in self._lines else []
        return [key for key in self._lines if key[:-1] == kind]

    def _offer(self, line: Line) -> None:
        """Put a line's first member on the heap of heads (stale entries fall out in `head`)."""
        first = line.first()
        if first is None or self.usage_of is not None or line.offered == first[2]:
            return
        if len(self._heap) > 4 * len(self._lines) + 16:
            self._heap = [entry for entry in self._heap if entry[5].offered == entry[3]]
            heapq.heapify(self._heap)
        line.offered = first[2]
        self._sequence += 1
        heapq.heappush(
            self._heap, (-line.priority, first[0], first[1], first[2], self._sequence, line)
        )

    def _fairest(self, usage_of: UsageOf) -> Waiting | None:
        """Return the head when local queues' recent usage comes before priority."""
        best: tuple[tuple[int, int, Instant, str, int], Waiting] | None = None
        for line in self._lines.values():
            first = line.first()
            if line.kind in self.parked or first is None:
                continue
            rank = (usage_of(line.local_queue), -line.priority, first[0], first[1], first[2])
            if best is None or rank < best[0]:
                best = (rank, first[3])
        return best[1] if best else None
