"""Turns within the state: the desk, who waits for which limit, and how large the cluster is.

Nothing here exists while the policy has no `turns`: then `desk` is None and every call is free.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from unisono.engine.model.explanation import Blocker, LimitReached
from unisono.engine.model.names import Instant, NodeName, QueueName, WorkloadKey
from unisono.engine.model.node import Node
from unisono.engine.model.turns import Factors, UsageRecord
from unisono.engine.model.workload import Holding, Workload
from unisono.engine.ordering.desk import TurnDesk
from unisono.engine.ordering.tallies import Scope
from unisono.engine.ordering.tres import Tres, milli, tres_name
from unisono.engine.ordering.turn_lines import Class, Row, TurnLines
from unisono.engine.state import changes
from unisono.engine.state.config import Config
from unisono.engine.state.pending_queue import HeapQueue, PendingQueue, UsageOf, Waiting
from unisono.engine.state.queue_book import QueueBook

if TYPE_CHECKING:
    from unisono.engine.state.cluster import ClusterState

Barred = tuple[QueueName, Class]
EVERYWHERE = ""  # the size of the whole cluster; a partition's is under its name


class TurnBook:
    """What the engine keeps about turns."""

    def __init__(self, config: Config, now: Instant) -> None:
        self._config = config
        self.desk: TurnDesk | None = None
        self._bars: dict[Scope, dict[Barred, None]] = {}
        self._fading: list[tuple[Instant, int, Barred]] = []
        self._filed = 0  # ends every tie on that heap
        self._sizes: dict[NodeName, tuple[Node, Tres]] = {}
        self._stale_sizes = True
        self.use_policy(now)

    def is_outdated(self) -> bool:
        """Say whether the policy asks for another desk than there is."""
        return (self.desk.rules if self.desk is not None else None) != self._config.policy.turns

    def use_policy(self, now: Instant) -> None:
        """Set up the desk that the policy asks for; what was used so far is not forgotten."""
        rules = self._config.policy.turns
        records = self.desk.spending.settled(now) if self.desk is not None else ()
        self.desk = TurnDesk(rules, now) if rules is not None else None
        self._bars, self._fading, self._stale_sizes = {}, [], True
        for record in records:
            self.take_over(record)

    def lines_for(self, book: QueueBook, ranking: UsageOf | None) -> PendingQueue | None:
        """Return empty lines of the sort that a queue needs now; None if it has them."""
        if self.desk is not None:
            is_right = isinstance(book.lines, TurnLines) and book.lines.desk is self.desk
            return None if is_right else TurnLines(self.desk, sticky=book.lines.sticky)
        is_right = isinstance(book.lines, HeapQueue) and (book.lines.usage_of is None) == (
            ranking is None
        )
        return None if is_right else HeapQueue(usage_of=ranking, sticky=book.lines.sticky)

    # --- workloads -------------------------------------------------------------------------------

    def enter(self, workload: Workload, *, was_held: bool) -> Blocker | None:
        """Let a workload wait; return what about its turn keeps it out of every line."""
        if self.desk is None:
            return None
        return self.desk.enter(workload, was_held=was_held).blocker

    def leave(self, key: WorkloadKey) -> None:
        """Let a workload wait no longer."""
        if self.desk is not None:
            self.desk.leave(key)

    def blocker(self, key: WorkloadKey) -> Blocker | None:
        """Return what about its turn keeps a waiting workload out of every line."""
        if self.desk is None:
            return None
        return self.desk.standings[key].blocker or self.desk.places.refusal(key)

    def start(self, holding: Holding) -> None:
        """Count a workload that holds quota."""
        if self.desk is not None:
            self.desk.start(holding)

    def change(self, holding: Holding) -> Iterator[Barred]:
        """Count it anew; yield whom that gives room."""
        if self.desk is not None:
            yield from self._unbar(self.desk.change(holding))

    def stop(self, key: WorkloadKey) -> Iterator[Barred]:
        """Count it no longer; yield whom that gives room."""
        if self.desk is not None:
            yield from self._unbar(self.desk.stop(key))

    def settle(self) -> list[WorkloadKey]:
        """Bring sizes and places up to date; return whose case changed."""
        if self.desk is None:
            return []
        if self._stale_sizes:
            self._stale_sizes = False
            self.desk.resize(self._totals())
        return self.desk.settle_places()

    def whose(self, key: WorkloadKey) -> tuple[str, str] | None:
        """Return the account and the QOS of somebody who waits or runs; None without turns."""
        return self.desk.whose(key) if self.desk is not None else None

    def factors(self, key: WorkloadKey) -> Factors | None:
        """Take a waiting workload's priority apart."""
        return self.desk.factors(key) if self.desk is not None else None

    # --- limits ----------------------------------------------------------------------------------

    def bar(self, book: QueueBook, waiting: Waiting, blockers: tuple[Blocker, ...]) -> None:
        """Set a class aside, filed under the limit that it is over."""
        lines, row = book.lines, waiting.line
        assert isinstance(lines, TurnLines), "only turns have limits"
        assert isinstance(row, Row), f"{waiting.workload.key} stands in no line"
        lines.unstick(waiting.workload.key)
        lines.bar(row.group, blockers)
        for blocker in blockers:
            if isinstance(blocker, LimitReached):
                self._file(blocker, (book.spec.name, row.group))

    def _file(self, over: LimitReached, barred: Barred) -> None:
        assert over.per in ("group", "user", "account"), "limits on one workload bar nobody"
        self._bars.setdefault((over.owner, over.per, over.whose), {})[barred] = None
        if over.until is not None:
            self._filed += 1
            heapq.heappush(self._fading, (over.until, self._filed, barred))

    def _unbar(self, scopes: Iterable[Scope]) -> Iterator[Barred]:
        for scope in scopes:
            yield from self._bars.pop(scope, ())

    def faded(self, now: Instant) -> Iterator[Barred]:
        """Move the clock; yield whose limits have faded enough."""
        if self.desk is None:
            return
        self.desk.now = max(self.desk.now, now)
        while self._fading and self._fading[0][0] <= now:
            yield heapq.heappop(self._fading)[2]

    # --- what was used ---------------------------------------------------------------------------

    def records(self) -> tuple[UsageRecord, ...]:
        """Write down what was used."""
        return self.desk.spending.records() if self.desk is not None else ()

    def ageing(self) -> tuple[tuple[WorkloadKey, Instant], ...]:
        """Write down since when those age who needed leave to."""
        return self.desk.places.ageing() if self.desk is not None else ()

    def let_age(self, ageing: tuple[tuple[WorkloadKey, Instant], ...]) -> None:
        """Go on from what was written down about those who needed leave to age."""
        if self.desk is not None:
            self.desk.let_age(ageing)

    def take_over(self, record: UsageRecord) -> None:
        """Go on from what was written down."""
        if self.desk is not None:
            self.desk.take_over(record)

    # --- sizes -----------------------------------------------------------------------------------

    def note_node(self, change: changes.NodeChange) -> None:
        """Remember how large a node is; pods of others on it do not matter."""
        match change:
            case changes.NodeSet(node):
                old = self._sizes.get(node.name)
                size = _size(node)
                if old is None or old[1] != size or old[0].labels != node.labels:
                    self._stale_sizes = True
                self._sizes[node.name] = (node, size)
            case changes.NodeGone(name):
                if self._sizes.pop(name, None) is not None:
                    self._stale_sizes = True
            case _:
                pass

    def note_quota(self) -> None:
        """Remember that quotas changed, which are the size of a cluster without nodes."""
        self._stale_sizes = True

    def _totals(self) -> dict[str, Tres]:
        assert self.desk is not None, "somebody asked for turns"
        rules = self.desk.rules
        if rules.totals:
            return {EVERYWHERE: dict(rules.totals)}
        if not self._sizes:
            return {EVERYWHERE: self._quotas()}
        totals = {EVERYWHERE: _sum(size for _, size in self._sizes.values())}
        for partition in rules.partitions:
            if partition.node_labels:
                wanted = set(partition.node_labels)
                totals[partition.name] = _sum(
                    size for node, size in self._sizes.values() if wanted <= set(node.labels)
                )
        return totals

    def _quotas(self) -> Tres:
        """Return all nominal quota there is."""
        total: Tres = {}
        config = self._config
        queues = [group for queue in config.queues.values() for group in queue.groups]
        cohorts = [group for cohort in config.cohorts.values() for group in cohort.groups]
        for group in (*queues, *cohorts):
            own = [quota for flavor in group.flavors for quota in flavor.resources]
            for quota in (*own, *(group.pool or ())):
                name = tres_name(quota.resource)
                total[name] = total.get(name, 0) + milli(quota.resource, quota.nominal)
        return total


