"""Active queues: which queues the next cycle evaluates, and what brings the others back.

A queue is *ready* (its head will be evaluated), *asleep* (its head was evaluated and nothing in its
cohort tree has changed since), or has nothing to evaluate: it is empty, all in it is inadmissible,
or it is *blocked* by its StrictFIFO head, which cannot fit before something is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import FlavorResource
from unisono.engine.state.cluster_queue import ClusterQueueState, CohortTree
from unisono.engine.state.pending_queue import EquivalenceClass, PendingWorkload
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.wake_index import BlockedClass

HeadOf = Callable[[ClusterQueueState], PendingWorkload | None]


class ActiveQueues:
    """Queues that the next cycle evaluates, and blocked classes that may become active."""

    __slots__ = (
        "_freed_trees",
        "_head_of",
        "_queues",
        "_short_of_nodes",
        "lost_nodes",
        "ready",
        "with_preemptor",
    )

    def __init__(self, queues: dict[QueueName, ClusterQueueState], head_of: HeadOf) -> None:
        self.ready: dict[ClusterQueueState, None] = {}
        # Queues whose head waits for its victims to leave. Nodes are shared by all trees, so these
        # heads take part in every cycle and keep what is theirs.
        self.with_preemptor: dict[ClusterQueueState, None] = {}
        # Queues whose head fitted, on nodes that another workload got or keeps.
        self.lost_nodes: dict[ClusterQueueState, None] = {}
        self._short_of_nodes: dict[BlockedClass, None] = {}
        self._freed_trees: dict[CohortTree, None] = {}
        self._queues = queues
        self._head_of = head_of

    def wake_queue(self, cq: ClusterQueueState) -> None:
        """Evaluate a queue in the next cycle, and with it all that sleeps in its tree."""
        if cq.blocked_by_head:
            head = self._head_of(cq)
            blocking = cq.head_wait[0] if cq.head_wait else None
            if head is None or head.workload.key != blocking:
                self.unblock_head(cq)
        if cq.blocker is None and not cq.blocked_by_head:
            self.ready[cq] = None
        self.wake_tree(cq.tree)

    def unblock_head(self, cq: ClusterQueueState) -> None:
        """Let a StrictFIFO queue's head be evaluated again."""
        cq.blocked_by_head = False
        cq.tree.wakes.forget((cq.spec.name, None))

    def wake_tree(self, tree: CohortTree) -> None:
        """Activate every queue of a tree that has something to evaluate: the tree changed."""
        if tree.asleep:
            self.ready.update(tree.asleep)
            tree.asleep.clear()

    def freed(self, tree: CohortTree, charges: Iterable[tuple[Cell, int]]) -> None:
        """Note that quota came free; which blocked classes that helps is found out by `settle`."""
        if tree.wakes.has_blocked_classes:
            tree.wakes.free([(cell.flavor_resource, amount) for cell, amount in charges])
            self._freed_trees[tree] = None
        if tree.asleep:
            self.wake_tree(tree)

    def settle(self) -> None:
        """Wake blocked classes that freed quota may help, once for all that was freed."""
        if not self._freed_trees:
            return
        trees, self._freed_trees = self._freed_trees, {}
        for tree in trees:
            for blocked_class in tree.wakes.due(self.available_to):
                self._wake(blocked_class)

    def available_to(self, blocked_class: BlockedClass, flavor_resource: FlavorResource) -> int:
        """Return how much a blocked class's queue may use of a flavor-resource."""
        cq = self._queues.get(blocked_class[0])
        return max(0, available(cq.node.cell(flavor_resource))) if cq is not None else 0

    def admitted_changed(self, tree: CohortTree) -> None:
        """Wake blocked classes that depend on what runs in a tree, not only on what is free."""
        for blocked_class in tree.wakes.admitted_changed():
            self._wake(blocked_class)
        self.wake_tree(tree)

    def wait_for_nodes(self, blocked_class: BlockedClass) -> None:
        """File a blocked class under nodes: any change there wakes it."""
        self._short_of_nodes[blocked_class] = None

    def needs_no_nodes(self, blocked_class: BlockedClass) -> None:
        """Note that a blocked class does not wait for nodes: this time it has another blocker."""
        self._short_of_nodes.pop(blocked_class, None)

    def make_admissible(self, cq: ClusterQueueState, equivalence_class: EquivalenceClass) -> None:
        """Make an equivalence class admissible again, whatever it waited for."""
        self._short_of_nodes.pop((cq.spec.name, equivalence_class), None)
        cq.tree.wakes.forget((cq.spec.name, equivalence_class))
        cq.pending.wake(equivalence_class)

    def waits_for_nodes(self, blocked_class: BlockedClass) -> bool:
        """Say whether a blocked class is filed under nodes."""
        return blocked_class in self._short_of_nodes

    def nodes_changed(self) -> None:
        """Wake blocked classes that a node which joined, changed or was freed may help."""
        if not self.lost_nodes and not self._short_of_nodes:
            return
        losers, self.lost_nodes = self.lost_nodes, {}
        for cq in losers:
            if self._queues.get(cq.spec.name) is cq:
                self.wake_tree(cq.tree)
        classes, self._short_of_nodes = self._short_of_nodes, {}
        for blocked_class in classes:
            if blocked_class[0] in self._queues:
                cq = self._queues[blocked_class[0]]
                cq.tree.wakes.forget(blocked_class)
                self._wake(blocked_class)
                self.wake_tree(cq.tree)

    def _wake(self, blocked_class: BlockedClass) -> None:
        name, equivalence_class = blocked_class
        cq = self._queues.get(name)
        self._short_of_nodes.pop(blocked_class, None)  # it is filed anew if it falls asleep again
        if cq is None:
            return  # its queue is gone
        cq.tree.wakes.forget(blocked_class)
        if equivalence_class is None:
            cq.blocked_by_head = False
        else:
            cq.pending.wake(equivalence_class)
        if cq.blocker is None:
            self.ready[cq] = None

    def drop_claims(self) -> None:
        """After a cycle: forget the queues whose head does not wait for victims any more."""
        if not self.with_preemptor:
            return
        for cq in [*self.with_preemptor]:
            if cq.pending.preemptor is None:
                del self.with_preemptor[cq]

    def put_to_sleep(
        self, changed: dict[CohortTree, None], *, examined: frozenset[QueueName]
    ) -> None:
        """After a cycle: in a tree that did not change the next verdict would be the same.

        A cycle in priority order may end before every head was evaluated; those stay ready.
        """
        for cq in [*self.ready]:
            if cq.blocker is not None or cq.blocked_by_head or self._head_of(cq) is None:
                del self.ready[cq]
            elif cq.tree not in changed and cq.spec.name in examined:
                del self.ready[cq]
                cq.tree.asleep[cq] = None

    def let_sleep(self, cq: ClusterQueueState) -> None:
        """Put one queue to sleep, as it was when a snapshot was taken."""
        self.ready.pop(cq, None)
        cq.tree.asleep[cq] = None

    def reopen(self, cq: ClusterQueueState) -> None:
        """Start anew with a queue whose configuration changed."""
        cq.tree.wakes.forget((cq.spec.name, None))
        self._short_of_nodes.pop((cq.spec.name, None), None)
        self.ready.pop(cq, None)
        if cq.blocker is None:
            self.ready[cq] = None
