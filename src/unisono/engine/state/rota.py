"""The rota: which queues the next cycle looks at, and what brings the others back.

A queue is *ready* (its head will be evaluated), *asleep* (its head was evaluated and nothing in its
cohort tree has changed since), or has nothing to evaluate: it is empty, all in it is inadmissible,
or it is *stalled* behind a StrictFIFO head that cannot fit before something is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import Account
from unisono.engine.state.pending_queue import Kind, Waiting
from unisono.engine.state.queue_book import QueueBook, TreeBook
from unisono.engine.state.quota_tree import Cell, available
from unisono.engine.state.wake_index import Sleeper

HeadOf = Callable[[QueueBook], Waiting | None]


class Rota:
    """Who is worth a look."""

    __slots__ = (
        "_books",
        "_freed_trees",
        "_head_of",
        "_short_of_nodes",
        "came_late",
        "claimants",
        "ready",
    )

    def __init__(self, books: dict[QueueName, QueueBook], head_of: HeadOf) -> None:
        self.ready: dict[QueueBook, None] = {}
        # Queues whose head waits for its victims to leave. Nodes are shared by all trees, so these
        # heads take part in every cycle and keep what is theirs.
        self.claimants: dict[QueueBook, None] = {}
        # Queues whose head fitted, on nodes that somebody else got or keeps.
        self.came_late: dict[QueueBook, None] = {}
        self._short_of_nodes: dict[Sleeper, None] = {}
        self._freed_trees: dict[TreeBook, None] = {}
        self._books = books
        self._head_of = head_of

    def wake_queue(self, book: QueueBook) -> None:
        """Look at a queue in the next cycle, and with it at all that sleeps in its tree."""
        if book.stalled:
            head = self._head_of(book)
            stalled = book.head_wait[0] if book.head_wait else None
            if head is None or head.workload.key != stalled:  # it is the head that is stalled
                self.unstall(book)
        if book.blocker is None and not book.stalled:
            self.ready[book] = None
        self.wake_tree(book.tree)

    def unstall(self, book: QueueBook) -> None:
        """Let a StrictFIFO queue's head be examined again."""
        book.stalled = False
        book.tree.wakes.forget((book.spec.name, None))

    def wake_tree(self, tree: TreeBook) -> None:
        """Look at every queue of a tree that has somebody to examine: something changed there."""
        if tree.asleep:
            self.ready.update(tree.asleep)
            tree.asleep.clear()

    def freed(self, tree: TreeBook, charges: Iterable[tuple[Cell, int]]) -> None:
        """Note that quota came free; whom that may help is found out by `settle`."""
        if tree.wakes.has_sleepers:
            tree.wakes.free((cell.account, amount) for cell, amount in charges)
            self._freed_trees[tree] = None
        if tree.asleep:
            self.wake_tree(tree)

    def settle(self) -> None:
        """Wake whom freed quota may help, once for all that was freed since the last time."""
        if not self._freed_trees:
            return
        trees, self._freed_trees = self._freed_trees, {}
        for tree in trees:
            for sleeper in tree.wakes.due(self.room):
                self._wake(sleeper)

    def room(self, sleeper: Sleeper, account: Account) -> int:
        """Return how much a sleeper's queue may use of an account."""
        book = self._books.get(sleeper[0])
        return max(0, available(book.node.cell(account))) if book is not None else 0

    def holdings_changed(self, tree: TreeBook) -> None:
        """Wake those to whom it matters who runs in a tree, not only how much is free."""
        for sleeper in tree.wakes.holdings_changed():
            self._wake(sleeper)
        self.wake_tree(tree)

    def wait_for_nodes(self, sleeper: Sleeper) -> None:
        """File somebody under nodes: any change there brings them back."""
        self._short_of_nodes[sleeper] = None

    def minds_no_nodes(self, sleeper: Sleeper) -> None:
        """Take back that somebody waits for nodes: this time something else is in its way."""
        self._short_of_nodes.pop(sleeper, None)

    def rouse(self, book: QueueBook, kind: Kind) -> None:
        """Let a kind of workload stand in line again, whatever it waited for."""
        self._short_of_nodes.pop((book.spec.name, kind), None)
        book.tree.wakes.forget((book.spec.name, kind))
        book.pending.wake(kind)

    def waits_for_nodes(self, sleeper: Sleeper) -> bool:
        """Say whether somebody is filed under nodes."""
        return sleeper in self._short_of_nodes

    def nodes_changed(self) -> None:
        """Wake whom a node that joined, changed or was freed may help."""
        if not self.came_late and not self._short_of_nodes:
            return
        late, self.came_late = self.came_late, {}
        for book in late:
            if self._books.get(book.spec.name) is book:
                self.wake_tree(book.tree)
        sleepers, self._short_of_nodes = self._short_of_nodes, {}
        for sleeper in sleepers:
            if sleeper[0] in self._books:
                book = self._books[sleeper[0]]
                book.tree.wakes.forget(sleeper)
                self._wake(sleeper)
                self.wake_tree(book.tree)

    def _wake(self, sleeper: Sleeper) -> None:
        name, kind = sleeper
        book = self._books.get(name)
        self._short_of_nodes.pop(sleeper, None)  # it is filed anew if it falls asleep again
        if book is None:
            return  # its queue is gone
        book.tree.wakes.forget(sleeper)
        if kind is None:
            book.stalled = False
        else:
            book.pending.wake(kind)
        if book.blocker is None:
            self.ready[book] = None

    def drop_claims(self) -> None:
        """After a cycle: forget the queues whose head does not wait for victims any more."""
        if not self.claimants:
            return
        for book in [*self.claimants]:
            if book.pending.preemptor is None:
                del self.claimants[book]

    def put_to_sleep(
        self, changed: dict[TreeBook, None], *, examined: frozenset[QueueName]
    ) -> None:
        """After a cycle: whose tree did not change would only hear the same verdict again.

        A cycle by turns may end before every head was looked at; those stay ready.
        """
        for book in [*self.ready]:
            if book.blocker is not None or book.stalled or self._head_of(book) is None:
                del self.ready[book]
            elif book.tree not in changed and book.spec.name in examined:
                del self.ready[book]
                book.tree.asleep[book] = None

    def let_sleep(self, book: QueueBook) -> None:
        """Put one queue to sleep, as it was when a snapshot was taken."""
        self.ready.pop(book, None)
        book.tree.asleep[book] = None

    def reopen(self, book: QueueBook) -> None:
        """Start anew with a queue whose configuration changed."""
        book.tree.wakes.forget((book.spec.name, None))
        self._short_of_nodes.pop((book.spec.name, None), None)
        self.ready.pop(book, None)
        if book.blocker is None:
            self.ready[book] = None