def take_turns(state: ClusterState) -> None:
    """Begin or end an order by turns, or change its rules: everybody queues anew."""
    if not state.turns.is_outdated():
        return
    # What follows from a change is no change of its own.
    listener, state.listener = state.listener, None
    waiting = [one.workload for one in state.waiting.values()]
    sticky = {book: book.lines.sticky for book in state.books.values()}
    for workload in waiting:
        state.apply(changes.WorkloadGone(workload.key))
    state.turns.use_policy(state.now)
    for book, key in sticky.items():
        renew_lines(state, book)
        book.lines.sticky = key
    for running in state.running.values():
        state.turns.start(running.holding)
    for workload in waiting:
        state.apply(changes.WorkloadWaits(workload))
    state.listener = listener


def unbar(state: ClusterState, barred: Iterable[Barred]) -> None:
    """Look again at those who may be below a limit now."""
    for name, group in barred:
        book = state.books.get(name)
        if book is not None and isinstance(book.lines, TurnLines) and book.lines.unbar(group):
            state.rota.wake_queue(book)


def pass_time(state: ClusterState) -> None:
    """Move the clock; wake whose limits have faded, and where somebody else is now in front."""
    if state.turns.desk is None:
        return
    unbar(state, state.turns.faded(state.now))
    for book in state.books.values():
        if book.head_wait is not None:
            head = state.head_of(book)
            if head is not None and head.workload.key != book.head_wait[0]:
                state.rota.wake_queue(book)


def renew_lines(state: ClusterState, book: QueueBook) -> None:
    """Give a queue the sort of lines that the policy asks for, and look at everybody again."""
    ranking = state.local_queue_usage.ranking(book.spec) if state.turns.desk is None else None
    renewed = state.turns.lines_for(book, ranking)
    if renewed is not None:
        everybody = book.lines.in_order()
        book.lines = renewed
        for waiting in everybody:
            book.lines.push(waiting)
    book.lines.usage_of = ranking
    state.turns.note_quota()
    if isinstance(book.lines, TurnLines):
        unbar(state, [(book.spec.name, group) for group in book.lines.barred])


def _size(node: Node) -> Tres:
    size: Tres = {"node": 1000}
    for resource, amount in node.allocatable:
        name = tres_name(resource)
        size[name] = size.get(name, 0) + milli(resource, amount)
    return size


def _sum(sizes: Iterable[Tres]) -> Tres:
    total: Tres = {}
    for size in sizes:
        for name, amount in size.items():
            total[name] = total.get(name, 0) + amount
    return total
