"""The rota: which queues the next cycle looks at, and what brings the others back.

A queue is *ready* (its head will be examined), *asleep* (its head was examined and nothing in its
cohort tree has changed since), or has nothing to examine: empty, parked, or *stalled* behind a
StrictFIFO head that cannot fit before something is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unisono.engine.model.names import QueueName
from unisono.engine.model.resources import Account
from unisono.engine.order.lines import Waiting
from unisono.engine.state.queue_book import QueueBook, TreeBook

HeadOf = Callable[[QueueBook], Waiting | None]


class Rota:
    """Who is worth a look."""

    __slots__ = ("_books", "_head_of", "ready")

    def __init__(self, books: dict[QueueName, QueueBook], head_of: HeadOf) -> None:
        self.ready: dict[QueueBook, None] = {}
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

    def freed(self, tree: TreeBook, charges: Iterable[tuple[Account, int]]) -> None:
        """Wake whom freed quota may help.

        Without charges it wakes those whose verdict depends on who runs, not on how much is free.
        """
        for name, kind in tree.wakes.free(charges):
            book = self._books[name]
            if kind is None:
                book.stalled = False
            else:
                book.lines.wake(kind)
            if book.blocker is None:
                self.ready[book] = None
        self.wake_tree(tree)

    def put_to_sleep(self, changed: dict[TreeBook, None]) -> None:
        """After a cycle: whose tree did not change would only hear the same verdict again."""
        for book in [*self.ready]:
            if book.blocker is not None or book.stalled or self._head_of(book) is None:
                del self.ready[book]
            elif book.tree not in changed:
                del self.ready[book]
                book.tree.asleep[book] = None

    def let_sleep(self, book: QueueBook) -> None:
        """Put one queue to sleep, as it was when a snapshot was taken."""
        self.ready.pop(book, None)
        book.tree.asleep[book] = None

    def reopen(self, book: QueueBook) -> None:
        """Start anew with a queue whose configuration changed."""
        self.ready.pop(book, None)
        if book.blocker is None:
            self.ready[book] = None
