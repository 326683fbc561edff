"""In which order the heads of a cycle are decided (spec quota §6 and §9).

Classical: preemptors with a pending preemption first, then by borrowing level, priority and time.
With fair sharing, the heads of one cohort tree compete in a tournament at every cohort, and each
decision changes the shares that the next round is decided by.
"""

from __future__ import annotations

import heapq
from typing import Generic, Protocol, TypeVar

from unisono.engine.model.names import Instant
from unisono.engine.quota.share import Share, dominant_share
from unisono.engine.state.quota_tree import Cell, Node, borrows_with, charge


class Head(Protocol):
    """What ordering needs of a nominated head."""

    @property
    def node(self) -> Node: ...
    @property
    def charges(self) -> dict[Cell, int]: ...
    @property
    def level(self) -> int: ...
    @property
    def priority(self) -> int: ...
    @property
    def time(self) -> Instant: ...
    @property
    def uid(self) -> str: ...
    @property
    def goes_first(self) -> bool:
        """It holds quota already, or waits for its victims to terminate."""
        ...


def classical_key(head: Head) -> tuple[bool, int, int, Instant, str]:
    """Sort key of the classical order."""
    return not head.goes_first, head.level, -head.priority, head.time, head.uid


H = TypeVar("H", bound=Head)
Key = tuple[bool, bool, Share, int, Instant, str]


class Tournament(Generic[H]):
    """The heads of one cohort tree; `pop` returns the winner by the shares of that moment.

    Each cohort keeps its children's champions on a heap. A decision changes usage on one path to
    the root only, so only the champions along that path are ranked again.
    """

    def __init__(self, heads: list[H]) -> None:
        self._waiting: dict[Node, H] = {head.node: head for head in heads}
        self._heaps: dict[Node, list[tuple[Key, int, Node, H]]] = {}
        self._current: dict[Node, tuple[int, H]] = {}  # each child's valid entry
        self._count = 0
        self._changed: list[Node] = []
        for head in heads:
            self._rank_path(head.node)

    def touch(self, queue: Node) -> None:
        """Take in that a decision changed the usage of another queue too."""
        self._changed.append(queue)

    def pop(self) -> H | None:
        """Take the overall winner out; the caller decides it before asking again."""
        for node in self._changed:
            self._rank_path(node)
        self._changed = []
        winner = self._champion_anywhere()
        if winner is not None:
            del self._waiting[winner.node]
            self._changed.append(winner.node)
        return winner

    def _champion_anywhere(self) -> H | None:
        if not self._waiting:
            return None
        root = next(iter(self._waiting)).root()
        return self._champion(root)

    def _champion(self, node: Node) -> H | None:
        """Return the best head at or below a node."""
        if node.is_queue:
            return self._waiting.get(node)
        heap = self._heaps.get(node, [])
        while heap:
            _, number, child, head = heap[0]
            if self._current.get(child) == (number, head):
                return head
            heapq.heappop(heap)
        return None

    def _rank_path(self, queue: Node) -> None:
        """Rank the champions of a path again, from the queue up to the root."""
        for node in queue.path():
            parent = node.parent
            if parent is None:
                return
            self._current.pop(node, None)
            head = self._champion(node)
            if head is not None:
                self._count += 1
                self._current[node] = (self._count, head)
                entry = (_rank(node, head), self._count, node, head)
                heapq.heappush(self._heaps.setdefault(parent, []), entry)


def _rank(node: Node, head: Head) -> Key:
    """Rank a head by what its part of the tree would use with it."""
    for cell, amount in head.charges.items():
        charge(cell, amount)
    borrowing = any(
        borrows_with(node.cells[cell.flavor_resource], 0)
        for cell in head.charges
        if cell.flavor_resource in node.cells
    )
    share = dominant_share(node)
    for cell, amount in head.charges.items():
        charge(cell, -amount)
    return not head.goes_first, borrowing, share, -head.priority, head.time, head.uid
