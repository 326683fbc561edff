"""A cycle when turns decide: heads in one order over all queues, each judged when it is its turn.

The classical cycle decides one head of every queue. Here a queue's second may have to go before
another queue's first, so the cycle ends as soon as somebody who is not a head would be next; the
next cycle goes on from there (spec turns §6). Heads over a limit step aside unexamined.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Protocol

from unisono.engine.model.explanation import Explanation, LimitReached
from unisono.engine.model.names import Instant
from unisono.engine.model.plan import Admit, Wait
from unisono.engine.nominate import Nominee, nominate
from unisono.engine.ordering.limit_counters import LimitCounters
from unisono.engine.ordering.multifactor import MultifactorPriority
from unisono.engine.ordering.multifactor_queue import MultifactorQueue, PriorityKey
from unisono.engine.state.cluster import ClusterState
from unisono.engine.state.pending_queue import Waiting
from unisono.engine.state.queue_book import QueueBook
from unisono.engine.state.transaction import Ledger

# Whether it goes behind those that wait for their victims, and its turn.
_Place = tuple[bool, PriorityKey]
_ANYWHERE: _Place = (False, (0, 0, Instant(0), 0, 0, ""))


class Deciding(Protocol):
    """The decisions of a cycle so far (`decisions.Cycle`)."""

    state: ClusterState
    now: Instant
    ledger: Ledger
    admissions: list[Admit]
    waits: list[Wait]

    def decide(self, nominee: Nominee) -> None:
        """Admit the nominee, make others leave for it, or let it wait."""


def decide_in_turn(cycle: Deciding, multifactor: MultifactorPriority) -> list[QueueBook]:
    """Decide heads in turn; return the queues whose heads were looked at."""
    heads = _heads(cycle.state)
    heapq.heapify(heads)
    started = LimitCounters()  # by this cycle: they count before they run
    examined: list[QueueBook] = []
    bound: _Place | None = None
    while heads:
        place, _, book, head = heapq.heappop(heads)
        if bound is not None and bound < place:
            break
        examined.append(book)
        # Who comes after the last head matters to nobody.
        if _decide(cycle, multifactor, book, head, started) and heads:
            following = _following(book, head)
            bound = following if bound is None or (following and following < bound) else bound
    return examined


def everybody_in_turn(state: ClusterState) -> Iterator[tuple[QueueBook, Waiting]]:
    """Yield everybody who stands in a line of an open queue, in turn over all queues."""
    open_books = [
        book for book in state.books.values() if book.blocker is None and len(book.pending)
    ]
    if len(open_books) == 1:  # in its own order
        (book,) = open_books
        for waiting in book.pending.in_order():
            yield book, waiting
        return

    def of(book: QueueBook) -> Iterator[tuple[_Place, str, QueueBook, Waiting]]:
        for waiting in book.pending.in_order():
            yield _place(book, waiting), book.spec.name, book, waiting

    # A plain list: a queue that changes while it is read would be read from a later picture.
    for _, _, book, waiting in list(heapq.merge(*map(of, open_books))):
        yield book, waiting


def _heads(state: ClusterState) -> list[tuple[_Place, str, QueueBook, Waiting]]:
    """Return the head of every queue that is worth a look."""
    books = {book: None for book in state.rota.ready if not book.stalled}
    if state.nodes.has_nodes and books:
        for book in state.rota.claimants:
            if book.pending.preemptor is not None and book.blocker is None:
                books[book] = None
    heads = [(book, head) for book in books if (head := state.head_of(book)) is not None]
    if len(heads) == 1:  # before whom it goes is no question
        return [(_ANYWHERE, book.spec.name, book, head) for book, head in heads]
    return [(_place(book, head), book.spec.name, book, head) for book, head in heads]


def _place(book: QueueBook, waiting: Waiting) -> _Place:
    pending = book.pending
    assert isinstance(pending, MultifactorQueue), "turns decide in every queue or in none"
    return waiting.workload.key != pending.preemptor, pending.key(waiting)


def _following(book: QueueBook, head: Waiting) -> _Place | None:
    """Return whose turn it is in a queue once its head has left the line."""
    pending = book.pending
    assert isinstance(pending, MultifactorQueue), "turns decide in every queue or in none"
    after = pending.after(head)
    return _place(book, after) if after is not None else None


def _decide(
    cycle: Deciding,
    multifactor: MultifactorPriority,
    book: QueueBook,
    head: Waiting,
    started: LimitCounters,
) -> bool:
    """Decide one head; say whether somebody else of its queue comes next."""
    over = multifactor.over_limit_of(head.workload.key, started)
    if over is not None:
        cycle.waits.append(_barred(book, head, over))
        return True
    lifted = cycle.ledger.lift()  # every head is nominated on the same picture
    nominee = nominate(cycle.state, book, head, cycle.ledger, cycle.now)
    cycle.ledger.put_back(lifted)
    waits, admitted = len(cycle.waits), len(cycle.admissions)
    cycle.decide(nominee)
    if len(cycle.admissions) > admitted:
        multifactor.count(head.workload.key, started)
        return True
    return len(cycle.waits) > waits and cycle.waits[-1].outcome == "park"


def _barred(book: QueueBook, head: Waiting, over: LimitReached) -> Wait:
    explanation = Explanation(workload=head.workload.key, queue=book.spec.name, blockers=(over,))
    return Wait(outcome="bar", explanation=explanation)
